"""What goes with each page of the built site: its script, its Markdown twin, its place in the book, its preview."""

import ast
import functools
import json
import re
import struct
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit
from xml.etree import ElementTree

import nbformat
from packaging.requirements import Requirement
from press import inline, page_facts, pages
from press.cache import ROOT

from tests.site.sitecheck import BOOKS, ORDER, PAGE, PLOTS, SITE, Page, contents, of_class, read, tree

LOCALES = {"en": "en_GB", "zh": "zh_CN"}
CARD = struct.pack(">II", 1200, 630)  # as a PNG says it
CHINESE = re.compile("[\u4e00-\u9fff]")
SCRIPT, TWIN, LAB = "en/order.py", "en/order.md", "en/labs/masks"
NOTEBOOK, FIGURE = "en/order.ipynb", "en/figures/order-1.svg"

# --- Scripts and notebooks ----------------------------------------------------------------------------------


@PAGE(
    (SCRIPT, "", "", "no order.py"),
    (SCRIPT, "same_bag(first", "same_bag(second", "is not in the script"),
    (ORDER, 'href="order.py"', 'href="other.py"', "no link to order.py"),
)
def script(page: Page) -> Iterator[str]:
    """The chapter's blocks, all of them, in their order, in a file that compiles; linked from the page."""
    blocks = read(page.source).blocks if page.chapter else []
    file = page.file(".py")
    if not blocks:
        return
    if not file.is_file():
        yield f"no {file.name}"
        return
    rest = file.read_text(encoding="utf-8")
    try:
        ast.parse(rest)
    except SyntaxError as error:
        yield f"line {error.lineno}: {error.msg}"
    for part in (part for unit in blocks for part in unit.parts):
        _, code, after = rest.partition(part.code.strip("\n"))
        if not code:
            yield f"line {part.fence.line} of the page is not in the script"
        rest = after or rest
    if file.name not in page.html.xpath("//a[@download]/@href"):
        yield f"no link to {file.name}"


@PAGE(
    (f"{LAB}.ipynb", '"cell_type": "code"', '"cell_type": "raw"', "no cell of code"),
    (f"{LAB}.py", "import", "export", "masks.py is without a cell"),
    (f"{LAB}.py", "[markdown]", '[markdown] lang="zh"', "masks.py has cells of another language"),
    (f"{LAB}.html", "</body>", '<p class="jp-Cell">', "a style sheet of Jupyter's"),
)
def lab(page: Page) -> Iterator[str]:
    """A lab comes as a notebook and as a script, in its language, and in the style of the book."""
    if page.made and page.lab:
        cells = json.loads(page.file(".ipynb").read_text(encoding="utf-8"))["cells"]
        yield from [] if any(cell["cell_type"] == "code" for cell in cells) else ["no cell of code"]
        script = page.file(".py").read_text(encoding="utf-8")
        cells = [part.code for part in read(page.source).parts]
        yield from [] if all(cell in script for cell in cells) else [f"{page.name[5:]}.py is without a cell"]
        yield from [f"{page.name[5:]}.py has cells of another language"] * ("lang=" in script)
        if "jp-" in page.file(".html").read_text(encoding="utf-8"):
            yield "it needs a style sheet of Jupyter's"


@PAGE(
    (NOTEBOOK, "", "", "no order.ipynb"),
    (NOTEBOOK, '"cell_type": "code"', '"cell_type": "raw"', "no notebook: "),
    (NOTEBOOK, "same_bag(first", "same_bag(second", "another block"),
    (NOTEBOOK, "True\\n", "False\\n", "another output"),
    (NOTEBOOK, "pip install", "pip", "the first cell does not say what to install"),
    (NOTEBOOK, "](http://127.0.0.1:8000/en/naive.html", "](naive.md", "naive.md leads nowhere"),
    (NOTEBOOK, "# Why order is invisible", "# Why {#order}", "left over: {#order}"),
)
def notebook(page: Page) -> Iterator[str]:
    """A chapter comes as a notebook: all blocks with what they print, text that needs no site, what to install."""
    blocks, file = read(page.source).blocks if page.chapter else [], page.file(".ipynb")
    if not blocks or not file.is_file():
        yield from [f"no {file.name}"] * bool(blocks)
        return
    try:
        nbformat.validate(held := json.loads(file.read_text(encoding="utf-8")))
    except nbformat.ValidationError as error:
        yield f"no notebook: {error}"
        return
    cells = [("".join(cell["source"]), cell) for cell in held["cells"]]
    code = [(source, cell["outputs"]) for source, cell in cells if cell["cell_type"] == "code"]
    wanted = [part.code for unit in blocks for part in unit.parts]  # without the empty lines of folded ones
    if [re.sub(r"\n+", "\n", source) for source, _ in code] != [
        re.sub(r"\n+", "\n", part.rstrip("\n")) for part in wanted
    ]:
        yield "another block"
    printed = ["".join(output["text"]) for _, outputs in code for output in outputs]
    if printed != [unit.expected for unit in blocks if unit.expected]:
        yield "another output"
    if "\npip install " not in cells[0][0]:
        yield "the first cell does not say what to install"
    for source, _ in ((source, cell) for source, cell in cells if cell["cell_type"] == "markdown"):
        text = pages.parse(source)
        yield from (f"left over: {found}" for found in re.findall(r"<!--|\?\?\? |\{#[\w-]+\}|</", text.prose))
        yield from (f"{link.target} leads nowhere" for link in text.links if "://" not in link.target)


