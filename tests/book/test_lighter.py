"""A page gets lighter, and nobody sees it."""

import doctest
import itertools
import math
from pathlib import Path

import browsing
import pytest
import sitecheck
from book import lighter
from browsing import Browser

CLIP = '<defs><clipPath id="c"><rect x="10" y="10" width="100" height="50" /></clipPath></defs>'
DOT = '<defs><path id="dot" d="M0 3c.8 0 1.56-.32 2.12-.88z" /></defs>'


def test_examples() -> None:
    assert doctest.testmod(lighter) == (0, 2)


def line(data: str, style: str = "fill:none;stroke:#767676;stroke-width:2") -> str:
    return f'<svg><path d="{data}" clip-path="url(#c)" style="{style}" />{CLIP}</svg>'


@pytest.mark.parametrize(
    "data", ["M20 20l50 20", "M20 20l5 5M90 50l-70-20 5-5z", "M20 20q30 30 60 0c1 1 2 2 3 3"]
)
def test_a_clip_that_cuts_nothing_goes(data: str) -> None:
    assert lighter.unclipped(line(data)) == line(data).replace(' clip-path="url(#c)"', "").replace(CLIP, "")


@pytest.mark.parametrize(
    "data",
    [
        "M20 20l100 0",  # leaves the frame
        "M20 20l0-11",
        "M20 20l0-9",  # half of its stroke leaves
        "M20 20l5 5M0 0l3 3",
        "M20 20q30 60 60 0",  # its control point does
        "M20 20A5 5 0 0 0 30 20",  # not by the hook figures
    ],
)
def test_a_clip_that_cuts_stays(data: str) -> None:
    assert lighter.unclipped(line(data)) == line(data)


def test_a_filled_box_may_end_where_the_frame_ends() -> None:
    box = "M10 10l100 0 0 50-100 0z"
    assert "clip" not in lighter.unclipped(line(box, "fill:#767676"))
    assert "clip" in lighter.unclipped(line(box))


@pytest.mark.parametrize(
    ("content", "cut"),
    [
        ('<use xlink:href="#dot" x="60" y="30" />', False),
        ('<use xlink:href="#dot" x="12" y="30" />', True),  # a marker at the edge is half a marker
        ('<use xlink:href="#dot" x="60" y="30" /><use xlink:href="#dot" x="60" y="300" />', True),
        ('<use xlink:href="#other" y="30" />', True),
        (
            '<marker id="m"><use xlink:href="#dot" /></marker>'
            '<path d="M30 30l20 10" style="fill:none;marker:url(#m)" />',
            False,
        ),
        (
            '<marker id="m"><use xlink:href="#dot" /></marker>'
            '<path d="M30 30l80 10" style="fill:none;marker:url(#m)" />',
            True,
        ),
        ('<path d="M30 30l20 10" style="stroke:#767676" />', True),
    ],
)
def test_rows_of_markers(content: str, cut: bool) -> None:
    svg = f'<svg>{DOT}<g clip-path="url(#c)">{content}</g>{CLIP}</svg>'
    assert lighter.unclipped(svg) == (svg if cut else f"<svg>{DOT}{content}</svg>")


def test_a_circle_of_curves_is_two_arcs() -> None:
    def curves(r: float, squeeze: float = 1) -> str:
        """As matplotlib draws a circle: eight curves that meet on it, from below to the right."""
        data, points = (
            f"M0 {r:g}c",
            [(r * math.sin(k * math.pi / 4), r * math.cos(k * math.pi / 4)) for k in range(9)],
        )
        for (x0, y0), (x1, y1) in itertools.pairwise(points):
            step = f"{(x1 - x0) * squeeze:.2f} {y1 - y0:.2f} "
            data += step * 3
        return data.strip() + "z"

    assert lighter.circle(curves(3)) == "M0 3a3 3 0 0 0 0-6 3 3 0 0 0 0 6z"
    assert lighter.circle(curves(3, 0.8)) == curves(3, 0.8)
    assert lighter.circle("M0 3l3-3-3-3z") == "M0 3l3-3-3-3z"


def test_text_of_code_stays() -> None:
    block = '<pre><span class="sa">f</span><span class="s2">"</span><span class="si">{</span>x\n</pre>'
    assert lighter.tokens(block) == '<pre>f<span class="s2">"{</span>x\n</pre>'
    apart = '<pre><span class="k">if</span> x <span class="k">in</span> y</pre>'
    assert lighter.tokens(apart) == apart


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_kinds_that_are_made_one_have_one_colour(browser: Browser, site: Path, scheme: str) -> None:
    kinds = {kind for pair in lighter.SAME.items() for kind in pair} | set(lighter.PLAIN)
    with browsing.served(site) as url:
        page = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
        page.goto(f"{url}en/order.html")
        style = page.evaluate(
            """(kinds) => {
              const code = document.querySelector(".highlight pre > code");
              const style = (node) => {
                const { color, fontWeight, fontStyle } = getComputedStyle(node);
                return [color, fontWeight, fontStyle].join();
              };
              const found = { code: style(code) };
              for (const kind of kinds) {
                const token = code.appendChild(document.createElement("span"));
                token.className = kind;
                found[kind] = style(token);
              }
              return found;
            }""",
            sorted(kinds),
        )
        page.close()
    assert [kind for kind in lighter.PLAIN if style[kind] != style["code"]] == []
    assert [kind for kind, other in lighter.SAME.items() if style[kind] != style[other]] == []
    assert style["k"] != style["code"]


def test_a_page_is_shown_before_its_scripts_run(site: Path) -> None:
    """Without this a change in Material's templates would undo it without a word."""
    for name in ("en/order.html", "zh/labs/waveforms.html", "zh/404.html"):
        scripts = sitecheck.soup(site / name).select("script[src]")
        assert len(scripts) == 2, name
        assert [tag["src"] for tag in scripts if not tag.has_attr("defer")] == [], name


@pytest.mark.parametrize("width", [390, 1280])
def test_an_address_with_an_anchor_leads_to_its_heading(browser: Browser, site: Path, width: int) -> None:
    """Below the header, also when the page has just been opened."""
    with browsing.served(site) as url:
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.goto(f"{url}zh/shift.html")
        ids = page.evaluate("[...document.querySelectorAll('article h2')].map((heading) => heading.id)")
        assert len(ids) > 4
        for name in (ids[-2], ids[2]):
            page.goto(f"{url}zh/index.html")
            page.goto(f"{url}zh/shift.html#{name}")
            top = f"document.getElementById('{name}').getBoundingClientRect().top"
            page.wait_for_function(f"{top} > 0 && {top} < 100", timeout=10_000)
        page.close()
