"""The check of the figures on a page finds what a reader of the screen would miss."""

from __future__ import annotations

from pathlib import Path

import pytest
import sitecheck
from book import figures

SVG = '<svg viewBox="0 0 9 9"><path d="M0 0l9 9"/></svg>'
CAPTION = {"en": "Two curves that fall.", "zh": "两条下降的曲线。"}
SEEN = {
    "en": "Two curves over 40 positions. The solid one falls from 1 to 0 in five steps, the other in ten.",
    "zh": "两条曲线，横轴是 40 个位置。实线五步之内从 1 降到 0，虚线要走三十步才到。",
}


def page(folder: Path, language: str, *drawings: str) -> Path:
    path = folder / language / "page.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<html><body>{''.join(drawings)}</body></html>", encoding="utf-8")
    sitecheck.soup.cache_clear()
    return path


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_figure_as_the_build_makes_it_is_good(tmp_path: Path, language: str) -> None:
    drawing = figures.figure(SVG, CAPTION[language], SEEN[language], "plot-1")
    assert sitecheck.figures(page(tmp_path, language, drawing)) == (1, [])


@pytest.mark.parametrize(
    ("language", "old", "new", "fault"),
    [
        ("en", SEEN["en"], CAPTION["en"], "does not say what is to be seen"),
        ("en", SEEN["en"], "A figure.", "does not say what is to be seen"),
        (
            "en",
            SEEN["en"],
            "Horizontal axis: position t. Vertical axis: value. Legend: a, b, c and so on " * 2,
            "be seen",
        ),
        ("zh", SEEN["zh"], "横轴：位置 t。纵轴：取值。图例：甲、乙、丙、丁。" * 3, "be seen"),
        ("zh", SEEN["zh"], SEEN["en"], "the description is in the other language"),
        ("en", SEEN["en"], SEEN["zh"], "the description is in the other language"),
        ("en", CAPTION["en"], CAPTION["zh"], "the caption is in the other language"),
        ("en", f">{CAPTION['en']}</figcaption>", "></figcaption>", "a drawing has no caption"),
        ("en", f">{CAPTION['en']}</title>", ">Plot</title>", "the title is not the caption: Plot"),
        ("en", ' role="img"', "", "is not told what this drawing is called"),
        ("en", "plot-1-title plot-1-desc", "plot-1-title", "is not told what this drawing is called"),
        ("en", f'<desc id="plot-1-desc">{SEEN["en"]}</desc>', "", "no description"),
    ],
)
def test_a_fault_is_found(tmp_path: Path, language: str, old: str, new: str, fault: str) -> None:
    drawing = figures.figure(SVG, CAPTION[language], SEEN[language], "plot-1")
    assert old in drawing
    _, found = sitecheck.figures(page(tmp_path, language, drawing.replace(old, new)))
    assert any(fault in said for said in found), found


def test_two_figures_keep_apart(tmp_path: Path) -> None:
    drawings = [figures.figure(SVG, CAPTION["en"], SEEN["en"], "plot-1")] * 2
    assert sitecheck.figures(page(tmp_path, "en", *drawings)) == (
        2,
        [
            "two drawings share the id plot-1-title",
            "two drawings share the id plot-1-desc",
            f"two drawings share a description: {SEEN['en']}",
        ],
    )


def test_a_caption_without_a_drawing_is_found(tmp_path: Path) -> None:
    alone = '<figure class="plot"><figcaption>A line.</figcaption></figure>'
    assert sitecheck.figures(page(tmp_path, "en", alone)) == (1, ["no drawing above 'A line.'"])
