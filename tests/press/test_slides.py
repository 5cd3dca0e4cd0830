"""Slides of chapters: what stands on them, that all of it fits, and that keys go from one to the next."""

import re
from pathlib import Path

import pytest
from press.book import Book, Prepared
from press.offline import slides
from pypdf import PdfReader

from tests.browser.browsing import Browser

PAGE = """---
title: A & B
description: d
---

# A {#a}

Words.

```python
ask = "no question?"
```

<!-- figure: Waves. -->
<!-- description: They rise. -->

[Why](b.md) does $x$ rise?

1. It does not.
2. It must.

## Key points {#key-points}

- A [point](b.md#c).

## Next {#next}

- Nothing.
"""
EXERCISES = """# E {#e}

## A {#a}

### Try it {#try}

<!-- exercise: minutes=20 level=2 kind=code -->
"""


def made(tmp_path: Path, text: str = PAGE) -> str:
    (tmp_path / "exercises").mkdir(exist_ok=True)
    (tmp_path / "exercises" / "begin.md").write_text(EXERCISES, encoding="utf-8")
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    book = Book("en", tmp_path, "https://x.org/en/", ["a.md"])
    page = book.page("a.md")
    drawing = {"svg": '<svg viewBox="0 0 3 2" style="width:100%"></svg>', "axes": []}
    return slides.slides(book, "a.md", Prepared(page, [(figure, drawing) for figure in page.figures]))


def test_slides_are_made_of_question_figures_key_points_and_exercises(tmp_path: Path) -> None:
    html = made(tmp_path)
    title, figure, points, tasks = re.findall(r"<section>(.*?)</section>", html, re.DOTALL)
    assert "<small>Chapter 1 of 1</small><h1>A &amp; B</h1><p>Why does <math" in title
    assert "<li>It must.</li>" in title
    assert "https://x.org/en/a.html · Text and figures CC BY 4.0" in title
    assert "<h2>A</h2>" in figure
    assert '<desc id="plot-1-desc">They rise.</desc>' in figure
    assert "<figcaption>Waves.</figcaption>" in figure
    assert points == "<h2>Key points</h2>\n<ul>\n<li>A point.</li>\n</ul>"
    assert "<li>Try it\n<small>20 minutes · level 2 · in code</small></li>" in tasks
    assert not re.search(r"(?:src|href)=\"(?!#)|url\((?!.?data:)", html), "it asks for another file"
    assert "no question" not in html
    without = made(tmp_path, PAGE.replace("rise?", "rise."))
    assert "<h1>A &amp; B</h1><p>d</p>" in without


# What sticks out of its slide, or is too small to be seen from the last row.
FAULTS = """() => [...document.querySelectorAll("section")].flatMap((slide, k) => [
  slide.scrollHeight > slide.clientHeight || slide.scrollWidth > slide.clientWidth ? `${k + 1} is too full` : [],
  [...slide.querySelectorAll("svg")].some((svg) => svg.getBoundingClientRect().height < 250) ? `${k + 1} is small` : [],
].flat())"""


@pytest.mark.parametrize("names", [["order", "choosing"], pytest.param([], marks=pytest.mark.slow)])
def test_all_of_a_slide_is_seen(browser: Browser, tmp_path: Path, names: list[str]) -> None:
    files = slides.write(names, tmp_path)
    assert len(files) == 2 * len(names or slides.of_book("en")[1])
    with browser.new_page(viewport={"width": 1280, "height": 720}) as page:
        for file in files:
            page.goto(file.as_uri())
            assert page.evaluate(FAULTS) == [], file
        page.locator("h2").last.evaluate(
            "title => title.after(...Array(40).fill('More. ').map((x) => x.repeat(20)))"
        )
        assert page.evaluate(FAULTS) == [f"{page.locator('section').count()} is too full"]


def test_keys_go_from_slide_to_slide(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "a.html"
    file.write_text(made(tmp_path), encoding="utf-8")
    with browser.new_page(viewport={"width": 1280, "height": 720}) as page:
        page.goto(file.as_uri())
        for key, slide in (("ArrowDown", 1), ("PageDown", 2), ("Space", 3), ("PageUp", 2)):
            page.keyboard.press(key)
            page.wait_for_function(f"scrollY === {slide} * innerHeight")


def test_they_are_printed_a_slide_a_page(tmp_path: Path, browser: Browser) -> None:
    file = tmp_path / "a.html"
    file.write_text(made(tmp_path), encoding="utf-8")
    (pdf,) = slides.printed(browser, [file])
    pages = PdfReader(pdf).pages
    assert [page.extract_text().split("\n")[0] for page in pages] == [
        "Chapter 1 of 1",
        "A",
        "Key points",
        "Exercises",
    ]
    assert {tuple(page.mediabox[2:]) for page in pages} == {(960, 540)}


def test_what_is_no_chapter_is_said(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no chapter with key points: rotray; there are primer, order, "):
        slides.main(["rotray", "--to", str(tmp_path)])
    assert not list(tmp_path.iterdir())
