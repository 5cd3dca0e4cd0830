"""Formulas become MathML while the site is built; a mistake in one stops the build.

`pymdownx.arithmatex` finds `$…$` and `$$…$$`. `as_text` converts them and leaves in their place what they say
in plain characters, so that the search index and the table of contents hold `ω_i = 10000^(−2i/d)` and neither
TeX nor markup. `as_mathml`, after the search index has been fed, puts the MathML in; the TeX stays in an
`<annotation>`. `font_subset` is the part of STIX Two Math that the formulas use.
"""

from __future__ import annotations

import base64
import html
import importlib.util
import io
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from math_core import LatexError, LatexToMathML

from press import BookError, cache

if TYPE_CHECKING:
    from fontTools.ttLib import TTFont

    from press.book import Book

FONT = "stix-two-math.woff2"
LONG = 20  # characters of a formula in a line of text that may not fit a narrow screen

# What math-core prints literally, drops without a word or numbers by itself.
UNSUPPORTED = {
    r"\\\\\s*\[": r"a length after \\ ('\\[2pt]') would be printed: leave it out",
    r"\\begin\s*\{(align|gather|equation|multline|alignat|flalign)\}": "it is numbered: use the starred form",
    r"\\(tag|label|ref|eqref|newcommand|renewcommand|def|color)\b": "this command is not used in the book",
}

_MATH = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">(?P<open>\\[(\[])(?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
_MARK = re.compile(
    r'(?P<before>[(\[（“]*)<(?P<tag>span|div) class="formula" data-formula="(?P<number>\d+)">'
    r"(?P<text>.*?)</(?P=tag)>(?P<after>[])，。、：；？！）”,.:;?!]*)",
    re.DOTALL,
)
_VERBATIM = re.compile(r"<(pre|code|svg|script|style)\b.*?</\1>", re.DOTALL)
_TAGS = re.compile(r"<[^>]+>")
_ENVIRONMENT = re.compile(r"\\(begin|end)\s*\{")

_converter = LatexToMathML(annotation=True, fancy_error=False)


class FormulaError(BookError):
    """A formula that cannot be shown."""


# --- one formula -----------------------------------------------------------------------------------------


def to_mathml(tex: str, block: bool) -> str:
    r"""MathML for a formula, its TeX kept as an annotation.

    Raises FormulaError for a mistake, and for what the converter would print or drop without a word.

    >>> to_mathml("d", block=False)
    '<math><semantics><mi>d</mi><annotation encoding="application/x-tex">d</annotation></semantics></math>'
    >>> to_mathml(r"\frac{1}{", block=False)
    Traceback (most recent call last):
    press.formulas.FormulaError: Expected closing token "}", but reached end of input (at '')
    """
    tex = tex.strip()
    if not tex:
        raise FormulaError("the formula is empty")
    for pattern, reason in UNSUPPORTED.items():
        if found := re.search(pattern, tex):
            raise FormulaError(f"'{found[0]}': {reason}")
    try:
        mathml = _converter.convert_with_local_state(tex, displaystyle=block)
    except LatexError as error:
        position, _, message = str(error).partition(": ")
        rest = tex[int(position) :] if position.isdigit() else tex
        raise FormulaError(f"{(message or position).rstrip('.')} (at '{rest[:30]}')") from None
    if r"\\" in tex and not _ENVIRONMENT.search(tex):
        raise FormulaError(
            r"'\\' breaks a line only inside an environment such as aligned; here it would be dropped"
        )
    shown = mathml.partition("<annotation")[0]
    if "\\" in html.unescape(_TAGS.sub("", shown)) and r"\backslash" not in tex and r"\setminus" not in tex:
        raise FormulaError("a command would be printed as it is written")
    return mathml


def to_text(mathml: str) -> str:
    r"""A formula in plain characters on one line, for the search index and the table of contents.

    >>> to_text(to_mathml(r"\omega_i = 10000^{-2i/d}", block=False))
    'ω_i = 10000^(−2i/d)'
    >>> to_text(to_mathml(r"\frac{q k^\top}{\sqrt{d}}", block=False))
    '(qk^⊤)/(√d)'
    """
    # MathML in a page is HTML: its named characters are none in XML.
    plain = re.sub(r"&(?!(?:amp|lt|gt|quot|#\w+);)\w+;", lambda name: html.unescape(name[0]), mathml)
    root = ElementTree.fromstring(plain)
    text = "".join(c for c in _linear(root) if unicodedata.category(c) != "Cf")  # invisible operators
    text = unicodedata.normalize("NFKC", text)
    return re.sub(r"\s+", " ", text).strip()


