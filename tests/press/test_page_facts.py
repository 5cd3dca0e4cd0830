"""Where the text of a page is corrected. What it says to search engines, sitecheck reads in the site."""

import pytest
from press import page_facts
from press.book import Book
from press.cache import ROOT

import posenc


def test_a_page_is_corrected_where_whoever_builds_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that it is made from, which for a lab is a script; nowhere if nobody says where."""
    book = Book("en", ROOT / "docs" / "en")
    monkeypatch.delenv("POSENC_REPOSITORY", raising=False)
    assert page_facts.correction("rotary.md", book) == ""
    monkeypatch.setenv("POSENC_REPOSITORY", "https://github.com/one/book/")
    for name, file in [("rotary.md", "en/rotary.md"), ("labs/waveforms.md", "labs/waveforms.py")]:
        assert (ROOT / "docs" / file).is_file()
        assert page_facts.correction(name, book) == f"https://github.com/one/book/edit/main/docs/{file}"


def test_the_address_of_the_site_and_of_the_package_follow_from_the_repository(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("POSENC_REPOSITORY", "POSENC_SITE_URL"):
        monkeypatch.delenv(name, raising=False)
    assert page_facts.site_url() == ""
    assert page_facts.signed("posencPOSENC-SOURCE, POSENC-VERSION").startswith(
        f"posenc>={posenc.__version__}, {posenc.__version__}"
    )
    monkeypatch.setenv("POSENC_REPOSITORY", "https://github.com/one/book")
    assert page_facts.site_url() == "https://one.github.io/book/"
    if commit := page_facts.git("rev-parse", "HEAD"):
        archive = f"https://github.com/one/book/archive/{commit}.zip"
        assert page_facts.signed("posencPOSENC-SOURCE") == f"posenc @ {archive}"
    monkeypatch.setenv("POSENC_SITE_URL", "https://book.example.org")
    assert page_facts.site_url() == "https://book.example.org/"
