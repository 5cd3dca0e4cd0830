"""The reference: every public name has an entry, each entry a section of the book, and code in a line leads there."""

import re
from pathlib import Path
from typing import Any

import griffe
import pytest
from press import reference
from press.cache import ROOT
from press.check import reference as check
from press.reference import Entry

BIAS = Entry("alibi.alibi_bias", "alibi", "formulas", "alibi.md#formula")


def test_names_pages_and_sections_agree() -> None:
    assert [*check.faults()] == []


def test_a_name_without_an_entry_and_an_entry_without_a_name_are_named() -> None:
    public = ["alibi.alibi_bias", "alibi.alibi_slopes"]
    assert [*check.of_names([BIAS], public, ["turn"])] == [
        "docs/api.yml has no entry for posenc.alibi.alibi_slopes",
        "docs/api.yml has no entry for posenc.turn",
    ]
    assert [*check.of_names([BIAS], [], [])] == ["docs/api.yml: there is no posenc.alibi.alibi_bias"]
    assert [*check.of_names([BIAS], [*public, "a.turn"], ["turn"], ["alibi", "a"])] == []  # drafts may wait


@pytest.mark.parametrize(
    ("file", "old", "new", "fault"),
    [
        ("zh/alibi.md", "{#formula}", "", "alibi.alibi_bias is explained in zh/alibi.md#formula, which is not there"),
        ("en/api/alibi.md", "<!-- made", "<!-- Made", "docs/en/api: not once <!-- made: api alibi.formulas -->"),
        ("en/api/alibi.md", "formulas", "layers", "docs/api.yml has no alibi.layers for this page"),
    ],
)  # fmt: skip
def test_a_section_that_is_not_there_is_named(
    tmp_path: Path, file: str, old: str, new: str, fault: str
) -> None:
    for language in ("en", "zh"):
        (tmp_path / language / "api").mkdir(parents=True)
        (tmp_path / language / "alibi.md").write_text("## A {#formula}\n")
        (tmp_path / language / "api" / "alibi.md").write_text("<!-- made: api alibi.formulas -->\n")
    assert [*check.of_sections([BIAS], tmp_path)] == []
    (tmp_path / file).write_text((tmp_path / file).read_text().replace(old, new))
    assert fault in "\n".join(check.of_sections([BIAS], tmp_path))


@pytest.mark.parametrize(
    ("html", "leads"),
    [
        ("<p><code>posenc.alibi.alibi_bias</code> <code>alibi_bias()</code></p>", 1),  # once in a section
        ("<code>alibi_bias</code><h3>B</h3><code>posenc.alibi_bias</code>", 2),
        ("<h2><code>alibi_bias</code></h2><a><code>alibi_bias</code></a><pre><code>alibi_bias</code></pre>", 0),
        ("<code>turns</code> <code>alibi_bia</code> <code>alibi_bias(m, 4)</code>", 0),  # a word, a slip, a call
    ],
)  # fmt: skip
def test_code_in_a_line_that_is_a_name_leads_to_its_entry(html: str, leads: int) -> None:
    found = reference.linked(html, "labs/masks.py")
    assert found.count('<a class="api-link" href="../api/alibi.html#alibi_bias"><code>') == leads
    assert "RotaryEmbedding</code></a>" not in found