_SPACED = set("=<>≤≥≠≈≡∼→←↦∈∉⊂⊆+−±×·∘⊕⊗∧∨")


def _linear(node: ElementTree.Element) -> str:
    tag = node.tag
    parts = [_linear(child) for child in node if child.tag != "annotation"]
    if tag == "mo":
        text = node.text or ""
        tight = node.get("lspace") == "0"  # a sign, or inside an index
        return f" {text} " if text in _SPACED and not tight else text
    if not parts:
        return node.text or (" " if tag == "mspace" and node.get("width") else "")
    if tag in ("msub", "munder"):
        return f"{parts[0]}_{_group(parts[1])}"
    if tag in ("msup", "mover"):
        return parts[0] + (parts[1] if tag == "mover" else f"^{_group(parts[1])}")
    if tag in ("msubsup", "munderover"):
        return f"{parts[0]}_{_group(parts[1])}^{_group(parts[2])}"
    if tag == "mfrac":
        return f"{_group(parts[0])}/{_group(parts[1])}"
    if tag in ("msqrt", "mroot"):
        return f"√{_group(parts[0])}"
    if tag == "mtr":
        return ", ".join(part for part in parts if part) + "; "
    if tag == "mtable":
        return "".join(parts).rstrip("; ")
    return "".join(parts)


def _group(text: str) -> str:
    text = text.strip()
    return text if len(text) == 1 or text.isalnum() else f"({text})"


# --- one page --------------------------------------------------------------------------------------------


def as_text(content: str, book: Book, name: str) -> str:
    """The page with the plain text of its formulas; their MathML waits for `as_mathml`."""
    formulas: list[str] = []

    def keep(match: re.Match[str]) -> str:
        tex, block = html.unescape(match["tex"]), match["open"] == r"\["
        try:
            mathml = to_mathml(tex, block)
        except FormulaError as error:
            return book.fault(f"{_place(book.source(name), tex)}: formula '{tex.strip()}': {error}")
        formulas.append(mathml)
        tag, text = match["tag"], html.escape(to_text(mathml), quote=False)
        return f'<{tag} class="formula" data-formula="{len(formulas) - 1}">{text}</{tag}>'

    content = _MATH.sub(keep, content)
    content = _leftover(content, book, name) + content
    book.formulas[name] = formulas
    book.characters[name] = set().union(*map(_characters, formulas))
    return content


def as_mathml(output: str, book: Book, name: str) -> str:
    """The page with its formulas in their places."""
    formulas = book.formulas.pop(name, [])

    def place(match: re.Match[str]) -> str:
        mathml, tag = formulas[int(match["number"])], match["tag"]
        # A wide formula scrolls in its own box; book.js lets the keyboard reach it where it does.
        wide = tag == "div" or len(match["text"]) > LONG
        shown = f'<{tag} class="formula">{mathml}</{tag}>' if wide else mathml
        # Chromium would begin a line with the full stop behind a formula.
        held = match["before"] + shown + match["after"]
        return held if held == shown else f'<span class="unbroken">{held}</span>'

    return _MARK.sub(place, output)


def _place(source: Path, tex: str) -> str:
    """'docs/en/order.md:12' for the first line of the source that holds the formula."""
    name = cache.shown(source)
    first = next((line.strip() for line in tex.splitlines() if line.strip()), "")
    if first and source.is_file():
        for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
            if first in line:
                return f"{name}:{number}"
    return name


def _leftover(content: str, book: Book, name: str) -> str:
    """A dollar sign or a TeX delimiter that is no formula is one that somebody forgot to close."""
    prose = html.unescape(_TAGS.sub("", _VERBATIM.sub("", content)))
    if found := re.search(r".{0,30}(\$|\\[()\[\]]).{0,30}", prose):
        text = found[0].strip()
        place = _place(book.source(name), text)
        return book.fault(f"{place}: '{found[1]}' opens or closes no formula: '…{text}…'")
    return ""


def plain_title(title: str) -> str:
    """A title in the table of contents, with what its formulas say."""
    return re.sub(
        r"\\\((.*?)\\\)",
        lambda tex: html.escape(to_text(to_mathml(html.unescape(tex[1]), block=False)), quote=False),
        title,
    )


