"""What a stylesheet that goes wrong would do to the looks of a page: relations that hold with any font and screen."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.browser.browsing import DESKTOP, PHONE, Harm

DARK = "[data-md-color-scheme=slate]"
FAULTS = """() => {
  const found = [];
  const say = (wrong, what) => wrong && found.push(what);
  const all = (names) => [...document.querySelectorAll(names)].filter((node) => node.checkVisibility());
  const style = (node) => getComputedStyle(node);
  const px = (node) => parseFloat(style(node).fontSize);
  const box = (node) => node.getBoundingClientRect();
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => (part / 255) ** 2.2);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const ground = light(style(document.body).backgroundColor);
  const article = document.querySelector("article"), [text] = all("article > p");
  const seen = { visibilityProperty: true, opacityProperty: true };
  const drawings = [...document.querySelectorAll("figure.plot svg")];
  say(!drawings.some((node) => node.checkVisibility(seen)), "no drawing is seen");
  say(!all("article > p").every((node) => {
    const ink = light(style(node).color);
    return Math.max(ink, ground) > 4 * Math.min(ink, ground);
  }), "a text is hardly seen");
  say(box(text).width < Math.min(innerWidth - 50, 600), "the column is narrow");
  const sizes = ["h1", "h2", "p"].map((name) => px(all(`article > ${name}`)[0]));
  say(!(sizes[0] > sizes[1] && sizes[1] > sizes[2]), "headings have no order");
  say(!all("figcaption").every((node) => px(node) < px(text)), "a caption is as large as the text");
  const right = box(article).right + 1;
  say(all("article table").some((node) => innerWidth > 1000 && box(node).right > right), "a table is too wide");
  say(!all(".md-code__nav").every((node) => {
    const code = box(node.closest(".highlight"));
    return box(node).left > code.left - 1 && box(node).right < code.right + 1;
  }), "buttons have left their code");
  say(!all("pre > code").every((node) => style(node).fontFamily.includes("monospace")), "code has another font");
  say(!all("article details").every((node) => parseFloat(style(node).borderTopWidth)), "a note has no frame");
  say(drawings.some((node) => !style(node).backgroundColor.endsWith(", 0)")), "a drawing has its own ground");
  return found;
}"""


@pytest.mark.harmed(Harm("no drawing is seen", style="figure.plot svg { visibility: hidden !important }"))
@pytest.mark.harmed(
    Harm("hardly seen", style=f"{DARK} .md-typeset p {{ color: var(--md-default-bg-color) !important }}")
)
@pytest.mark.harmed(Harm("column is narrow", style=".md-content { max-width: 22rem !important }"))
@pytest.mark.harmed(Harm("no order", style=".md-typeset :is(h1, h2) { font-size: 0.8rem !important }"))
@pytest.mark.harmed(Harm("a caption is", style=".md-typeset figcaption { font-size: 1.1rem !important }"))
@pytest.mark.harmed(Harm("too wide", style=".md-typeset table { min-width: 2000px !important }"))
@pytest.mark.harmed(
    Harm("left their code", style=".md-code__nav { transform: translateX(-600px) !important }")
)
@pytest.mark.harmed(Harm("another font", style=".md-typeset pre > code { font-family: serif !important }"))
@pytest.mark.harmed(Harm("no frame", style=".md-typeset details { border: 0 !important }"))
@pytest.mark.harmed(Harm("own ground", style=f"{DARK} figure.plot svg {{ background: #fff !important }}"))
def test_pages_look_as_pages_do(reader: Callable[..., Page], address: str) -> None:
    found = []
    for size, scheme in ((DESKTOP, "light"), (PHONE, "dark")):
        page = reader(size, color_scheme=scheme)
        for name in ("en/alibi.html", "zh/choosing.html"):
            page.goto(f"{address}{name}")
            found += [f"{name}, {scheme}, {size[0]} px: {fault}" for fault in page.evaluate(FAULTS)]
    assert not found, "\n".join(found)