def test_a_section_names_what_it_explains_before_the_next_heading() -> None:
    page = "# A {#a}\n\n## F {#formula}\n\nText.\n\n```python\n# no heading {#x}\n```\n\n### B {#b}\n"
    before, _, after = reference.with_names(page, "alibi.md", "zh").partition("函数参考：")
    assert before.endswith("```\n\n\n")
    assert after.startswith("[`alibi_bias`](api/alibi.md#alibi_bias)")
    assert after.endswith("### B {#b}\n")
    below = reference.with_names("# E {#in-code}\n", "exercises/index.md", "en")
    assert "[`check`](../api/exercises.md#check)" in below


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_entry_has_its_signature_with_shapes_and_leads_to_the_book(language: str) -> None:
    text = reference.made(ROOT / "docs" / language, "rotary.formulas")
    assert "### `apply_rotary` {#apply_rotary}\n\nQueries or keys" in text
    assert "\nposenc.apply_rotary(\n    x: Array,  # (..., seq, dim)\n" in text
    assert "](../rotary.md#in-code)" in text
    assert "```pycon\n>>> " in text
    drawn = reference.made(ROOT / "docs" / language, "rotary.pictures")
    assert "EXAMPLE" not in drawn
    assert drawn.count("plot.rotating_pairs(") == 2  # its signature, and a block of the page


def test_an_entry_says_all_that_the_docstring_says() -> None:
    heads = {"Args", "Returns", "Raises", "Attributes", "Shapes"}
    for path, text in reference._texts("en").items():
        found = reference.public(path)
        for each in [found, *reference.methods(found)]:
            said = set(re.findall(r"\w+", each.docstring.value)) - heads
            assert said - set(re.findall(r"\w+", text.replace("\\", ""))) == set(), f"{path} {each.name}"


GOOD = '''
def turned(x: Array, frequencies: Array, base: float) -> Array:
    """x, turned.

    Args:
        x: floating, shape (n, dim).
        frequencies: in radians per position, shape (dim/2,).
        base: above 0.

    Returns:
        Array (n, dim).

    Raises:
        ValueError: base is at most 0.

    >>> turned(1, 2)
    """
    raise ValueError
'''


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("shape (n, dim)", "the rows", "no shape of `x`"),
        ("in radians per position, ", "", "no unit of `frequencies`"),
        ("base: above", "bases: above", "nothing is said of `base`"),
        ("base: above", "base, bases: above", "there is no `bases`"),
        ("    Returns:\n        Array (n, dim).\n", "", "no `Returns:`"),
        ("    Raises:\n        ValueError: base is at most 0.\n", "", "no `Raises:`, and it raises"),
        (">>> ", "", "no example, here or in a block of the page that explains it"),
        ("ValueError: base is at most 0.", "base is wrong", "Failed to get 'exception: description' pair from"),
    ],
)  # fmt: skip
def test_what_a_docstring_lacks_is_named(old: str, new: str, fault: str) -> None:
    assert lacking(GOOD) == []
    assert fault in "\n".join(lacking(GOOD.replace(old, new)))


def lacking(code: str) -> list[str]:
    """What the docstring of the function in this code lacks."""
    lines = griffe.LinesCollection()
    lines[Path("a.py")] = code.splitlines()
    google: Any = {"docstring_parser": "google", "docstring_options": reference.OPTIONS}
    google["lines_collection"] = lines
    (found,) = griffe.visit("a", filepath=Path("a.py"), code=code, **google).functions.values()
    return [*check.of_docstring(found, "shift", shown=False)]


def test_the_unit_of_frequencies_that_are_returned_is_asked() -> None:
    code = GOOD.replace("turned(x", "slow_frequencies(x")
    good = code.replace("Array (n, dim).", "Array (n, dim), in radians per step.")
    assert lacking(good) == []
    assert lacking(code) == ["no unit of what it returns: 'radians per'"]


@pytest.mark.parametrize(
    ("docstring", "fault"),
    [
        ("x, turned.\n\nSource: Su et al. (2021), section 3.", ""),
        ("x, turned.\n\nSource: derived in this book, shift.md#split.\n\n>>> turned(1)", ""),
        ("x, turned, from a source.", "no `Source:`, a paper or the section of the book that derives it"),
        (
            "x, turned.\n\nSource: derived in this book, order.md#proof.",
            "its source is order.md#proof, and docs/api.yml says shift.md#split",
        ),
    ],
)
def test_a_docstring_without_its_source_is_named(docstring: str, fault: str) -> None:
    assert "".join(check.of_source(docstring, "shift.md#split")) == fault
