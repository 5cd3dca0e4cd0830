"""What a reader's browser would stumble over in the files of the built site, page by page and as a whole."""

import functools
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import lxml.html
from press import made, pages
from press.cache import ROOT

from tests.planted import Checks

BOOKS = ("en", "zh")
PAGE = Checks()  # of a Page
SITE = Checks()  # of the folder of the site
ORDER, END = "en/order.html", "</body>"


@functools.cache
def _tree(content: bytes) -> Any:
    parser = lxml.html.HTMLParser(encoding="utf-8", huge_tree=True)
    return lxml.html.document_fromstring(content, parser=parser)


def tree(path: Path) -> Any:
    return _tree(path.read_bytes())


def of_class(name: str) -> str:
    """What XPath asks for a class."""
    return f"[contains(concat(' ', normalize-space(@class), ' '), ' {name} ')]"


@functools.cache
def _anchors(content: bytes) -> frozenset[str]:
    return frozenset(_tree(content).xpath("//@id | //@name"))


@functools.cache
def contents(book: str) -> list[str]:
    """The pages of a book in the order of its contents: 'order', 'labs/waveforms'."""
    names = pages.contents(ROOT / "docs" / "sites" / book / "mkdocs.yml")
    return [name.rpartition(".")[0] for name in names]


read = functools.cache(pages.read)  # a source


@dataclass(frozen=True)
class Page:
    """A page of the site, and what it is made from."""

    site: Path
    book: str  # "" at the root
    name: str  # "labs/masks"

    def __str__(self) -> str:
        return f"{self.book}/{self.name}.html".removeprefix("/")

    @property
    def html(self) -> Any:
        return tree(self.file(".html"))

    def file(self, suffix: str) -> Path:
        return self.site / self.book / f"{self.name}{suffix}"

    @property
    def made(self) -> bool:
        """Whether it is made from a chapter or a lab, which the 404 pages and the front page are not."""
        return bool(self.book) and self.name in contents(self.book)

    @property
    def lab(self) -> bool:
        return self.name.startswith("labs/")

    @property
    def chapter(self) -> bool:
        return self.made and not self.lab and self.name != "index" and self.meta.get("chapter") is not False

    @property
    def source(self) -> Path:
        return ROOT / "docs" / self.book / f"{self.name}.md"

    @property
    def meta(self) -> dict[str, Any]:
        return read(self.source).meta


def page_of(site: Path, name: str) -> Page:
    """The page to which a file belongs: en/labs/masks.html, or en/labs/masks.py and en/labs/figures/masks-1.svg."""
    book, _, rest = re.sub(r"figures/([\w-]+)-\d+(?=\.svg$)", r"\1", name).rpartition(".")[0].partition("/")
    return Page(site, book, rest) if book in BOOKS else Page(site, "", name.rpartition(".")[0])


def all_pages(site: Path) -> list[Page]:
    return [page_of(site, path.relative_to(site).as_posix()) for path in sorted(site.rglob("*.html"))]


# --- What a browser fetches ---------------------------------------------------------------------------------

# What only names an address, or leads a reader who follows it there.
NAMES = {("a", "href"), ("meta", "content"), ("math", "xmlns"), ("svg", "xmlns"), ("svg", "xmlns:xlink")}
NOT_FETCHED = {"canonical", "next", "prev", "author", "license", "help", "search"}
ELSEWHERE = re.compile(r"(?:\b(?:https?|wss?|ftp):|(?<![:\w]))//[\w-]+\.[\w.-]+")


@PAGE(
    (ORDER, END, '<script defer src="https://cdn.example/a.js"></script>', "cdn.example"),
    (ORDER, END, '<link rel="preconnect" href="//fonts.example">', "fonts.example"),
    (ORDER, 'rel="prev" href="', 'rel="alternate" href="https://example.org/', "example.org"),
    (ORDER, END, '<div style="background: url(https://cdn.example/a.png)"></div>', "cdn.example"),
    (ORDER, END, "<style>@import 'https://cdn.example/a.css';</style>", "cdn.example"),
    (ORDER, END, '<a href="#" ping="https://track.example">x</a>', "track.example"),
    (ORDER, END, "<script>fetch('//track.example/a')</script>", "track.example"),
)
def third_parties(page: Page) -> Iterator[str]:
    """Addresses outside the site that a browser could fetch, or connect to, by itself."""
    # where a page has scripts, alternate is fetched as well: Material's looks for a sitemap there
    ignored = NOT_FETCHED | (set() if page.html.xpath("//script[@src]") else {"alternate"})
    for tag in page.html.iter("*"):
        if tag.tag == "link" and set(tag.get("rel", "").lower().split()) <= ignored:
            continue
        held = [value for name, value in tag.items() if (tag.tag, name) not in NAMES]
        if tag.tag in ("script", "style") and tag.get("type") != "application/ld+json":  # that is data
            held.append(tag.text_content())
        yield from (f"<{tag.tag}> {url}" for url in ELSEWHERE.findall(" ".join(held)))


