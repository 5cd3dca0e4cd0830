"""Formulas: TeX to MathML, what it says in plain characters, the font that goes with it."""

import io
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont
from press import BookError, formulas
from press.book import Book


@pytest.mark.parametrize(
    ("tex", "says"),
    [
        (r"\frac{1}{", "closing token"),
        (r"\fooo x", r"\fooo"),
        (r"\left( x", r"\right"),
        (r"x^1^2", "Duplicate"),
        (r"a & b", "table-like"),
        (r"\begin{pmatrix} a \\[2pt] b \end{pmatrix}", "leave it out"),
        (r"\begin{smallmatrix} a \end{smallmatrix}", "smallmatrix"),
        (r"\begin{split} a \end{split}", "split"),
        (r"\begin{align} a &= b \end{align}", "starred"),
        (r"\sum_{\substack{a \\ b}} c", "substack"),
        (r"x \tag{1}", r"\tag"),
        (r"a \\ b", "dropped"),
        ("  ", "empty"),
    ],
)
def test_a_mistake_or_what_cannot_be_shown_is_named(tex: str, says: str) -> None:
    with pytest.raises(formulas.FormulaError) as error:
        formulas.to_mathml(tex, block=True)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\sin\left(\frac{t}{10000^{2i/d}}\right)", "sin(t/(10000^(2i/d)))"),
        (r"\begin{pmatrix} c & s \\ -s & c \end{pmatrix}", "(c, s; −s, c)"),
        (r"\sum_{i=0}^{n-1} x_i", "∑_(i=0)^(n−1)x_i"),
        (r"\operatorname{softmax}(x) < 1", "softmax(x) < 1"),
        (r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "a, = b; c, = d"),
        (r"\mathbf{x} \in \mathbb{R}^d", "x ∈ R^d"),
    ],
)
def test_plain_text(tex: str, text: str) -> None:
    assert formulas.to_text(formulas.to_mathml(tex, block=True)) == text


def book(folder: Path, text: str = "") -> Book:
    """A book with one page."""
    (folder / "order.md").write_text(text, encoding="utf-8")
    return Book("en", folder)


def content(folder: Path, html: str) -> str:
    return formulas.as_text(html, book(folder), "order.md")


def test_a_page_gets_its_formulas_after_the_search_index(tmp_path: Path) -> None:
    small = book(tmp_path)
    html = r'<p>So <span class="arithmatex">\(a &lt; x_i\)</span>.</p><div class="arithmatex">\[y\]</div>'
    indexed = formulas.as_text(html, small, "order.md")
    assert "a &lt; x_i" in indexed
    assert "<math" not in indexed
    shown = formulas.as_mathml(indexed, small, "order.md")
    assert "<mrow><mi>a</mi><mo>&lt;</mo><msub>" in shown
    assert '<p>So <span class="unbroken"><math>' in shown
    assert "</math>.</span></p>" in shown
    assert '<math display="block">' in shown
    assert r'<annotation encoding="application/x-tex">a &lt; x_i</annotation>' in shown
    assert "arithmatex" not in shown


def test_a_mistake_stops_the_build_with_page_line_and_formula(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong, html = book(tmp_path, "one\n\nSo $\\fooo x$.\n"), r'<span class="arithmatex">\(\fooo x\)</span>'
    with pytest.raises(BookError, match=r"order\.md:3: formula '\\fooo x': Unknown command"):
        formulas.as_text(html, wrong, "order.md")
    wrong.serving = True
    assert "Unknown command" in formulas.as_text(html, wrong, "order.md")
    assert r"order.md:3: formula '\fooo x'" in capsys.readouterr().err


@pytest.mark.parametrize("stray", ["<p>costs $x and</p>", r"<p>So \(x and</p>", r"<p>x\] and</p>"])
def test_a_delimiter_without_its_partner_stops_the_build(tmp_path: Path, stray: str) -> None:
    with pytest.raises(BookError, match="opens or closes no formula"):
        content(tmp_path, stray)


def test_dollars_in_code_are_no_formulas(tmp_path: Path) -> None:
    html = "<p><code>$x</code></p><pre><span>echo $HOME</span></pre>"
    assert content(tmp_path, html) == html


def test_titles_in_the_contents_are_plain() -> None:
    assert formulas.plain_title(r"Why \(x^2\) and \(\omega_i\)?") == "Why x^2 and ω_i?"


def test_the_font_has_what_formulas_need_and_is_the_same_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for cache in ("one", "two"):
        monkeypatch.setenv("POSENC_CACHE", str(tmp_path / cache))
        made.append(formulas.font_subset("ωx𝐑"))
    assert made[0] == made[1]
    font = TTFont(io.BytesIO(made[0]))
    characters = font.getBestCmap()
    # as written, in the italics that a browser takes for a single letter, and what it draws itself
    for character in "ωx𝐑" + "\U0001d714" + "\U0001d465" + "√(‖":
        assert ord(character) in characters, character
    assert ord("ж") not in characters
    variants = font["MATH"].table.MathVariants
    assert characters[ord("(")] in variants.VertGlyphCoverage.glyphs
    assert characters[ord("√")] in variants.VertGlyphCoverage.glyphs
    signs = variants.VertGlyphConstruction[variants.VertGlyphCoverage.glyphs.index(characters[ord("√")])]
    tall = [record.VariantGlyph for record in signs.MathGlyphVariantRecord]
    assert len(tall) > 1
    assert len({font["hmtx"][name][0] for name in tall}) == 1  # else a small root has a gap behind it
    assert "Open Font License" in font["name"].getDebugName(13)
    (scripts,) = font["GSUB"].table.LookupList.Lookup[0].SubTable
    assert all(len(set(forms)) == 1 for forms in scripts.alternates.values()), "scripts of scripts"
    assert len(made[0]) < 20_000


def test_h_is_not_where_the_other_italics_are() -> None:
    assert [formulas._SLANTED[c] for c in "hgΩα∂ϵ"] == list("ℎ𝑔𝛺𝛼𝜕𝜖")
