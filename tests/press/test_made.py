"""What is made from a file for a page: it is there, and another name is refused."""

import re

import pytest
from press import BookError, glossary, made, pages
from press.cache import ROOT


def test_only_what_is_known_is_made() -> None:
    with pytest.raises(BookError, match="<!-- made: terns -->"):
        made.filled("<!-- made: terns -->", ROOT / "docs" / "en")


@pytest.mark.parametrize(
    ("language", "row"), [("en", ">进程</span> |  |"), ("zh", ">rank</span> | 进程 |  |")]
)
def test_the_glossary_has_each_term_in_both_languages(language: str, row: str) -> None:
    page = made.whole(pages.read(ROOT / "docs" / language / "glossary.md"))
    assert page.text.count("\n- **") == page.text.count("\n| ") - 1 > 80
    assert row in page.text  # a search for the word of the other book leads there, and not to this page
    assert page.text.count("data-search-exclude") == 2 * (page.text.count("\n| ") - 1)


@pytest.mark.parametrize(
    ("language", "html", "linked"),
    [
        ("en", "<p>The <b>causal mask</b>, causal masks and a causal mask</p>", [("causal-mask", "causal masks")]),
        ("en", "<h2>Causal mask</h2><p><code>causal mask</code> a key, <a>a bucket</a></p>", []),
        ("en", '<p><span class="arithmatex">bucket</span></p><h2 id="sources">S</h2><p>bucket</p>', []),
        ("en", "<p>locality</p>", []),  # the page explains it
        ("zh", "<ul><li>旋转位置编码</li></ul><p>因果掩码与因果掩码</p>", [
            ("rotary-position-embedding", "旋转位置编码"), ("causal-mask", "因果掩码")]),
    ],
)  # fmt: skip
def test_the_first_use_of_a_term_leads_to_the_glossary(
    language: str, html: str, linked: list[tuple[str, str]]
) -> None:
    found = glossary.linked(html, language, "locality.md")
    assert (
        re.findall(r'<a class="term" href="glossary.html#([\w-]+)" title="[^"<>$]+">(.*?)</a>', found)
        == linked
    )
    assert re.sub(r'<a class="term".*?>(.*?)</a>', r"\1", found) == html