@SITE(("en/book.css", "@media print", "@import 'https://fonts.example/a.css'; @media print", "fonts.example"))
def third_parties_of_styles(site: Path) -> Iterator[str]:
    """The same in style sheets."""
    fetched = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:\w+:)?//[^"')\s]+)""")
    for path in site.rglob("*.css"):
        urls = fetched.findall(path.read_text(encoding="utf-8"))
        yield from (f"{path.name}: {url}" for url in urls)


@PAGE((ORDER, "<script defer", "<script", "is not shown before book.js has run"))
def shown_first(page: Page) -> Iterator[str]:
    """Scripts that a page waits for; without this a change in Material's templates would go by without a word."""
    for source in page.html.xpath("//script[not(@defer)]/@src"):
        yield f"it is not shown before {source} has run"


@PAGE(
    (ORDER, END, '<a href="nowhere.html">x</a>', "nowhere.html: no such file"),
    (ORDER, END, '<a href="naive.html#nowhere">x</a>', "naive.html#nowhere: no such anchor"),
    (ORDER, END, '<a href="/nowhere/">x</a>', "/nowhere/: no such file"),
)
def links(page: Page) -> Iterator[str]:
    """Links and sources that lead to no file of the site, or to no anchor in it."""
    anchors = functools.cache(lambda file: _anchors(file.read_bytes()))
    for url in page.html.xpath("//@href | //@src | //@*[name() = 'xlink:href']"):
        if not url or urlsplit(url).scheme or urlsplit(url).netloc:
            continue
        target = urlsplit(urljoin(f"http://site/{page}", url))
        file = page.site / unquote(target.path).lstrip("/")
        if target.path.endswith("/"):
            file /= "index.html"
        if not file.is_file():
            yield f"{url}: no such file"
        elif target.fragment and unquote(target.fragment) not in anchors(file):
            yield f"{url}: no such anchor"


# --- What a page holds --------------------------------------------------------------------------------------


@PAGE(
    (ORDER, ' href="../zh/order.html" ', ' href="../zh/naive.html" ', "the switch leads to '../zh/naive"),
    (ORDER, 'class="md-header__button book-language"', "", "the switch leads to ''"),
    (ORDER, '<html lang="en"', '<html lang="zh"', "the language is zh"),
)
def language(page: Page) -> Iterator[str]:
    """The language that the page says it has, and the same page of the other book."""
    if page.book:
        if (said := page.html.get("lang")) != page.book:
            yield f"the language is {said}"
        url = "".join(page.html.xpath(f"//a{of_class('book-language')}/@href")[:1])
        twin = page_of(page.site, str(page).replace(*(page.book, "en" if page.book == "zh" else "zh"), 1))
        to = page.file(".html").parent / url
        if page.made and (to.resolve() != twin.file(".html").resolve() or not to.is_file()):
            yield f"the switch leads to '{url}'"


@PAGE((ORDER, END, '<p id="by-hand">x</p>', "by-hand"))
def duplicate_ids(page: Page) -> Iterator[str]:
    counts = Counter(page.html.xpath("//@id"))
    yield from (f"two have the id {name}" for name, count in counts.items() if count > 1)


TEX = re.compile(r"\$|\\[()\[\]]|\\[a-zA-Z]{2,}")