# --- Figures ------------------------------------------------------------------------------------------------

_SVG = "{http://www.w3.org/2000/svg}"


@PAGE(
    (FIGURE, "", "", "no figures/order-1.svg"),
    (FIGURE, "</svg>", "", "figures/order-1.svg is no SVG: "),
    (FIGURE, "<title>Attention weights", "<title>Weights", "figures/order-1.svg has another caption"),
    (FIGURE, "creativecommons.org", "example.org", "figures/order-1.svg does not say its licence"),
    (ORDER, 'href="figures/order-1.svg"', 'href="order-1.svg"', "no link to figures/order-1.svg"),
)
def figure_files(page: Page) -> Iterator[str]:
    """Each figure is a file beside its page, with its caption and licence, to which a link in it leads."""
    for number, drawing in enumerate(page.html.xpath(PLOTS) if page.made else [], 1):
        name = f"figures/{Path(page.name).name}-{number}.svg"
        if name not in drawing.xpath(".//a[@download]/@href"):
            yield f"no link to {name}"
        file = page.file(".html").parent / name
        if not file.is_file():
            yield f"no {name}"
            continue
        try:
            root = ElementTree.parse(file).getroot()
        except ElementTree.ParseError as error:
            yield f"{name} is no SVG: {error}"
            continue
        caption = "".join(drawing.xpath("(.//figcaption)[1]//text()"))
        yield from [f"{name} has another caption"] * (root.findtext(f"{_SVG}title") != caption)
        told = page_facts.LICENCE in (root.findtext(f"{_SVG}desc") or "")
        yield from [f"{name} does not say its licence"] * (not told)


# --- The Markdown twin --------------------------------------------------------------------------------------

_LEFT_OVER = re.compile(r"<!--|<figure|<svg|</|pytest-codeblocks|POSENC|\{ ?\.\w")
_INLINE = re.compile(r"(`+).*?\1", re.DOTALL)


@PAGE(
    (TWIN, "", "", "no order.md"),
    (TWIN, "{#by-hand}", "{#by-foot}", "other headings"),
    (TWIN, "same_bag(first", "same_bag(second", "without the code"),
    (TWIN, r"\mathrm{softmax}", "softmax", "without the formula"),
    (TWIN, "*Figure: ", "\n<!-- figure: ", "left over: <!--"),
    (TWIN, "](naive.md", "](native.md", "native.md is no twin"),
    (TWIN, "](naive.md", "](naive.md#gone", "naive.md#gone has no such heading"),
)
def markdown(page: Page) -> Iterator[str]:
    """Title and description, headings, code, outputs, formulas as TeX and captions are those of the page."""
    file = page.file(".md")
    if not page.made or not file.is_file():
        yield from [f"no {file.name}"] * page.made
        return
    twin = pages.read(file)
    for key in ("title", "description"):
        yield from [f"another {key}"] * (str(twin.meta.get(key)) != str(page.meta[key]))
    headings = page.html.xpath("//article//*[self::h1 or self::h2 or self::h3 or self::h4][@id]")
    if [(heading.level, heading.id) for heading in twin.headings] != [
        (int(h.tag[1]), h.get("id")) for h in headings
    ]:
        yield "other headings"
    text = _flat(twin.text)
    wanted = [
        (what, tag.text_content())
        for what, path in (("code", "pre/code"), ("formula", "annotation"), ("caption", "figcaption"))
        for tag in page.html.xpath(f"//article//{path}")
    ]
    for paragraph in page.html.xpath("//article//p[not(ancestor::figure)]"):
        if not {"downloads", "admonition-title"}.isdisjoint(paragraph.classes):
            continue
        parts = [part for text in paragraph.xpath("text()") for part in re.split(r"[\n“”\"'‘’…—–]", text)]
        wanted.append(("text", max(parts, key=len, default="")))
    yield from (f"without the {what} {said[:60]!r}" for what, said in wanted if _flat(said) not in text)
    yield from (f"left over: {found}" for found in _LEFT_OVER.findall(_INLINE.sub("", twin.prose)))
    for link in twin.links:
        url = urlsplit(urljoin(f"http://site/{page.book}/{page.name}.md", link.target))
        to = page.site / unquote(url.path).lstrip("/")
        if url.netloc != "site":
            continue
        if not to.is_file() or to.suffix == ".html":
            yield f"{link.target} is no twin"
        elif url.fragment and f"{{#{unquote(url.fragment)}}}" not in to.read_text(encoding="utf-8"):
            yield f"{link.target} has no such heading"


