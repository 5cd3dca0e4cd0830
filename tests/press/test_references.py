"""The papers of the book: what its file must hold, and what is said of a page that cites none of it."""

import re

import pytest
from press import BookError, made, pages, references
from press.cache import ROOT

GOOD = """@misc{vaswani2017,
  author = {Ashish Vaswani and others},
  title = {{Attention Is All You Need}},
  year = {2017},
  eprint = {1706.03762},
  en = {The Transformer is introduced.},
  zh = {提出 Transformer。},
}
"""
SOURCE = "- Vaswani, *Attention Is All You Need*, 2017. [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)"


def test_a_paper_has_its_key_behind_it_among_the_sources_alone() -> None:
    page = f"{SOURCE}\n\n## Sources {{#sources}}\n\n{SOURCE}\n- a program\n"
    keyed = f"{SOURCE} [vaswani2017](references.md#vaswani2017){{.cite}}"
    assert references.with_keys(page) == page.replace(f"\n\n{SOURCE}\n", f"\n\n{keyed}\n")
    assert list(references.sources(page)) == [(5, SOURCE), (6, "- a program")]


def test_an_entry_is_what_bibtex_has() -> None:
    (entry,) = references.read(GOOD)
    assert entry.bibtex() == "".join(GOOD.splitlines(keepends=True)[:5]) + "}\n"
    with pytest.raises(BookError, match=re.escape("no entry with a field a line: @misc{a, year = 2017}")):
        references.read(GOOD + "@misc{a, year = 2017}\n")


@pytest.mark.parametrize(
    ("old", "new", "lacks"),
    [
        ("introduced.", "introduced.", []),
        ("introduced.", "introduced", ["has no sentence in en"]),
        ("提出 Transformer。", "It is introduced.", ["has no sentence in zh"]),
        ("1706.03762", "1706.03763", ["is cited by no page in en", "is cited by no page in zh"]),
    ],
)
def test_an_entry_that_lacks_something_is_named(old: str, new: str, lacks: list[str]) -> None:
    (entry,) = references.read(GOOD.replace(old, new))
    books = {"en": [SOURCE], "zh": [SOURCE]}
    assert [*references.faults([entry], books)] == [
        f"docs/references.bib: vaswani2017 {each}" for each in lacks
    ]
    assert "docs/references.bib: the key vaswani2017 stands there twice" in references.faults(
        [entry] * 2, books
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_has_all_papers_and_the_book(language: str) -> None:
    page = pages.read(ROOT / "docs" / language / "references.md")
    text = made.whole(page).text
    assert text.count("\n- **") == len(references.entries()) > 100
    assert text.count("@misc{") + text.count("@article{") == len(references.entries()) + 1
    known = {entry.fields.get("eprint") for entry in references.entries()}
    assert known >= {*re.findall(r'"(\d{4}\.\d{5})"', page.blocks[0].code)}  # those of the timeline