@PAGE(
    (ORDER, END, "<p>$x$</p>", "it shows $"),
    (ORDER, END, r"<p>\frac</p>", r"it shows \frac"),
    (ORDER, END, '<span class="arithmatex">x</span>', "a formula that is not set"),
    (ORDER, "<annotation", "<annotated", "0 formulas, not"),
)
def formulas(page: Page) -> Iterator[str]:
    """TeX that a reader would see, and formulas that are not there."""
    hidden = "ancestor::pre or ancestor::code or ancestor::annotation or parent::script or parent::style"
    for text in page.html.xpath(f"//text()[contains(., '$') or contains(., '\\')][not({hidden})]"):
        yield from (f"it shows {found}" for found in TEX.findall(text))
    for tag in page.html.xpath(f"//*{of_class('arithmatex')} | //merror"):
        yield f"a formula that is not set: {tag.text_content()}"
    if page.made and not page.lab:
        # but for tables that blocks print, and what is gathered from other pages
        elsewhere = " or ".join(f"ancestor::*{of_class(name)}" for name in ("answers", "said"))
        count = len(page.html.xpath(f"//article//math//annotation[not({elsewhere})]"))
        wanted = len(made.whole(read(page.source)).formulas)
        yield from [f"{count} formulas, not {wanted}"] * (count != wanted)


# --- Figures ------------------------------------------------------------------------------------------------

LONG = {"en": 80, "zh": 30}  # letters: fewer name a figure, and do not say what is to be seen
# A list of the labels is what the build falls back on where nobody has looked at the figure.
PLOTS = f"//figure{of_class('plot')}"
LABELS = re.compile(r"(Horizontal|Vertical) axis: |Legend: |[横纵]轴：|图例：")
CAPTION = "Attention weights for two orders of the same words. "
SEEN = "Two tables of three by three numbers. Left, dog bites man: rows "


@PAGE(
    (ORDER, f'1-desc">{SEEN}', '1-desc">A table.</desc><desc>', "does not say what is to be seen: A table."),
    (ORDER, SEEN, "两张表。", "the description is in the other language"),
    (ORDER, f'1-desc">{SEEN}', '1-desc"></desc><desc>', "no description"),
    (ORDER, f"<figcaption>{CAPTION}", "<figcaption>两种次序。", "the caption is in the other language"),
    (ORDER, f"<figcaption>{CAPTION}", "<figcaption></figcaption><p>", "a drawing has no caption"),
    (ORDER, f'1-title">{CAPTION}', '1-title">Plot', "the title is not the caption: Plot"),
    (ORDER, ' role="img"', "", "is not told what this drawing is called"),
    (ORDER, '<figure class="plot">', '<figure class="plot"><figcaption>x</figcaption></figure><figure>', "no drawing"),
    (ORDER, '<figure class="plot">', "<figure>", "0 drawings, not 4"),
    (ORDER, "plot-2-", "plot-1-", "two drawings share plot-1-title"),
)  # fmt: skip
def figures(page: Page) -> Iterator[str]:
    """Each drawing is one picture for a screen reader; its title is the caption, its description says what it shows."""
    drawings = page.html.xpath(PLOTS)
    language = page.book or "en"
    shared: Counter[str] = Counter()
    for drawing in drawings:
        caption = _text(drawing, "figcaption")
        svg = drawing.find(".//svg")
        if svg is None:
            yield f"no drawing above '{caption}'"
            continue
        title, seen = _text(svg, "title"), _text(svg, "desc")
        ids = [tag.get("id", "") for tag in svg.xpath("title | desc")]
        shared.update({*ids, seen} - {""})
        if not caption:
            yield "a drawing has no caption"
        elif not _speaks(caption, language):
            yield f"the caption is in the other language: {caption}"
        if svg.get("role") != "img" or svg.get("aria-labelledby", "").split() != ids[:2] or len(ids) < 2:
            yield f"a screen reader is not told what this drawing is called: {caption}"
        if title != caption:
            yield f"the title is not the caption: {title}"
        if not seen:
            yield f"no description: {caption}"
        elif not _speaks(seen, language):
            yield f"the description is in the other language: {seen}"
        elif seen == caption or len(seen) < LONG[language] or LABELS.search(seen):
            yield f"the description does not say what is to be seen: {seen}"
    yield from (f"two drawings share {what}" for what, count in shared.items() if count > 1)
    if page.made:
        wanted = len(read(page.source).figures)
        yield from [f"{len(drawings)} drawings, not {wanted}"] * (len(drawings) != wanted)