def _flat(text: str) -> str:
    """The text without blanks, and without what Markdown writes and HTML does not."""
    return re.sub(r"[\s\\]", "", text)


# --- Where a page stands ------------------------------------------------------------------------------------


@PAGE(
    (ORDER, 'href="naive.html" class="md-footer', 'class="md-footer', "next: "),
    (ORDER, '<progress value="', '<progress value="1', "number ('1"),
    (ORDER, 'class="book-more"', "", "more: []"),
    ("en/rotary.html", 'class="book-way"', "", "read first: []"),
    (ORDER, "<span>About ", "<span>Above ", "no reading time"),
)
def way(page: Page) -> Iterator[str]:
    """Its number among the chapters, what to read first, the next and previous page, its labs and twins."""
    if not page.made:
        return
    names = contents(page.book)
    book = {name: Page(page.site, page.book, name) for name in names}
    at = names.index(page.name)
    more = [name for name in names if book[name].lab and page.name in book[name].meta.get("needs", [])]
    files = [".py", ".ipynb"] * (page.chapter and page.file(".py").is_file()) + [".md"]
    more += [f"{page.name}{end}" for end in files]
    for what, path, wanted in (
        ("previous", of_class("md-footer__link--prev"), names[max(at - 1, 0) : at]),
        ("next", of_class("md-footer__link--next"), names[at + 1 : at + 2]),
        ("read first", f"{of_class('book-way')}//a", page.meta.get("needs", [])),
        ("more", f"{of_class('book-more')}//a", more),
    ):
        found = [_target(page, link) for link in page.html.xpath(f"//*{path}")]
        yield from [f"{what}: {found}, not {wanted}"] * (found != wanted)
    chapters = _chapters(page.site, page.book)
    progress = page.html.find(".//progress")
    shown = () if progress is None else (progress.get("value"), progress.get("max"))
    stands = (str(chapters.index(page.name) + 1), str(len(chapters))) if page.chapter else ()
    yield from [f"number {shown}, not {stands}"] * (shown != stands)
    told = "".join(page.html.xpath(f"//*{of_class('book-way')}//span//text()"))
    if page.chapter and not re.search(r"About [1-9]\d? minutes|约 [1-9]\d? 分钟", told):
        yield f"no reading time: {told!r}"


@functools.cache
def _chapters(site: Path, book: str) -> list[str]:
    return [name for name in contents(book) if Page(site, book, name).chapter]


def _target(page: Page, link: Any) -> str:
    """The page that a link leads to, named as the contents name it."""
    path = urlsplit(urljoin(f"http://site/{page}", str(link.get("href")))).path
    return path.removeprefix(f"/{page.book}/").removesuffix(".html")


# --- What others show of a page -----------------------------------------------------------------------------


