"""Labs: notebooks that readers run and change. Both languages of a lab stand in one file, docs/labs/masks.py.

It is a notebook in py:percent. Code stands once. Text stands in each language, in a cell that says which,
`# %% [markdown] lang="en"`, and so do title and description in the front matter: `title-en: …`, `title-zh: …`.

For a book a lab is the page labs/masks.md: the cells of one language as the source of a chapter, each line where it
is in the file. What reads, checks, runs and sets chapters does so with labs. The cells run one after the other, in
one namespace, and the page shows whatever they print. After a cell that draws, the text begins with the caption,
`Figure: …` (`图：…`), and goes on with `Description: …` (`说明：…`) and `<!-- holds: … -->`, a line each.

Readers take a lab along as a notebook and as a script, in their language and not executed.
"""

import re
from collections.abc import Sequence
from pathlib import Path

COMMENTS = {"Figure: ": "figure", "图：": "figure", "Description: ": "description", "说明：": "description"}
DOWNLOAD = {
    "en": "Try it yourself: {0} for Jupyter, {1} for any editor. "
    "<code>uv run {2}</code> installs the package with its pictures by itself; "
    "otherwise, in a checkout: <code>pip install '.[torch,plot]'</code>.",
    "zh": "自己动手：Jupyter 用 {0}，其他编辑器用 {1}。<code>uv run {2}</code> 会自己装好要用的包；"
    "否则先在项目目录里 <code>pip install '.[torch,plot]'</code>。",
}

KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
"""What a notebook says of itself."""

_PAGE = "docs/*/labs/*.md"
# What stands in each language: its mark, the language, what it says.
_META = re.compile(r"(?m)^(# \w+)-(en|zh)(: .*\n)")
_TEXT = re.compile(r'(?ms)^(# %% \[markdown\]) lang="(\w+)"(\n.*?)(?=^# %%|\Z)')


def is_lab(name: str) -> bool:
    """Whether a page of a book, 'labs/masks.md', is a lab."""
    return name.startswith("labs/")


def of_book(folder: Path) -> list[Path]:
    """The pages of a book that are labs: docs/en/labs/masks.md and its like."""
    return [folder / "labs" / f"{file.stem}.md" for file in sorted(folder.parent.glob("labs/*.py"))]


def source(page: Path) -> Path:
    """The file that a page is made from: docs/labs/masks.py for docs/en/labs/masks.md."""
    return page.parents[2] / "labs" / f"{page.stem}.py" if page.match(_PAGE) else page


def text(page: Path) -> str:
    """The source of a page; of a lab, it is written as that of a chapter."""
    if not page.match(_PAGE):
        return page.read_text(encoding="utf-8")
    parts: list[str] = []
    for section in re.split(r"(?m)^(?=# %% \[markdown\])", _in_one_language(page, gap="\n")):
        prose, begins, code = section.partition("\n# %%\n")
        prose = re.sub(r"(?m)^# %%.*$|^# ?", "", prose)
        for mark, kind in COMMENTS.items():
            prose = re.sub(rf"(?m)^{mark}(.*)$", rf"<!-- {kind}: \1 -->", prose)
        parts.append(prose)
        if begins:
            lines = code.rstrip("\n")
            parts.append("<!--pytest-codeblocks:cont-->" if "```python" in "".join(parts) else "")
            # Cells with no text between them are one block. The fence ends where the blank line was.
            parts.append(
                "\n```python\n" + lines.replace("\n# %%\n", "\n\n") + "\n```" + code[len(lines) + 1 :]
            )
    return "".join(parts)


def _in_one_language(page: Path, *, gap: str) -> str:
    """A lab with a `gap` for each line in another language than that of the book."""

    def one(match: re.Match[str]) -> str:
        own = match[2] == page.parents[1].name
        return match[1] + match[3] if own else gap * match[0].count("\n")

    return _TEXT.sub(one, _META.sub(one, source(page).read_text(encoding="utf-8")))


def with_outputs(lines: list[str], ends: Sequence[int], printed: Sequence[str], info: str) -> None:
    """Adds what the cells print to the lines of their page, each below the line in which its cell ends."""
    for end, output in zip(ends, printed, strict=False):  # nothing after a cell that fails
        if output:
            ticks = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", output) or [""]))
            lines[end - 1] += f"\n\n{ticks} {info}\n{output.rstrip()}\n{ticks}"


def with_downloads(markdown: str, name: str, language: str) -> str:
    """The page of a lab with links to what can be taken along, below its title."""
    stem = Path(name).stem
    links = (f'<a href="{stem}{end}" download>{stem}{end}</a>' for end in (".ipynb", ".py"))
    shown = f'<p class="downloads">{DOWNLOAD[language].format(*links, f"{stem}.py")}</p>'
    return re.sub(r"(?m)^# .*$", lambda title: f"{title[0]}\n\n{shown}\n", markdown, count=1)


def downloads(page: Path) -> dict[str, str]:
    """A lab as a script and as a notebook, by the names of their files."""
    import jupytext  # it takes its time

    script = re.sub("(?m)^# <!-- holds: .*\n", "", _in_one_language(page, gap="")).rstrip("\n") + "\n"
    notebook = jupytext.reads(script, fmt="py:percent")
    notebook.metadata = KERNEL
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # jupytext's are random
    return {f"{page.stem}.py": script, f"{page.stem}.ipynb": jupytext.writes(notebook, "ipynb")}