def _text(tag: Any, name: str) -> str:
    return "".join(map(str.strip, tag.xpath(f"{name}[1]//text()")))


def _speaks(text: str, language: str) -> bool:
    return bool(re.search("[\u4e00-\u9fff]", text)) == (language == "zh")


# --- The site as a whole ------------------------------------------------------------------------------------


@SITE(("en/labs/masks.html", "", "", "no en/labs/masks.html"))
def every_page_is_built(site: Path) -> Iterator[str]:
    for book in BOOKS:
        for name in contents(book):
            yield from [] if (site / book / f"{name}.html").is_file() else [f"no {book}/{name}.html"]


@SITE(
    ("index.html", '<a class="book" href="en/index.html"', "<a", "it leads to {'zh/index.html'}"),
    ("index.html", '<section lang="zh"', "<section", "it speaks {'en'}"),
)
def front_page(site: Path) -> Iterator[str]:
    """Without JavaScript it leads to both books, and speaks to each reader in their language."""
    front = tree(site / "index.html")
    to = set(front.xpath("//main//a/@href"))
    yield from [f"it leads to {to}"] * (to != {f"{book}/index.html" for book in BOOKS})
    spoken = set(front.xpath("//section/@lang"))
    yield from [f"it speaks {spoken}"] * (spoken != set(BOOKS))


INDEX = "en/search/search_index.json"
AT = '"location":"order.html'


@SITE(
    (INDEX, f'{AT}"', f'{AT[:12]}gone.html"', "gone.html: no such page in this book"),
    (INDEX, f'{AT}#by-hand"', f'{AT}#by-foot"', "order.html#by-foot: no such anchor"),
    (INDEX, AT, f"{AT[:12]}naive.html", "order.html cannot be found by searching"),
    (INDEX, f'{AT}","title":"', f'{AT}","title":"$x$ ', "order.html: markup in the index"),
)
def search_index(site: Path) -> Iterator[str]:
    """Pages that it lacks, entries that lead out of their book, and markup in them."""
    anchors = functools.cache(lambda file: _anchors(file.read_bytes()))
    for book in BOOKS:
        entries = json.loads((site / book / "search" / "search_index.json").read_text(encoding="utf-8"))[
            "docs"
        ]
        for entry in entries:
            page, _, anchor = entry["location"].partition("#")
            file = (site / book / (page or "index.html")).resolve()
            if not file.is_file() or not file.is_relative_to((site / book).resolve()):
                yield f"{book}: {entry['location']}: no such page in this book"
            elif anchor and anchor not in anchors(file):
                yield f"{book}: {entry['location']}: no such anchor"
            prose = re.sub(r"<(pre|code)>.*?</\1>", "", entry["title"] + entry["text"], flags=re.DOTALL)
            if TEX.search(prose) or re.search("arithmatex|<svg|<math", prose):
                yield f"{book}: {entry['location']}: markup in the index"
        indexed = {entry["location"].partition("#")[0] or "index.html" for entry in entries}
        for name in contents(book):
            yield from (
                [] if f"{name}.html" in indexed else [f"{book}: {name}.html cannot be found by searching"]
            )


@SITE(
    ("en/sitemap.xml", 'hreflang="zh"', 'hreflang="fr"', "en/order.html: no zh"),
    ("sitemap.xml", "zh/sitemap.xml", "fr/sitemap.xml", "sitemap.xml: nothing of zh"),
)
def sitemaps(site: Path) -> Iterator[str]:
    """Books that the sitemap of the site does not name, and pages whose twins that of a book does not name."""
    for book in BOOKS:
        if f"/{book}/sitemap.xml</loc>" not in (site / "sitemap.xml").read_text(encoding="utf-8"):
            yield f"sitemap.xml: nothing of {book}"
        text = (site / book / "sitemap.xml").read_text(encoding="utf-8")
        entries = re.findall(r"<url>.*?</url>", text, re.DOTALL)
        for name in contents(book):
            entry = next((entry for entry in entries if f"/{book}/{name}.html</loc>" in entry), "")
            for other in BOOKS:
                if not re.search(rf'hreflang="{other}" href="[^"]*/{other}/{name}.html"', entry):
                    yield f"{book}/{name}.html: no {other}"