@PAGE(
    (ORDER, 'property="og:title"', "", "og:title: None"),
    (ORDER, 'en/order.html"', 'en/index.html"', "og:url: "),
    (ORDER, "<title>Why", "<title>How", "title: How"),
    (ORDER, "cards/order.png", "order.png", "og:image: "),
)
def preview(page: Page) -> Iterator[str]:
    """Title, description, language and address for search engines and for links that are shared."""
    if not page.made:
        return
    title, description = str(page.meta["title"]), str(page.meta["description"])
    wanted = {
        "description": description,
        "og:title": title,
        "og:description": description,
        "og:locale": LOCALES[page.book],
        "og:type": "article",
    }
    tags = page.html.iter("meta")
    found = {tag.get("name") or tag.get("property"): tag.get("content", "") for tag in tags}
    yield from (f"{key}: {found.get(key)}" for key, value in wanted.items() if found.get(key) != value)
    if not found.get("og:image", "").endswith(f"/{page.book}/cards/{page.name}.png"):
        yield f"og:image: {found.get('og:image')}"
    if not found.get("og:url", "").endswith(f"/{page}"):
        yield f"og:url: {found.get('og:url')}"
    shown = page.html.findtext(".//title", "").strip()
    if not shown.startswith(title) and page.name != "index":
        yield f"title: {shown}"
    if bool(CHINESE.search(description)) != (page.book == "zh"):
        yield "the description is in the other language"


@PAGE(
    (ORDER, '"@type": "Chapter"', '"@type": "WebPage"', "the page is a WebPage"),
    (ORDER, '"position": 2', '"position": 3', "position: 3"),
    (ORDER, "application/ld+json", "text/plain", "nothing is said to search engines"),
)
def structured(page: Page) -> Iterator[str]:
    """What is said to search engines in the words of schema.org agrees with the page and its place in the book."""
    if not page.made:
        return
    scripts = page.html.xpath("//script[@type='application/ld+json']")
    if not scripts:
        yield "nothing is said to search engines"
        return
    said = json.loads(scripts[0].text)
    place = page.html.xpath(f"//*{of_class('book-way')}//progress/@value")
    kind = "Book" if page.name == "index" else "Chapter" if place else "WebPage"
    if said["@type"] != kind:
        yield f"the page is a {said['@type']}"
    if place and said.get("position") != int(place[0]):
        yield f"position: {said.get('position')}"
    if kind != "Book" and (said["name"] != page.meta["title"] or not said["url"].endswith(f"/{page}")):
        yield f"{said['name']} at {said['url']}"
    if said.get("isPartOf", said)["license"] not in (ROOT / "LICENSE").read_text(encoding="utf-8"):
        yield "another licence"


# --- The site as a whole ------------------------------------------------------------------------------------


ONE, OTHER = (read(ROOT / "docs" / "en" / name).meta["description"] for name in ("order.md", "naive.md"))


@SITE(("en/naive.html", OTHER, ONE, "en/order.html and en/naive.html have one description"))
def descriptions(site: Path) -> Iterator[str]:
    """Pages with the same description."""
    seen: dict[str, Page] = {}
    for page in (Page(site, book, name) for book in BOOKS for name in contents(book)):
        text = "".join(page.html.xpath("//meta[@name='description']/@content")[:1])
        if text in seen:
            yield f"{seen[text]} and {page} have one description"
        seen[text] = page


@SITE(
    ("en/llms.txt", "en/order.md", "en/ordre.md", "no en/order.md"),
    ("llms.txt", "zh/labs/masks.md", "zh/labs/mask.md", "zh/labs/mask.md is not there"),
    ("en/llms.txt", "- [", "* [", "no en/index.md"),
)
def for_models(site: Path) -> Iterator[str]:
    """llms.txt of a book names all its pages in their order, that of the site both books."""
    for folder, books in (("en/", ["en"]), ("zh/", ["zh"]), ("", list(BOOKS))):
        text = (site / folder / "llms.txt").read_text(encoding="utf-8")
        urls = [urlsplit(url).path for url in re.findall(r"(?m)^- \[.+?\]\((.+?)\): .+$", text)]
        named = [re.sub(r".*?/(?=(?:en|zh)/)", "", url, count=1) for url in urls]
        wanted = [f"{book}/{name}.md" for book in books for name in contents(book)]
        yield from (f"{folder}llms.txt: no {name}" for name in wanted if name not in named)
        yield from (f"{folder}llms.txt: {name} is not there" for name in named if not (site / name).is_file())
        if sorted(named) == sorted(wanted) and named != wanted:
            yield f"{folder}llms.txt: another order"
        if not re.match(r"# \S.*\n\n> \S.*\n\n##", text):
            yield f"{folder}llms.txt: no title and summary"


