"""The zip and the PDFs, made once from the built site; each check finds what is planted for it."""

import io
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from press.offline import archive, pdf
from pypdf import PdfReader, PdfWriter
from pypdf.generic import DictionaryObject, NameObject, StreamObject, TextStringObject

from tests import missing
from tests.browser import browsing
from tests.browser.browsing import Browser, Visit
from tests.site import papercheck, sitecheck

TITLES = {"en": "Positional Encoding", "zh": "位置编码"}
# What stands at the beginning of the first chapter.
PHRASES = {
    "en": [
        "Why order is invisible",
        "Chapter 2 of",
        "Give both sentences to a Transformer that is told no positions. What comes out?",
    ],
    "zh": ["为什么看不见顺序", "第 2 章，共", "注意力"],
}


@pytest.fixture(scope="session")
def books(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the PDFs and the zip; POSENC_BOOKS names one where they have been made."""
    if made := os.environ.get("POSENC_BOOKS"):
        return Path(made)
    folder = tmp_path_factory.mktemp("offline")
    archive.make(site, folder)
    return folder


# Printing both books takes a core for more than a minute.
@pytest.fixture(
    scope="session", params=[pytest.param(each, marks=pytest.mark.slow) for each in sitecheck.BOOKS]
)
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def book(books: Path, language: str) -> PdfReader:
    return PdfReader(books / f"posenc-{language}.pdf")


# --- The PDFs -----------------------------------------------------------------------------------------------


def test_bookmarks_are_the_headings(book: PdfReader, site: Path, language: str) -> None:
    wanted = papercheck.headings(site, language)
    assert len(wanted) > 100
    assert papercheck.bookmarks(book, wanted) == []
    assert papercheck.unnumbered(book, wanted) == []


def test_links_stay_in_the_book(book: PdfReader) -> None:
    assert papercheck.links(book) == []


def test_text_can_be_found(book: PdfReader, language: str) -> None:
    assert papercheck.radicals(book) == []
    chapter = [mark for level, mark in papercheck.outline(book.outline) if level == 1][4]
    first = book.get_destination_page_number(chapter) or 0
    assert papercheck.lost(book, [first, first + 1], PHRASES[language]) == []


def test_it_brings_its_fonts(book: PdfReader) -> None:
    names = {str(font.get("/BaseFont")) for font in papercheck.fonts(book)}
    assert any("STIXTwoMath" in name for name in names)
    assert papercheck.unembedded(book) == []


def test_pages(book: PdfReader, language: str, site: Path) -> None:
    assert papercheck.blank(book) == []
    assert papercheck.form(book, language, TITLES[language]) == []
    chapters = len(pdf.order(site / language))
    assert 5 * chapters < len(book.pages) < 40 * chapters


def test_radicals_become_characters() -> None:
    table = (
        "2 beginbfchar\n<05> <2F12>\n<06> <2EC5>\nendbfchar\n1 beginbfrange\n<10> <12> <2EFF>\nendbfrange\n"
    )
    assert pdf.characters(table) == (
        "2 beginbfchar\n<05> <529B>\n<06> <89C1>\nendbfchar\n"
        "3 beginbfchar\n<10> <2EFF>\n<11> <4E00>\n<12> <4E28>\nendbfchar\n"
    )
    fine = "1 beginbfchar\n<05> <D835DC00>\nendbfchar\n1 beginbfrange\n<39> <3B> <4E09>\nendbfrange\n"
    assert pdf.characters(fine) == fine


# --- A small book, to see what becomes of each thing --------------------------------------------------------

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="description" content="About."><meta property="og:site_name" content="A & B">
<link rel="stylesheet" href="{styles}"><link rel="stylesheet" href="{own}">
</head><body dir="ltr">
<article class="md-content__inner md-typeset">{text}</article></body></html>"""
TWO = """<h1 id="two">Two<a class="headerlink" href="#two">#</a></h1><p>See <a href="index.html#up">above</a>,
<a href="two.py">a file</a> and <a href="#below">below</a>.</p>
<div class="language-python highlight"><pre><span></span><code>print("CODE" * 10_000)</code></pre></div>
<div class="output"><div class="highlight"><pre><code>OUTPUT</code></pre></div></div>
<details><summary>QUESTION</summary><p>ANSWER</p></details>
<div class="tabbed-set tabbed-alternate">
<input checked name="t" type="radio" id="t1"><input name="t" type="radio" id="t2">
<div class="tabbed-labels"><label for="t1">TAB1</label><label for="t2">TAB2</label></div>
<div class="tabbed-content"><div class="tabbed-block"><p>FIRST</p></div>
<div class="tabbed-block"><p>SECOND</p></div></div></div>
<h2 id="below">Below</h2><p>End.</p>{more}"""


@pytest.fixture
def small(site: Path, tmp_path: Path) -> Callable[[str], Path]:
    def written(more: str = "") -> Path:
        styles = next(site.glob("assets/stylesheets/main.*.css")).as_uri()
        own = (Path(pdf.__file__).parents[2] / "theme" / "book.css").as_uri()
        pages = {
            "index": '<h1 id="home">One</h1><h2 id="up">Up</h2><p>Text.</p>',
            "two": TWO.format(more=more),
        }
        (tmp_path / "en").mkdir(exist_ok=True)
        for name, text in pages.items():
            page = PAGE.format(styles=styles, own=own, text=text)
            (tmp_path / "en" / f"{name}.html").write_text(page, encoding="utf-8")
        contents = "- [Home](https://x/en/index.md): a\n- [Two (2)](https://x/en/two.md): b\n"
        (tmp_path / "en" / "llms.txt").write_text(f"# A & B\n\n{contents}", encoding="utf-8")
        return tmp_path

    return written


@pytest.fixture
def printed(browser: Browser, small: Callable[[str], Path]) -> PdfReader:
    return PdfReader(io.BytesIO(pdf.printed(browser, small(""), "en")))


WANTED = [(1, "One"), (2, "Up"), (1, "Two"), (2, "Below")]


def test_everything_is_unfolded_and_links_lead_on(printed: PdfReader) -> None:
    assert printed.pages[0].extract_text().count("About.") == 1
    words = ["QUESTION", "ANSWER", "TAB1", "TAB2", "FIRST", "SECOND", "CODE", "OUTPUT"]
    assert papercheck.lost(printed, [3], words) == []
    assert papercheck.bookmarks(printed, WANTED) == []
    assert papercheck.unnumbered(printed, WANTED) == []
    assert papercheck.links(printed) == []
    assert {str(note.get_object()["/Dest"]) for note in printed.pages[3].annotations or []} == {
        "/index.up",
        "/two.below",
    }
    assert papercheck.form(printed, "en", "A & B") == []


def test_faults_of_a_pdf_are_found(printed: PdfReader) -> None:
    assert papercheck.bookmarks(printed, WANTED[:-1]) != []
    assert papercheck.bookmarks(printed, [WANTED[1], WANTED[0], *WANTED[2:]]) != []
    assert papercheck.unnumbered(printed, [*WANTED, (2, "More")]) == ["4 of 5 are there"]
    assert papercheck.lost(printed, [0], ["no such words"]) == ["no such words"]
    assert papercheck.form(printed, "fr", "Livre") == ["the language is en", "the title is A & B"]
    writer = PdfWriter(printed)
    one, two = (note.get_object() for note in writer.pages[3].annotations or [])
    one[NameObject("/Dest")] = TextStringObject("order.none")
    del two[NameObject("/Dest")]
    two[NameObject("/A")] = DictionaryObject({NameObject("/URI"): TextStringObject("file:///order.html")})
    table = StreamObject()
    table.set_data(b"1 beginbfchar\n<05> <2F12>\nendbfchar")
    own: Any = {"/Type": "/Font", "/Subtype": "/TrueType", "/BaseFont": "/Times"}
    font = DictionaryObject({NameObject(key): NameObject(value) for key, value in own.items()})
    font[NameObject("/ToUnicode")] = writer._add_object(table)
    fonts: Any = writer.pages[3]["/Resources"]
    fonts["/Font"][NameObject("/F99")] = writer._add_object(font)
    writer.pages[3].scale_by(0.5)
    del writer.root_object["/StructTreeRoot"]
    writer.add_blank_page(595, 842)
    writer.insert_page(writer.pages[0], 1)
    bad = reread(writer)
    assert papercheck.links(bad) == ["page 5: nothing at order.none", "page 5: a link to file:///order.html"]
    assert papercheck.unembedded(bad) == ["/Times"]
    assert papercheck.radicals(bad) == ["⼒"]
    assert papercheck.blank(bad) == ["page 6 is blank"]
    size, *rest = papercheck.form(bad, "en", "A & B")
    assert "is no A4" in size
    assert rest == ["no tags"]
    assert "page 5 is not given" in papercheck.unnumbered(bad, WANTED)
    writer.remove_annotations(None)
    assert papercheck.links(reread(writer)) == ["no link stays in the book"]


def reread(writer: PdfWriter) -> PdfReader:
    file = io.BytesIO()
    writer.write(file)
    return PdfReader(file)


def test_code_is_wrapped_and_never_cut(browser: Browser, small: Callable[[str], Path]) -> None:
    code = "x" * 300 + "END"
    book = PdfReader(io.BytesIO(pdf.printed(browser, small(f"<pre><code>{code}</code></pre>"), "en")))
    where: list[float] = []

    def see(text: str, _: object, matrix: list[float], *rest: object) -> None:
        where.extend([matrix[4]] * ("END" in text))

    book.pages[3].extract_text(visitor_text=see)
    assert papercheck.lost(book, [3], [code]) == []
    assert where
    assert max(where) < papercheck.A4[0]


def test_a_lost_picture_stops_the_book(browser: Browser, small: Callable[[str], Path]) -> None:
    with pytest.raises(ValueError, match=r"the en book lacks file:///.*/none\.png"):
        pdf.printed(browser, small('<img alt="" src="none.png">'), "en")


def test_no_site_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no book of a built site"):
        archive.make(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# --- The zip ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def zipped(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("zipped") / "book.zip"
    archive.archive(site, path)
    return path


@pytest.fixture(scope="session")
def folder(zipped: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zip, unpacked."""
    place = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(zipped) as packed:
        packed.extractall(place)
    assert [path.name for path in place.iterdir()] == ["posenc-book"]
    return place / "posenc-book"


def test_the_folder_is_whole(folder: Path) -> None:
    assert papercheck.unpacked(folder) == []


@pytest.mark.parametrize(
    "name", ["index.html?stay", "en/index.html", "zh/rotary.html", "en/labs/waveforms.html"]
)
def test_the_folder_opens_from_disk(browser: Browser, folder: Path, name: str) -> None:
    assert opened(browser, folder, name) == []


def opened(browser: Browser, folder: Path, name: str) -> list[str]:
    """What a page from disk lacks or complains of."""
    file, _, query = name.partition("?")
    visit = Visit((folder / file).as_uri() + (f"?{query}" if query else ""))
    with browser.new_page() as page:
        browsing.watch(page, visit)
        page.goto(visit.url)
        page.wait_for_load_state("networkidle")
    return visit.elsewhere + visit.failed + visit.console


def test_the_zip_runs_blocks_only_where_that_is_asked_for(site: Path, tmp_path: Path) -> None:
    if not (site / "py").is_dir():
        missing.skip_or_fail("runtime", "no Python in the pages: `python -m press runtime`")
    page = (site / "en" / "rotary.html").read_text(encoding="utf-8")
    small = tmp_path / "small"  # of the site, as much as is looked at
    for name in ("py/files.json", "en/runtime/run.js", "en/rotary.html", "en/labs/run.html"):
        (small / name).parent.mkdir(parents=True, exist_ok=True)
        (small / name).write_text(page if name == "en/rotary.html" else "{}", encoding="utf-8")
    for asked in (False, True):
        archive.archive(small, tmp_path / "a.zip", with_runtime=asked)
        with zipfile.ZipFile(tmp_path / "a.zip") as packed:
            held = {name.partition("/")[2]: packed.read(name).decode() for name in packed.namelist()}
        assert ("py/files.json" in held, "en/runtime/run.js" in held) == (asked, asked)
        assert "en/labs/run.html" in held
        assert ["runtime/run" in held["en/rotary.html"], "run-config" in held["en/rotary.html"]] == [
            asked,
            asked,
        ]
        assert held["en/rotary.html"].startswith(page[:1000])
        assert held["en/rotary.html"].count("<script") == page.count("<script") - 3 * (not asked)


def test_faults_of_a_folder_are_found(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "sitemap.xml").touch()
    text = '<link rel="icon" href="data:,"><img src="none.png"><a href="zh/none.html">a</a>'
    (tmp_path / "index.html").write_text(text)
    faults = papercheck.unpacked(tmp_path)
    assert {"en/sitemap.xml is for a server", "no zh/index.html"} <= set(faults)
    assert "index.html: zh/none.html: no such file" in faults
    assert any("none.png" in fault for fault in opened(browser, tmp_path, "index.html"))


def test_the_same_site_gives_the_same_zip(site: Path, zipped: Path, tmp_path: Path) -> None:
    archive.archive(site, tmp_path / "again.zip")
    again = (tmp_path / "again.zip").read_bytes()
    assert again == zipped.read_bytes()
    names = zipfile.ZipFile(io.BytesIO(again)).namelist()
    assert names == sorted(names)
    assert not any(re.search(r"\.\.|^/|\\", name) for name in names)
