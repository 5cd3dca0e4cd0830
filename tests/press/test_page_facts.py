"""Where the text of a page is corrected. What it says to search engines, sitecheck reads in the site."""

import pytest
from press import page_facts
from press.book import Book
from press.cache import ROOT


def test_a_page_is_corrected_where_whoever_builds_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that it is made from, which for a lab is a script; nowhere if nobody says where."""
    book = Book("en", ROOT / "docs" / "en")
    monkeypatch.delenv("POSENC_REPOSITORY", raising=False)
    assert page_facts.correction("rotary.md", book) == ""
    monkeypatch.setenv("POSENC_REPOSITORY", "https://github.com/one/book/")
    for name, file in [("rotary.md", "en/rotary.md"), ("labs/waveforms.md", "labs/waveforms.py")]:
        assert (ROOT / "docs" / file).is_file()
        assert page_facts.correction(name, book) == f"https://github.com/one/book/edit/main/docs/{file}"
