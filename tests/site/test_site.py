"""The built site: one full build, what a browser would stumble over in it, and what must stop a build."""

from __future__ import annotations

import filecmp
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import sitecheck
from book import page as pages
from sitebuild import ROOT, build

Check = Callable[[Path], list[str]]


# --- The site -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", sitecheck.CHECKS, ids=lambda check: check.__name__)
def test_the_site(site: Path, check: Check) -> None:
    assert check(site) == []


def test_every_page_is_built(site: Path) -> None:
    for book in sitecheck.BOOKS:
        for source in (ROOT / "docs" / book).rglob("*"):
            if source.suffix in (".md", ".py"):
                page = site / book / source.relative_to(ROOT / "docs" / book).with_suffix(".html")
                assert page.is_file(), page


def test_every_figure_is_in_its_page(site: Path) -> None:
    for book in sitecheck.BOOKS:
        for source in (ROOT / "docs" / book).rglob("*"):
            text = source.read_text(encoding="utf-8") if source.suffix in (".md", ".py") else ""
            if source.suffix == ".md":
                wanted = len(pages.read(source).figures)
            else:
                wanted = len(re.findall(r"(?m)^# (Figure:|图：)", text))
            page = site / book / source.relative_to(ROOT / "docs" / book).with_suffix(".html")
            if text:
                assert sitecheck.figures(page) == (wanted, []), page


def test_formulas_are_mathml(site: Path) -> None:
    for book in sitecheck.BOOKS:
        for source in (ROOT / "docs" / book).glob("*.md"):
            wanted = len(pages.read(source).formulas)
            page = sitecheck.soup(site / book / source.with_suffix(".html").name)
            assert len(page.select("article math annotation")) == wanted, source
        assert (site / book / "stix-two-math.woff2").stat().st_size < 100_000


def test_the_front_page_leads_to_both_books_without_javascript(site: Path) -> None:
    front = sitecheck.soup(site / "index.html")
    assert {a["href"] for a in front.select("main a")} == {"en/index.html", "zh/index.html"}
    assert {section["lang"] for section in front.select("section")} == {"en", "zh"}


def test_labs_bring_no_style_sheet_of_their_own_and_can_be_downloaded(site: Path) -> None:
    for book in sitecheck.BOOKS:
        for page in (site / book / "labs").glob("*.html"):
            html = page.read_text(encoding="utf-8")
            assert "jp-" not in html
            assert len(html) < 400_000
            notebook = json.loads(page.with_suffix(".ipynb").read_text(encoding="utf-8"))
            assert any(cell["cell_type"] == "code" for cell in notebook["cells"])
            assert (
                page.with_suffix(".py").read_bytes()
                == (ROOT / "docs" / book / "labs" / page.with_suffix(".py").name).read_bytes()
            )


def test_a_second_build_runs_nothing_and_gives_the_same_bytes(site: Path, tmp_path: Path) -> None:
    status, said, _ = build(ROOT, tmp_path / "site")
    assert status == 0, said
    assert not re.search(r"\bRan ", said), said
    assert different(site, tmp_path / "site") == []


