"""What a page is besides HTML: a script of all its code, and Markdown for those who read through a model.

en/order.html    the page
en/order.py      its blocks in one file, cut into cells, for an editor or `uv run order.py` (inline.py)
en/order.ipynb   its text and its blocks as a notebook (notebooks.py)
en/figures/…     its figures, each with its caption (figure_files.py)
en/order.md      its text without what only the build needs; figures as their captions
en/take/rope.py  a block that a reader takes along, where a page collects them
references.bib   the papers that the books cite
en/llms.txt      the contents of the book with a line on each page; /llms.txt has both books
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from press import (
    BookError,
    figure_files,
    inline,
    labs,
    made,
    notebooks,
    page_facts,
    plain,
    reference,
    references,
    said,
    snippets,
)
from press.pages import Page, front_matter, parse
from press.reading_order import is_chapter, stem, with_chapters

if TYPE_CHECKING:
    from press.book import Book

WORDS = {
    "en": {
        "script": "All code of the chapter “{0}”, block by block. posenc {1}",
        "needs": "`uv run {0}.py` finds what it needs in the lines above; in a checkout: pip install '.[torch,plot]'",
    },
    "zh": {
        "script": "“{0}”一章的全部代码，逐段排列。posenc {1}",
        "needs": "用 `uv run {0}.py` 运行，要用的包会照上面几行装好；在项目目录里则是 pip install '.[torch,plot]'",
    },
}


def script(page: Page, language: str) -> str:
    """The blocks of a chapter as one Python file; "" where it has none.

    Each block is a cell under the heading it stands under; where the page shows a drawing, so does the file.
    """
    if not page.blocks:
        return ""
    words = WORDS[language]
    title = page.meta.get("title", page.path.stem)
    parts = [
        f'"""{words["script"].format(title, page_facts.VERSION)}\n\n{words["needs"].format(page.path.stem)}\n"""\n'
    ]
    for unit in page.blocks:
        above = [heading.text for heading in page.headings if heading.line < unit.line]
        heading = re.sub(r"[`$\\]", "", above[-1]) if above else title
        code = "\n".join(part.code.strip("\n") + "\n" for part in unit.parts)
        if any(part.figure for part in unit.parts):
            shown = 'plt.show()\nplt.close("all")\n'
            code += "\n" + ("" if "pyplot as plt" in code else "import matplotlib.pyplot as plt\n\n") + shown
        parts.append(f"# %% {heading}\n{code}")
    text = "\n".join(parts)
    try:
        compile(text, page.path.name, "exec")
    except SyntaxError as error:
        raise BookError(f"{page.path}: its blocks make no script: {error}") from None
    return inline.head(text) + text


def markdown(page: Page, language: str, printed: Sequence[str] = ()) -> str:
    """A page as others read Markdown: no comments for the build, figures as captions and descriptions.

    `printed` is what the cells of a lab print.
    """
    lines = plain.captioned(page, language)
    labs.with_outputs(lines, [part.fence.end for part in page.parts], printed, "text")
    return _plain("\n".join(lines), page.meta)


def _plain(text: str, meta: Mapping[str, Any]) -> str:
    body = plain.without_looks(text[len(front_matter(text)[1]) :])
    # quoted as in JSON, which is YAML as well: a colon or a quotation mark would end them
    title, description = (
        json.dumps(str(meta.get(key, "")), ensure_ascii=False) for key in ("title", "description")
    )
    return f"---\ntitle: {title}\ndescription: {description}\n---\n\n{body}\n"


# --- What is written ----------------------------------------------------------------------------------------


def beside(book: Book, name: str) -> dict[str, str]:
    """The files that go with a page, by their names in its folder."""
    file = PurePosixPath(name).stem
    page = book.page(name)
    filled = said.gathered(made.filled(snippets.filled(page.text, book.folder), book.folder), book)
    filled = reference.with_names(filled, name, book.language)
    text = parse(with_chapters(filled, name, book), page.path)
    files = {f"{file}.md": markdown(text, book.language, book.printed(name))}
    files |= figure_files.of_page(book, name)
    files |= {name: inline.head(code) + code for name, code in snippets.files(page.text, book.folder).items()}
    if labs.is_lab(name):
        files |= labs.downloads(book.folder / name)
        files[f"{file}.py"] += f"\n# %%\n{inline.head(files[f'{file}.py'])}"  # its own head is to be first
    elif is_chapter(name, book) and (code := script(page, book.language)):
        files[f"{file}.py"] = code
        files[f"{file}.ipynb"] = notebooks.notebook(filled, name, book)
    return files


def write_contents(site: Path, book: Book, name: str, about: str) -> None:
    """Write the contents for models: of a book, or of the site from those of its books, and its papers."""
    if book.language:
        text = contents(book, name, about)
    else:
        books = [(site / language / "llms.txt").read_text(encoding="utf-8") for language in WORDS]
        text = "\n".join([f"# {name}\n\n> {about}\n", *map(_as_part, books)])
        (site / references.BIB.name).write_text(references.exported(), encoding="utf-8")
    (site / "llms.txt").write_text(text, encoding="utf-8")


def contents(book: Book, name: str, about: str) -> str:
    """The contents of a book in the form of llmstxt.org: each page's Markdown twin and what it is about."""
    lines = [f"# {name}", "", f"> {about}", "", "## Pages", ""]
    for page in book.contents:
        about = book.meta(page).get("description", "")
        lines.append(f"- [{book.titles[page]}]({book.url}{stem(page)}.md): {about}")
    return "\n".join(lines) + "\n"


def _as_part(book: str) -> str:
    """The contents of one book as a section of those of the site."""
    return re.sub(r"(?m)^# ", "## ", re.sub(r"(?m)^## Pages\n\n", "", book))