# --- the font --------------------------------------------------------------------------------------------


def _characters(mathml: str) -> set[str]:
    shown = re.sub(r"<annotation.*?</annotation>", "", mathml)
    return set(html.unescape(_TAGS.sub("", shown)))


# The mathematical italic that a browser shows for a letter that stands alone in a formula.
_ITALICS = map(chr, [*range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C)])
_SLANTED = {chr(int(of[1], 16)): c for c in _ITALICS if (of := unicodedata.decomposition(c).split())} | {
    "h": "ℎ"
}

# Roots, brackets, bars and braces are drawn by the browser or stretched: a subset has to name them.
_ALWAYS = "0123456789()[]{}|‖⟨⟩⌈⌉⌊⌋√=+−×·,.…⋯⋮⋱/′∑∏∫∞≤≥≠≈→∈⏞⏟¯\u0302\u20d7 "


def font_subset(characters: Iterable[str]) -> bytes:
    """STIX Two Math, cut to `characters` with their italics and stretched forms, as WOFF2.

    The same characters give the same bytes. The font and its licence (OFL) come with the package ziamath.
    """
    wanted = set(characters) | set(_ALWAYS)
    wanted |= {_SLANTED[character] for character in wanted & _SLANTED.keys()}
    text, source = "".join(sorted(wanted)), _font_file()
    sources = (Path(__file__).read_bytes(), source.read_bytes())
    entry = cache.key(cache.version("fonttools"), cache.version("brotli"), *sources, text)
    store = cache.Store("font", suffix=".base64")
    if (kept := store.get(entry)) is not None:
        return base64.b64decode(kept)
    from fontTools import subset, ttLib  # it takes its time

    options = subset.Options(
        flavor="woff2",
        layout_features=["ssty", "dtls", "flac", "ccmp", "locl", "mark", "mkmk"],
        drop_tables=[*subset.Options().drop_tables, "DSIG"],
        hinting=False,
        name_IDs=[0, 1, 2, 4, 6, 13, 14],  # whose it is and its licence stay in the file
        notdef_outline=True,
        recalc_timestamp=False,
    )
    font = ttLib.TTFont(source, recalcTimestamp=False)
    _share_scripts(font)
    cutter = subset.Subsetter(options)
    cutter.populate(text=text)
    cutter.subset(font)
    _narrow_roots(font)
    buffer = io.BytesIO()
    subset.save_font(font, buffer, options)
    store.put(entry, base64.b64encode(buffer.getvalue()).decode())
    return buffer.getvalue()


def _share_scripts(font: TTFont) -> None:
    """Make the scripts of scripts those of scripts, smaller: a quarter of the file, and nobody sees the difference."""
    substitutions = font["GSUB"].table
    drawn = [each.Feature for each in substitutions.FeatureList.FeatureRecord if each.FeatureTag == "ssty"]
    for number in {number for feature in drawn for number in feature.LookupListIndex}:
        for table in substitutions.LookupList.Lookup[number].SubTable:
            for forms in table.alternates.values():
                forms[1:] = forms[:1] * len(forms[1:])


def _narrow_roots(font: TTFont) -> None:
    """Make the tall root signs as wide as the small one.

    Chromium keeps for every root the width of the widest sign, which leaves a gap behind a small one.
    """
    glyphs, widths = font["glyf"], font["hmtx"]
    root = font.getBestCmap()[ord("√")]
    variants = font["MATH"].table.MathVariants
    tall = variants.VertGlyphConstruction[variants.VertGlyphCoverage.glyphs.index(root)]
    names = {record.VariantGlyph for record in tall.MathGlyphVariantRecord}
    names |= {record.glyph for record in tall.GlyphAssembly.PartRecords}
    for name in names - {root}:
        scale = widths[root][0] / widths[name][0]
        glyphs[name].coordinates.scale((scale, 1))
        glyphs[name].coordinates.toInt()
        glyphs[name].recalcBounds(glyphs)
        widths[name] = (widths[root][0], glyphs[name].xMin)


def _font_file() -> Path:
    found = importlib.util.find_spec("ziamath")
    if found is None or found.origin is None:
        raise BookError("The package ziamath, which brings the font of the formulas, is not installed")
    return Path(found.origin).parent / "fonts" / "STIXTwoMath-Regular.ttf"
