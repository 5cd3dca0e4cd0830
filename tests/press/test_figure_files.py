"""A figure as a file: it stands alone, and says its caption, where it is from and under which licence."""

import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib.pyplot as plt
from press import figure_files, figures, page_facts, pages
from press.book import Book, Prepared

SVG = "{http://www.w3.org/2000/svg}"
PAGE = """---
title: A & B
---

# A {#a}

```python
import matplotlib.pyplot as plt
```

<!-- figure: Rising < falling. -->
<!-- description: A map of four cells. -->
"""


def drawn() -> str:
    figures.set_up()
    _, axes = plt.subplots()
    axes.imshow([[0, 1], [2, 3]])
    axes.plot([0, 1], [0, 1], "k-", marker="o")
    svg = figures.to_svg(plt.gcf())
    assert "image/webp" in svg
    assert "currentColor" in svg
    return svg


def test_a_figure_is_a_file_that_says_what_it_is() -> None:
    page = pages.parse(PAGE, Path("labs/a.md"))
    book = Book("en", url="https://x.org/en/")
    drawing = {"svg": drawn(), "axes": []}
    book.prepared["labs/a.md"] = Prepared(page, [(page.figures[0], drawing)])
    ((name, text),) = figure_files.of_page(book, "labs/a.md").items()
    assert name == "figures/a-1.svg"
    assert f'href="{name}" download>a-1.svg<' in figure_files.link("labs/a.md", 1)
    # below a figure that moves, the link says that its file does not
    assert f'href="{name}" download>静态图：a-1.svg<' in figure_files.link("labs/a.md", 1, "zh")
    root = ET.fromstring(text)
    title, description = root[:2]
    assert (title.tag, title.text) == (f"{SVG}title", "Rising < falling.")
    assert description.text == (
        "A map of four cells.\nFrom “A & B”, https://x.org/en/labs/a.html, posenc POSENC-VERSION. "
        f"Licence: CC BY 4.0, {page_facts.LICENCE}"
    )
    # nothing of it comes from a page around it, and other programs than browsers can read it
    assert root.get("font-family")
    assert root.get("width") == f"{root.attrib['viewBox'].split()[2]}pt"
    assert "currentColor" not in text
    assert figures.ID not in text
    assert "data:image/png;base64," in text
    assert "webp" not in text
    ids = {element.get("id") for element in root.iter()} - {None}
    used = [
        value.strip("#") for element in root.iter() for key, value in element.items() if key.endswith("href")
    ]
    assert ids >= {value for value in used if ":" not in value}
    assert figure_files.of_page(book, "b.md") == {}
