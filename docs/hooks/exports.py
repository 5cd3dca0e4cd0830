"""What a page is besides HTML: a script of all its code, and Markdown for those who read through a model.

en/order.html    the page
en/order.py      its blocks in one file, cut into cells, for an editor or `python order.py`
en/order.md      its text without what only the build needs; figures as their captions
en/llms.txt      the contents of the book with a line on each page; /llms.txt has both books
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any

import pages
from labs import is_lab
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

WORDS = {
    "en": {
        "figure": "Figure: ",
        "script": "All code of the chapter “{0}”, block by block.",
        "needs": "It needs the package posenc: in a checkout, pip install '.[torch,plot]'",
    },
    "zh": {
        "figure": "图：",
        "script": "“{0}”一章的全部代码，逐段排列。",
        "needs": "需要 posenc 包：在项目目录里运行 pip install '.[torch,plot]'",
    },
}

_FIGURE = re.compile(r'<figure class="plot">.*?</figure>', re.DOTALL)
_DOWNLOADS = re.compile(r'<p class="downloads">.*?</p>\n*', re.DOTALL)
_LAB_LINK = re.compile(r"(\]\([\w./-]+)\.py(?=[)#])")
_VERBATIM = re.compile(r"(<pre\b.*?</pre>|<script\b.*?</script>|<svg\b.*?</svg>)", re.DOTALL)
_nav: list[Navigation] = []  # of the book that is being built


def script(page: pages.Page, language: str) -> str:
    """The blocks of a chapter as one Python file; "" where it has none.

    Each block is a cell under the heading it stands under; where the page shows a drawing, so does the file.
    """
    if not page.blocks:
        return ""
    words = WORDS[language]
    title = page.meta.get("title", page.path.stem)
    parts = [f'"""{words["script"].format(title)}\n\n{words["needs"]}\n"""\n']
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
        raise PluginError(f"{page.path}: its blocks make no script: {error}") from None
    return text


def markdown(page: pages.Page, language: str) -> str:
    """A chapter as others read Markdown: no comments for the build, figures as captions and descriptions."""
    lines = page.text.split("\n")
    for number in page.directives:
        lines[number - 1] = ""
    for figure in page.figures:
        text = f"*{WORDS[language]['figure']}{figure.caption}*"
        lines[figure.line - 1] = f"{figure.indent}{text} {figure.description}".rstrip()
    return _plain("\n".join(lines), page.meta)


def lab_markdown(text: str, meta: Mapping[str, Any], language: str) -> str:
    """A lab, already set as Markdown, with its outputs."""

    def captioned(match: re.Match[str]) -> str:
        found = [
            re.search(rf"<{tag}\b[^>]*>(.*?)</{tag}>", match[0], re.DOTALL) for tag in ("figcaption", "desc")
        ]
        caption, description = (unescape(part[1]) if part else "" for part in found)
        return f"*{WORDS[language]['figure']}{caption}* {description}".rstrip()

    text = _DOWNLOADS.sub("", _FIGURE.sub(captioned, text))
    text = re.sub(r"\{ \.(python|text)[ .\w-]*\}", r"\1", text)
    return _plain(text, meta)


def _plain(text: str, meta: Mapping[str, Any]) -> str:
    body = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    body = re.sub(r"\n{3,}", "\n\n", _LAB_LINK.sub(r"\1.md", body)).strip()
    # quoted as in JSON, which is YAML as well: a colon or a quotation mark would end them
    title, description = (
        json.dumps(str(meta.get(key, "")), ensure_ascii=False) for key in ("title", "description")
    )
    return f"---\ntitle: {title}\ndescription: {description}\n---\n\n{body}\n"


# --- The hook -----------------------------------------------------------------------------------------------


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> None:
    """Remember the contents of the book."""
    _nav[:] = [nav]


@event_priority(-100)  # when figures and formulas are in place
def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Write the twins of a page beside it, and take from the page the blanks that templates leave."""
    if not config.extra.get("home"):
        _write_twins(page, config)
    return squeezed(output)


def squeezed(page: str) -> str:
    """The page without the blanks at the ends of its lines, and without empty lines; code stays as it is.

    >>> squeezed("<p>\\n\\n  one\\n</p><pre>a\\n\\n  b</pre>")
    '<p>\\none\\n</p><pre>a\\n\\n  b</pre>'
    """
    pieces = _VERBATIM.split(page)
    return "".join(
        re.sub(r"\s*\n\s*", "\n", piece) if k % 2 == 0 else piece for k, piece in enumerate(pieces)
    )


def _write_twins(page: Page, config: MkDocsConfig) -> None:
    language = config.theme["language"]
    target = Path(page.file.abs_dest_path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if is_lab(page):
        twin = lab_markdown(page.markdown or "", page.meta, language)
    else:
        read = pages.read(Path(page.file.abs_src_path or ""))
        twin = markdown(read, language)
        if (
            page.meta.get("chapter") is not False
            and not page.is_homepage
            and (code := script(read, language))
        ):
            target.with_suffix(".py").write_text(code, encoding="utf-8")
    target.with_suffix(".md").write_text(twin, encoding="utf-8")


def on_post_build(config: MkDocsConfig) -> None:
    """Write the contents for models."""
    site = Path(config.site_dir)
    if config.extra.get("home"):
        books = [(site / language / "llms.txt").read_text(encoding="utf-8") for language in WORDS]
        text = "\n".join([f"# {config.site_name}\n\n> {config.site_description}\n", *map(_as_part, books)])
    else:
        text = contents(_nav[0], config)
    (site / "llms.txt").write_text(text, encoding="utf-8")


def contents(nav: Navigation, config: MkDocsConfig) -> str:
    """The contents of a book in the form of llmstxt.org: each page's Markdown twin and what it is about."""
    base = config.site_url or ""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", "", "## Pages", ""]
    for page in nav.pages:
        url = base + page.file.dest_uri.removesuffix(".html") + ".md"
        lines.append(f"- [{page.title}]({url}): {page.meta.get('description', '')}")
    return "\n".join(lines) + "\n"


def _as_part(book: str) -> str:
    """The contents of one book as a section of those of the site."""
    return re.sub(r"(?m)^# ", "## ", re.sub(r"(?m)^## Pages\n\n", "", book))