def different(one: Path, other: Path) -> list[str]:
    """Files that are not the same byte for byte; gzip writes the time of packing into sitemap.xml.gz."""
    names = [
        {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
        for site in (one, other)
    ]
    found = sorted(names[0] ^ names[1])
    _, wrong, errors = filecmp.cmpfiles(one, other, sorted(names[0] & names[1]), shallow=False)
    return [file for file in (*found, *wrong, *errors) if not file.endswith(".xml.gz")]


# --- The checks themselves ----------------------------------------------------------------------------------

HEAD = '<html lang="{0}"><body><a class="book-language" href="../{1}/index.html">x</a>'
ENTRY = "<url><loc>http://x/{0}/index.html</loc>{1}</url>"
TWINS = "".join(f'<xhtml:link hreflang="{book}" href="http://x/{book}/index.html"/>' for book in ("en", "zh"))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A site of two pages in which every check finds nothing."""
    for book, other in (("en", "zh"), ("zh", "en")):
        (tmp_path / book / "search").mkdir(parents=True)
        body = '<h1 id="top">T</h1><a href="#top">t</a><p><code>$x</code></p>'
        (tmp_path / book / "index.html").write_text(HEAD.format(book, other) + body)
        index = {"docs": [{"location": "index.html", "title": "T", "text": "x = <code>\\frac</code>"}]}
        (tmp_path / book / "search" / "search_index.json").write_text(json.dumps(index))
        (tmp_path / book / "sitemap.xml").write_text(f"<urlset>{ENTRY.format(book, TWINS)}</urlset>")
    return tmp_path


@pytest.mark.parametrize("check", sitecheck.CHECKS, ids=lambda check: check.__name__)
def test_a_good_site_has_no_faults(small: Path, check: Check) -> None:
    assert check(small) == []


@pytest.mark.parametrize(
    ("check", "bad"),
    [
        (sitecheck.third_parties, '<script src="https://cdn.example/a.js"></script>'),
        (sitecheck.third_parties, '<link rel="stylesheet" href="//fonts.example/a.css">'),
        (sitecheck.third_parties, '<link rel="preconnect" href="https://fonts.example">'),
        (
            sitecheck.third_parties,
            '<link rel="alternate" href="https://example.org/zh/"><script src="index.html"></script>',
        ),
        (sitecheck.third_parties, '<img srcset="a.png 1x, https://cdn.example/a.png 2x">'),
        (sitecheck.third_parties, '<div style="background: url(https://cdn.example/a.png)"></div>'),
        (sitecheck.third_parties, "<style>@import 'https://cdn.example/a.css';</style>"),
        (sitecheck.third_parties, '<svg><image xlink:href="https://cdn.example/a.png"/></svg>'),
        (sitecheck.links, '<a href="nowhere.html">x</a>'),
        (sitecheck.links, '<a href="index.html#nowhere">x</a>'),
        (sitecheck.links, '<img src="nowhere.png">'),
        (sitecheck.links, '<a href="/nowhere/">x</a>'),
        (sitecheck.duplicate_ids, '<p id="top">x</p>'),
        (sitecheck.unset_formulas, "<p>$x$</p>"),
        (sitecheck.unset_formulas, r"<p>\(x\)</p>"),
        (sitecheck.unset_formulas, r"<p>\frac</p>"),
        (sitecheck.unset_formulas, '<span class="arithmatex">x</span>'),
    ],
)
def test_a_bad_page_is_found(small: Path, check: Check, bad: str) -> None:
    page = small / "en" / "index.html"
    page.write_text(page.read_text() + bad)
    assert check(small) != []


def test_a_plain_link_elsewhere_is_no_third_party(small: Path) -> None:
    page = small / "en" / "index.html"
    page.write_text(page.read_text() + '<a href="https://arxiv.org/abs/1706.03762">paper</a>')
    assert sitecheck.third_parties(small) == []
    assert sitecheck.links(small) == []


def test_a_third_party_in_a_style_sheet_is_found(small: Path) -> None:
    (small / "book.css").write_text('@font-face { src: url("https://fonts.example/a.woff2"); }')
    assert sitecheck.third_parties(small) == ["book.css: https://fonts.example/a.woff2"]


def test_a_page_without_its_twin_is_found(small: Path) -> None:
    shutil.copy(small / "en" / "index.html", small / "en" / "more.html")
    assert sitecheck.language_switch(small) == ["en/more.html: the switch leads to '../zh/index.html'"]
    assert sitecheck.sitemaps(small) == ["en/more.html: no en", "en/more.html: no zh"]
    assert sitecheck.search_index(small) == ["en: more.html cannot be found by searching"]


def test_the_wrong_language_is_found(small: Path) -> None:
    shutil.copy(small / "en" / "index.html", small / "zh" / "index.html")
    assert sitecheck.language(small) == ["zh/index.html: lang=en"]


@pytest.mark.parametrize(
    "entry",
    [
        {"location": "../zh/index.html", "title": "", "text": ""},
        {"location": "gone.html", "title": "", "text": ""},
        {"location": "index.html#gone", "title": "", "text": ""},
        {"location": "index.html", "title": "", "text": r"\(\omega\)"},
        {"location": "index.html", "title": "<math>x</math>", "text": ""},
    ],
)
def test_a_bad_entry_of_the_search_index_is_found(small: Path, entry: dict[str, str]) -> None:
    index = small / "en" / "search" / "search_index.json"
    data = json.loads(index.read_text())
    index.write_text(json.dumps({"docs": [*data["docs"], entry]}))
    assert len(sitecheck.search_index(small)) == 1


def test_a_difference_between_two_builds_is_found(
    small: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / "site"
    shutil.copytree(small, other)
    assert different(small, other) == []
    (other / "en" / "index.html").write_text("other")
    (other / "zh" / "more.html").write_text("more")
    assert different(small, other) == ["zh/more.html", "en/index.html"]


# --- What must stop a build ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The machinery of the book around pages of one line each."""
    root = tmp_path_factory.mktemp("mini")
    shutil.copy(ROOT / "mkdocs.yml", root)
    for part in ("home", "hooks", "theme"):
        shutil.copytree(
            ROOT / "docs" / part, root / "docs" / part, ignore=shutil.ignore_patterns("__pycache__")
        )
    for book in sitecheck.BOOKS:
        (root / "docs" / "sites" / book).mkdir(parents=True)
        shutil.copy(ROOT / "docs" / "sites" / book / "mkdocs.yml", root / "docs" / "sites" / book)
        nav = (ROOT / "docs" / "sites" / book / "mkdocs.yml").read_text(encoding="utf-8")
        for file in re.findall(r"(?m)^ +- .*: (\S+\.(?:md|py))$", nav):
            page = root / "docs" / book / file
            page.parent.mkdir(parents=True, exist_ok=True)
            if page.suffix == ".md":
                head = f"---\ntitle: {page.stem}\ndescription: d\n---\n"
                page.write_text(f"{head}# T {{#top}}\n\nText.\n", encoding="utf-8")
            else:
                page.write_text("# %% [markdown]\n# # T {#top}\n\n# %%\nprint(6 * 7)\n", encoding="utf-8")
    (root / "posenc").mkdir()
    return root


@pytest.fixture
def mini_book(mini: Path, tmp_path: Path) -> Path:
    shutil.copytree(mini, tmp_path / "mini")
    return tmp_path / "mini"


def test_links_anchors_and_twins_that_are_missing_stop_a_build_by_name(mini_book: Path) -> None:
    for book, page, text in (
        ("en", "order.md", "[x](gone.md)"),
        ("en", "naive.md", "[x](order.md#gone)"),
        ("zh", "index.md", "[x](#here-not)"),
    ):
        with (mini_book / "docs" / book / page).open("a", encoding="utf-8") as file:
            file.write(f"\n{text}\n")
    (mini_book / "docs" / "en" / "extra.md").write_text("# Extra {#extra}\n")
    status, said, _ = build(mini_book, mini_book / "site", POSENC_EXECUTE="0")
    assert status != 0, said
    assert "'order.md' contains a link 'gone.md'" in said
    assert "'naive.md' contains a link 'order.md#gone'" in said
    assert "'en/extra.md' has no twin 'zh/extra.md'" in said


def test_a_fault_in_the_second_book_alone_stops_a_build(mini_book: Path) -> None:
    with (mini_book / "docs" / "zh" / "order.md").open("a", encoding="utf-8") as file:
        file.write("\n$\\fooo x$\n")
    status, said, _ = build(mini_book, mini_book / "site", POSENC_EXECUTE="0")
    assert status != 0, said
    assert r"docs/zh/order.md:9: formula '\fooo x': Unknown command" in said


@pytest.mark.parametrize("name", ["order.md", "labs/masks.py"])
def test_a_broken_head_stops_a_build_by_page_and_line(mini_book: Path, name: str) -> None:
    page = mini_book / "docs" / "zh" / name
    head = "---\ntitle: a: b\ndescription: d\n---\n"
    if page.suffix == ".py":
        head = "".join(f"# {line}\n" for line in head.splitlines())
    page.write_text(f"{head}# T {{#top}}\n", encoding="utf-8")
    status, said, _ = build(mini_book, mini_book / "site", POSENC_EXECUTE="0")
    assert status != 0, said
    assert f"docs/zh/{name}:2: the front matter is no YAML: mapping values are not allowed here" in said
    assert "Traceback" not in said


def test_a_failing_cell_stops_a_build_by_file_and_line(mini_book: Path) -> None:
    lab = next((mini_book / "docs" / "en" / "labs").glob("*.py"))
    lab.write_text(lab.read_text().replace("6 * 7", "6 / 0"))
    status, said, _ = build(mini_book, mini_book / "site", POSENC_CACHE=str(mini_book / "cache"))
    assert status != 0, said
    assert f"docs/en/labs/{lab.name}:5: ZeroDivisionError" in said
    assert "print(6 / 0)" in said


def test_a_lab_is_run_once_for_both_books_and_what_was_removed_is_gone(mini_book: Path) -> None:
    site = mini_book / "site"
    (site / "en").mkdir(parents=True)
    (site / "en" / "removed.html").write_text("old")
    status, said, _ = build(mini_book, site, POSENC_CACHE=str(mini_book / "cache"))
    assert status == 0, said
    labs = list((mini_book / "docs" / "en" / "labs").glob("*.py"))
    assert said.count("Ran docs/") == 1, said  # the stand-ins all hold the same cells
    for book in sitecheck.BOOKS:
        assert "42" in (site / book / "labs" / f"{labs[0].stem}.html").read_text(encoding="utf-8")
    assert not (site / "en" / "removed.html").exists()
    assert (site / "index.html").is_file()