@SITE(
    ("en/order.py", "posenc[", "posenc[gone,", "en/order.py: posenc has no extra gone"),
    ("en/order.py", "# ///\n", "# //\n", "en/order.py does not say what it needs"),
    ("zh/take/rope.py", '["torch"]', "[]", "zh/take/rope.py does not ask for torch"),
)
def inline_metadata(site: Path) -> Iterator[str]:
    """Each script says in a comment what `uv run` is to install for it (PEP 723): all that it imports."""
    for file in sorted(path for book in BOOKS for path in (site / book).rglob("*.py")):
        name, code = file.relative_to(site).as_posix(), file.read_text(encoding="utf-8")
        heads = re.findall(r"(?m)^# /// script\n((?:# .*\n)+?)# ///$", code)
        if len(heads) != 1:
            yield f"{name} does not say what it needs"
            continue
        needs = [Requirement(each) for each in tomllib.loads(re.sub("(?m)^# ", "", heads[0]))["dependencies"]]
        named = {need.name for need in needs}
        extras = {extra for need in needs if need.name == "posenc" for extra in need.extras}
        yield from (
            f"{name}: posenc has no extra {extra}"
            for extra in extras - inline.PROJECT["optional-dependencies"].keys()
        )
        brought = {library for library, extra in inline.EXTRAS.items() if extra in extras}
        brought |= {"numpy"} if "posenc" in named else set()
        yield from (
            f"{name} does not ask for {each}" for each in sorted(inline.libraries(code) - named - brought)
        )


@SITE(("en/cards/order.png", "", "", "en/cards/order.png is no card"))
def cards(site: Path) -> Iterator[str]:
    """Each page has its picture for links, of the size that is asked for, and light."""
    names = ["cards/index", *(f"{book}/cards/{name}" for book in BOOKS for name in contents(book))]
    for file in (site / f"{name}.png" for name in names):
        data = file.read_bytes() if file.is_file() else b""
        if data[16:24] != CARD or len(data) > 40_000:
            yield f"{file.relative_to(site)} is no card"


@SITE(
    ("changes.xml", "<entry>", "<enter>", "changes.xml cannot be read"),
    ("changes.xml", "<title>Added: ", "<title>", "is under nothing"),
    (ORDER, "../changes.xml", "changes.xml", "en/order.html does not lead to the feed"),
    (ORDER, "Version 0", "Version ", "en/order.html does not say its version"),
)
def feed(site: Path) -> Iterator[str]:
    """The feed is Atom with an entry for each change, each page leads to it, and says which version it is."""
    try:
        entries = ElementTree.parse(site / "changes.xml").findall("{*}entry")
    except ElementTree.ParseError as error:
        yield f"changes.xml cannot be read: {error}"
        return
    for entry in entries:
        said = [entry.findtext(f"{{*}}{tag}", "") for tag in ("title", "id", "updated", "content")]
        yield from [f"{said[0]} lacks something"] * (not all(said))
        if not re.match(r"(Added|Changed|Fixed|Removed|Deprecated|Security|\d+\.\d+\.\d+): ", said[0]):
            yield f"{said[0]} is under nothing"
    for page in (Page(site, book, "order") for book in BOOKS):
        links = page.html.xpath("//link[@type='application/atom+xml']/@href")
        if [urljoin(f"/{page}", link) for link in links[:1]] != ["/changes.xml"]:
            yield f"{page} does not lead to the feed"
        if version("posenc") not in page.html.find_class("md-copyright")[0].text_content():
            yield f"{page} does not say its version"


@SITE(
    ("zh/404.html", "没有这一页", "No such page", "zh/404.html: No such page"),
    ("en/404.html", "/en/index.html", "/en/order.html", "no front page of en"),
)
def not_found(site: Path) -> Iterator[str]:
    """The 404 pages say so in the language of their book, at / in both, and lead to a front page."""
    says = {"en": "No such page", "zh": "没有这一页"}
    for book in ("", *BOOKS):
        page = tree(site / book / "404.html")
        main = next(page.iter("main"), page)
        for language, text in says.items():
            if (text in main.text_content()) != (not book or language == book):
                yield f"{book}/404.html: {text}"
        targets = [urlsplit(link).path for link in main.xpath(".//a/@href")]
        for language in [book] if book else BOOKS:
            if not any(target.endswith(f"{language}/index.html") for target in targets):
                yield f"{book}/404.html leads to no front page of {language}"
