"""Figures that move, in a reader's browser: whoever moves them is served, and told what posenc computes."""

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, Route
from press import live
from press.cache import ROOT
from press.pages import read

import posenc
from posenc import rotary
from posenc.experiments import extrapolation_results
from posenc.experiments.extrapolation import Results
from posenc.shift import relative_kernel
from posenc.times import nearest_index
from tests.browser import browsing
from tests.browser.browsing import DESKTOP, LOOKS, NARROW, PHONE

FIGURES = sorted(path.stem for path in live.FOLDER.glob("*.js") if path.stem not in live.SHARED)
# A fourth of them is moved in each run, and all in slow tests: a figure more is no minute more.
SOME = [
    pytest.param(name, marks=[pytest.mark.slow] if number % 4 else [], id=name)
    for number, name in enumerate(FIGURES)
]
# The chapter in which each stands.
PLACES = {
    figure.live: path.stem
    for path in sorted((ROOT / "docs" / "en").glob("*.md"))
    for figure in read(path).figures
    if figure.live
}
# Phones, the widths at which the rows of the controls change and a hair below, between phone and desktop, a desktop.
WIDTHS = (320, 390, 430, 479, 511, 512, 600, 720, 1280)
STILL = "async () => { await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame); }"

# The text around a figure keeps room for itself and is not laid out, which would take half of the time.
AROUND = """{ const sheet = new CSSStyleSheet();
sheet.replaceSync(`article > :not(.live, :has(.live)) { content-visibility: hidden; contain-intrinsic-height: 9rem }`);
document.adoptedStyleSheets.push(sheet); }"""


class Moved:
    """A figure in a reader's browser."""

    def __init__(self, page: Page, url: str, name: str, language: str, address: str = "") -> None:
        self.page, self.name = page, name
        self.visit = browsing.Visit(url)
        browsing.watch(page, self.visit)
        browsing.first(page, AROUND)
        page.goto(f"{url}{language}/{PLACES[name]}.html{address}")
        self.figure = page.locator(f"live-{name}")
        self.before = self.figure.bounding_box()
        self.figure.scroll_into_view_if_needed()
        page.wait_for_selector(f"live-{name}.on", timeout=20_000)
        page.evaluate(STILL)

    @property
    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = self.figure.evaluate("(figure) => figure.state")
        return state

    @property
    def controls(self) -> list[dict[str, Any]]:
        controls: list[dict[str, Any]] = self.figure.evaluate("(figure) => figure.controls")
        return controls

    @property
    def said(self) -> str:
        return self.figure.locator(".live-said").inner_text()

    @property
    def heard(self) -> str:
        return self.figure.locator("output").inner_text()

    @property
    def drawn(self) -> str:
        drawn: str = self.figure.evaluate("(figure) => figure.svg.outerHTML")
        return drawn

    @property
    def hash(self) -> str:
        found: str = self.page.evaluate("decodeURIComponent(location.hash)")
        return found

    def places(self) -> Callable[[float, float], tuple[float, float]]:
        """Where on the screen a place of the drawing is, given in its units; the drawing is in the middle of it."""
        self.figure.evaluate("(figure) => figure.svg.scrollIntoView({ block: 'center' })")
        box = self.figure.locator(".live-panel > svg").bounding_box()
        assert box
        return lambda x, y: (box["x"] + x * box["width"] / 346, box["y"] + y * box["width"] / 346)

    def input(self, control: str, typed: bool = False) -> Locator:
        return self.figure.locator(f"#live-{self.name}-{control}{' + [type=number]' * typed}")

    def extremes(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """States worth a look: each control at its ends, all at both, everything turned on and off."""
        ends: dict[str, list[Any]] = {}
        for control in self.controls:
            name = control["name"]
            ends[name] = control.get("options") or (
                [control["min"], control["max"]] if "min" in control else [False, True]
            )
        yield "as it comes", {}
        for name, values in ends.items():
            for value in values:
                yield f"{name}={value}", {name: value}
        yield "all least", {name: values[0] for name, values in ends.items()}
        yield "all most", {name: values[-1] for name, values in ends.items()}

    def set(self, state: dict[str, Any]) -> None:
        self.seen([state], "() => 0")

    def seen(self, states: Iterable[dict[str, Any]], look: str) -> list[Any]:
        """What a function in JavaScript gives of the figure in each state."""
        found: list[Any] = self.figure.evaluate(
            f"""async (figure, states) => {{
              const look = {look}, found = [];
              for (const state of states) {{
                figure.changed({{ ...figure.initial, ...state }});
                if (figure.gliding) await ({STILL})(); // others stand at once
                found.push(look(figure));
              }}
              return found;
            }}""",
            [*states],
        )
        return found


@pytest.fixture
def page(reader: Callable[..., Page]) -> Page:
    """On a phone."""
    return reader(PHONE, reduced_motion="no-preference")


def finger(page: Page) -> Callable[..., None]:
    """What a finger does: Start, Move or End, and where."""
    session = page.context.new_cdp_session(page)

    def touch(kind: str, *places: tuple[float, float]) -> None:
        points = [{"x": x, "y": y} for x, y in places]
        session.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})

    return touch


def heights(figure: Locator) -> dict[int, float]:
    """The height of a figure by the width of the screen; the text around it, which costs time, is left out."""
    name, found = figure.evaluate("(figure) => figure.localName"), {}
    figure.page.add_style_tag(content=f"article > :not({name}, :has({name})) {{ display: none !important }}")
    for width in WIDTHS:
        figure.page.set_viewport_size({"width": width, "height": 800})
        figure.page.evaluate(STILL)
        found[width] = figure.evaluate(HEIGHT)
    return found


LEAST_LABEL = """(figure) => Math.min(...[...figure.svg.querySelectorAll("text")]
  .filter((text) => text.textContent.trim())
  .map((text) => {
    const { a, b } = text.getScreenCTM();
    return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
  }))"""
OUTSIDE = """(figure) => {
  const drawing = figure.svg.getBoundingClientRect();
  return [...figure.svg.querySelectorAll("*")].filter((part) => !part.closest("defs, .grip") && part.checkVisibility())
    .filter((part) => {
      const box = part.getBoundingClientRect();
      return box.width + box.height && (box.left < drawing.left - 2 || box.right > drawing.right + 2
        || box.top < drawing.top - 2 || box.bottom > drawing.bottom + 2);
    }).map((part) => part.outerHTML.slice(0, 120)).slice(0, 3);
}"""
# The text around it is looked at elsewhere, and costs time.
ALONE = """(figure) => {
  for (const node of document.querySelectorAll("article > *")) if (!node.contains(figure)) node.remove();
}"""
HEIGHT = "(figure) => figure.getBoundingClientRect().height"
TEXT = "(figure) => figure.querySelector('.live-said').innerText"
LOOK = f"""(figure) => [({OUTSIDE})(figure), ({TEXT})(figure), figure.svg.outerHTML,
  ({LEAST_LABEL})(figure), ({HEIGHT})(figure)]"""
SMALL = """(figure) => [...figure.querySelectorAll(".live-controls :is(input, select, button)")].filter((input) => {
  const { width, height } = (input.type === "checkbox" ? input.parentElement : input).getBoundingClientRect();
  return height < (input.matches("[type=number], select") ? 36 : 44) || width < 44;
}).map((input) => input.outerHTML)"""


@pytest.mark.parametrize(
    ("language", "looks"),
    [
        pytest.param("en", LOOKS[:1], id="en"),
        # The twins share the looks: each is seen on both screens and in both palettes.
        pytest.param("en", LOOKS[2:3], id="en, in the dark", marks=pytest.mark.slow),
        pytest.param("zh", LOOKS[1::2], id="zh", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", SOME)
def test_a_figure_can_be_seen_and_read_in_every_state(
    page: Page, address: str, name: str, language: str, looks: list[tuple[str, tuple[int, int]]]
) -> None:
    moved = Moved(page, address, name, language)
    before, after, drawn = moved.before, moved.figure.bounding_box(), moved.drawn
    assert before
    assert after
    assert abs(before["height"] - after["height"]) <= 2, "the text below would jump"
    assert moved.figure.evaluate(SMALL) == []
    page.wait_for_timeout(200)
    assert moved.drawn == drawn, "it moves by itself"
    assert moved.figure.evaluate("(figure) => figure.getAnimations({ subtree: true }).length") == 0
    moved.figure.evaluate(ALONE)
    states = dict(moved.extremes())
    for scheme, size in looks:
        browsing.resized(page, size, scheme)
        seen = moved.seen(states.values(), LOOK)
        for what, (outside, said, drawn, label, _) in zip(states, seen, strict=True):
            where = f"{what}, {scheme}, {size[0]} px"
            assert outside == [], where
            assert said, where
            assert not re.search(r"NaN|undefined|Infinity|\[object", said + drawn), where
            if size == PHONE:
                assert label >= browsing.LABEL - 0.05, where
        heights = {round(height) for *_, height in seen}
        assert len(heights) == 1, f"the text below jumps: {heights}, {scheme}, {size[0]} px"
        for what in ("as it comes", "all most"):
            moved.set(states[what])
            assert axe(page, name) == [], f"{what}, {scheme}, {size[0]} px"
    browsing.resized(page, browsing.NARROW)
    assert page.evaluate(browsing.WIDE) == []
    narrow = set(map(round, moved.seen(states.values(), HEIGHT)))
    assert len(narrow) == 1, f"the text below jumps on a narrow screen: {narrow}"
    assert moved.visit.complaints == []


@pytest.mark.parametrize(
    ("name", "language"),
    [  # some in one language each
        pytest.param(
            name, language, marks=[] if number % 8 == turn else pytest.mark.slow, id=f"{name}-{language}"
        )
        for turn, language in ((0, "en"), (4, "zh"))
        for number, name in enumerate(FIGURES)
    ],
)
def test_a_figure_starts_in_the_room_that_is_kept_for_it(
    reader: Callable[..., Page], address: str, name: str, language: str
) -> None:
    """At all widths, for two visits: one to the drawing, whose figure never comes, one to both."""
    page, script = reader(NARROW), "**/live/index.js"
    browsing.first(page, AROUND)
    page.route(script, lambda route: route.fulfill(content_type="text/javascript", body=""))
    page.goto(f"{address}{language}/{PLACES[name]}.html")
    kept = heights(page.locator(f"live-{name}"))
    page.unroute(script)
    browsing.resized(page, NARROW)
    now = heights(Moved(page, address, name, language).figure)
    jumps = {width: (kept[width], now[width]) for width in WIDTHS if abs(kept[width] - now[width]) > 2}
    assert not jumps, f"the text below jumps: {jumps}"


LARGEST = LEAST_LABEL.replace("Math.min", "Math.max")


@pytest.mark.parametrize(
    ("name", "state"),
    [("length-sweep", {"length": "64"}), ("clocks", {"t": 90, "pair": 2}), ("table-stretch", {"N": 30})],
)
def test_a_figure_that_stretches_is_wider_where_there_is_room_and_its_labels_are_not_larger(
    page: Page, address: str, name: str, state: dict[str, Any]
) -> None:
    moved = Moved(page, address, name, "en")
    moved.set(state)
    wanted = moved.state
    found = {}
    for size in (DESKTOP, PHONE, DESKTOP):
        browsing.resized(page, size)
        found[size] = moved.figure.evaluate("(figure) => figure.svg.viewBox.baseVal.width")
        room = {PHONE: PHONE[0] - 8, DESKTOP: 688}[size]
        assert moved.figure.evaluate("(figure) => figure.svg.getBoundingClientRect().width") == room
        assert moved.figure.evaluate(LARGEST) <= 14, "the letters grow"
        assert moved.state == wanted
        assert moved.figure.locator(".grip").count() == 1
        assert moved.figure.evaluate(OUTSIDE) == []
    assert found == {DESKTOP: 496, PHONE: 346}


AXE = f"""async (name) => {{
  const {{ violations }} = await axe.run(`live-${{name}}`, {{ resultTypes: ["violations"] }});
  return violations.map({browsing.REPORT});
}}"""


def axe(page: Page, name: str) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(browsing.axe_script())
    found: list[str] = page.evaluate(AXE, name)
    return found


@pytest.mark.parametrize("name", [some for some in SOME if some.id != "word-order"])
def test_a_figure_is_moved_by_keyboard_and_by_typed_values(page: Page, address: str, name: str) -> None:
    moved = Moved(page, address, name, "en")
    wanted = {}
    for control in moved.controls:
        moved.set({})
        key, before, drawn = control["name"], moved.state, moved.drawn
        moved.input(key).focus()
        if control.get("options"):
            other = next(option for option in control["options"] if option != before[key])
            moved.input(key).select_option(other)
        elif "min" in control:
            at_end = before[key] >= control["max"]
            page.keyboard.press("ArrowLeft" if at_end else "ArrowRight")
            assert (moved.state[key] < before[key]) if at_end else (moved.state[key] > before[key]), key
            for bad in (str(control["max"] + 1), str(control["min"] - 1), ""):
                value = moved.state[key]
                moved.input(key, typed=True).fill(bad)
                assert moved.state[key] == value, f"{key} took {bad!r}"
                assert moved.input(key, typed=True).get_attribute("aria-invalid") == "true"
                assert str(control["max"]) in moved.heard
            page.keyboard.press("Escape")
            assert moved.input(key, typed=True).input_value() == str(value), "what is no value stays"
            assert moved.heard == moved.said
            moved.input(key, typed=True).fill(str(control["max" if before[key] == control["min"] else "min"]))
            page.keyboard.press("Enter")
        else:
            page.keyboard.press("Space")
        page.evaluate(STILL)
        wanted[key] = moved.state[key]
        assert wanted[key] != before[key], key
        assert moved.heard == moved.said, "what is done is not said"
        assert moved.drawn != drawn, f"{key} changes nothing in the drawing"
        assert moved.hash == f"#{name}.{key}={json.dumps(wanted[key]).strip(chr(34))}"
    moved.set(wanted)
    again = Moved(page, address, name, "zh", moved.hash)
    assert again.state == wanted, "the address does not lead back"
    assert page.evaluate(f"document.querySelector('live-{name}').getBoundingClientRect().top") < PHONE[1] / 2
    again.figure.get_by_role("button", name="复原").focus()
    page.keyboard.press("Enter")
    assert again.state == again.figure.evaluate("(figure) => figure.initial")
    assert again.hash == ""


def _dials(t: int, k: int, sought: int, pairs: list[int]) -> list[str]:
    """What the pairs give, their sum, the best offset, its margin and the next best, on both sides of it."""
    omega, key = posenc.sinusoidal_frequencies(6, 100), np.array([1.0, 0, 1, 0, 1, 0])
    offsets = np.arange(-40, 41)
    turned = posenc.apply_rotary(rotary.offset_query(key, sought, base=100), np.array([t]), frequencies=omega)
    keys = posenc.apply_rotary(key, t + offsets, frequencies=omega)
    parts = (turned * keys).reshape(-1, 3, 2).sum(axis=-1)[:, pairs]
    scores = parts.sum(axis=-1)
    ours = [*parts[k + 40], scores[k + 40]][: len(pairs) + 1 if len(pairs) > 1 else 1]
    best, other = np.argsort(-scores, kind="stable")[:2]
    margin = f"{scores[best] - scores[other]:.2g}"
    ties = offsets[np.isclose(scores, scores[other], rtol=0, atol=1e-9)]
    return [*(f"{x:+.2f}" for x in ours), f"{offsets[best]}", margin, *map(str, ties)]


def _contexts(length: int, factor: float, omega: np.ndarray) -> list[str]:
    """Pairs that reach what training did not, by how much at most, and what steps the ends and pair 45 keep."""
    usual = posenc.sinusoidal_frequencies(128, 1e6)
    seen, reached = (np.minimum(w * n / (2 * np.pi), 1) for w, n in ((usual, 32768), (omega, length)))
    left = np.where(reached - seen > 1e-9, reached - seen, 0)
    unseen = [f"{np.count_nonzero(left)}", "64", f"{left.max():.2f}"] if left.any() else []
    first, own, last = (f"{omega[i] / usual[i]:.3f}" for i in (0, 45, -1))
    return [*unseen, first, "45", own, last]


def _alibi(back: int, content: float, heads: int) -> list[str]:
    """Heads in which the far key outbids the query's own; its price and weight in the flattest."""
    slopes = posenc.alibi_slopes(heads)
    scores = np.zeros((heads, back + 1, 1))
    scores[:, 0] = content
    bias = posenc.alibi_bias(slopes, 1, back + 1)
    _, weights = posenc.dot_product_attention(np.ones((heads, 1, 1)), scores, scores, bias=bias)
    wins = np.count_nonzero(weights[:, 0, 0] > weights[:, 0, -1])
    price = slopes.min() * back
    return [
        f"{wins}",
        f"{heads}",
        f"{price:.{3 if price < 1 else 2}f}",
        f"{weights[slopes.argmin(), 0, 0]:.2f}",
    ]


def _share(k: int, dim: int, base: float) -> str:
    """The kernel at an offset, as a share of its largest value."""
    return f"{relative_kernel([k], dim, base=base)[0] / (dim / 2):.2f}"


def _buckets(k: int, length: int, reach: int, buckets: int, both: bool) -> list[str]:
    """How far the training went, and in how many of the buckets it came."""
    seen = np.arange(1 - length, length if both else 1)
    trained = posenc.relative.t5_bucket(seen, num_buckets=buckets, max_distance=reach, bidirectional=both)
    return [f"{length}", f"{len(np.unique(trained))}", f"{buckets}"]


def _change(order: list[int], code: str) -> list[str]:
    """The largest change of an output of the layer on the front page, from "dog bites man" to this order."""
    numbers = np.sqrt(2) * np.sin(np.arange(163.0, 379) ** 2)
    words, matrices = numbers[:24].reshape(3, 8), numbers[24:].reshape(3, 8, 8) / 2
    outputs = []
    for sentence in ([0, 1, 2], order):
        x = words[sentence] + (posenc.sinusoidal_encoding(3, 8) if code == "sinusoidal" else 0)
        q, k, v = (x @ matrix.T for matrix in matrices)
        if code == "rope":
            q, k = (posenc.apply_rotary(rows, np.arange(3)) for rows in (q, k))
        outputs.append(posenc.dot_product_attention(q, k, v)[0][np.argsort(sentence)])
    change = np.abs(outputs[0] - outputs[1]).max()
    return [f"{change:.2f}" if code != "off" else "0"]


def _weights(order: list[int], code: str, causal: bool) -> list[str]:
    """The largest change of a weight between two words, from "dog bites man" to this order."""
    rng = np.random.default_rng(1)
    words, (w_q, w_k) = rng.normal(size=(3, 4)), rng.normal(size=(2, 4, 4))
    maps = []
    for sentence in ([0, 1, 2], order):
        x = words[sentence] + (posenc.sinusoidal_encoding(3, 4) if code == "sinusoidal" else 0)
        q, k = x @ w_q, x @ w_k
        if code == "rope":
            q, k = (posenc.apply_rotary(rows, np.arange(3)) for rows in (q, k))
        mask = posenc.causal_mask(3) if causal else None
        weights = posenc.dot_product_attention(q, k, x, mask=mask)[1]
        maps.append(weights[np.ix_(np.argsort(sentence), np.argsort(sentence))])
    change = np.abs(maps[0] - maps[1]).max()
    return [f"{change:.2f}" if code != "off" or causal else "0"]


def _step(query: int, key: int, at: str) -> list[str]:
    """The sum behind a number of one step of attention, from the block of the chapter and a changed key."""
    text = (ROOT / "docs" / "en" / "primer.md").read_text(encoding="utf-8")
    found = re.findall(r"^[qkv] = np\.array\((.*)\)$", text, re.MULTILINE)
    arrays = [np.array(json.loads(rows), dtype=np.float64) for rows in found]
    q, k, v = arrays
    k[2, 0], row, u = key, at[0], int(at[1])
    given: Any = q[query : query + 1]
    output, (weights,) = posenc.dot_product_attention(given, k, v)
    scores, powers = k @ q[query] / 2, np.exp(k @ q[query] / 2)
    result = {
        "s": f"{scores[u]:g}",
        "e": f"{powers[u]:.3f}",
        "w": f"{weights[u]:.3f}",
        "o": f"{output[0, u]:.2f}",
    }
    made = {
        "s": [f"{x:.0f}" for pair in zip(q[query], k[u], strict=True) for x in pair]
        + [f"{x:g}" for x in (2 * scores[u], 2 * scores[u], 4)],
        "e": [f"{scores[u]:g}"],
        "w": [re.sub(r"^1\.000$", "1", f"{x:.3f}") for x in (powers[u], *powers)],
        "o": [x for weight, row in zip(weights, v, strict=True) for x in (f"{weight:.3f}", f"{row[u]:.0f}")],
    }
    return [*made[row], result[row]]


def _frames(fps: int, first: float, second: float) -> list[str]:
    """The gap in seconds, the rate, the frames between two flashes, and what ten frames a second make of them."""
    frames = abs(int(np.diff(nearest_index([first, second], np.arange(4 * fps + 1) / fps))[0]))
    return [f"{abs(second - first):.2f}", f"{fps}", f"{frames}", f"{frames / 10:.2f}"]


def _stretched(length: int, j: int, corners: bool) -> list[str]:
    """What a row of the stretched table is made of, its step to the next one, and how many old rows are left."""
    table = posenc.sinusoidal_encoding(16, 32, base=100)
    rows = posenc.learned.interpolate_table(table, length, align_corners=corners)
    (a, b), (v, w) = (x[j] for x in posenc.learned.taps(16, length, corners))
    own = (
        [a if v > w else b] if min(v, w) < 1e-9 or a == b else [f"{a + w:.2f}", f"{v:.2f}", a, f"{w:.2f}", b]
    )
    step = np.linalg.norm(rows[j + 1] - rows[j]) / np.linalg.norm(table[1] - table[0])
    kept = sum(np.isclose(rows, old, atol=1e-9).all(axis=1).any() for old in table)
    return [f"{j}", f"{length}", *map(str, own), f"{step:.2f}", f"{kept}", "16"]


def _graph_codes(first: str, second: str, node: str, vector: int, steps: int, flip: bool) -> list[str]:
    """What two anchors, an eigenvector and a walk give a node."""
    ring = np.roll(np.eye(6), 1, axis=0)
    graph = np.zeros((8, 8))
    graph[:6, :6] = ring + ring.T
    for t, u in ((0, 6), (6, 7)):
        graph[t, u] = graph[u, t] = 1
    own, anchors = "abcdefgh".index(node), ["abcdefgh".index(anchor) for anchor in (first, second)]
    a, b = posenc.anchor_distances(graph, anchors)[own]
    value = posenc.laplacian_eigenvectors(graph, 7, sign="largest").vectors[own, vector - 1]
    back = posenc.random_walk_probabilities(graph, steps)[own, -1]
    return [
        f"{a:.0f}",
        f"{b:.0f}",
        f"{-value if flip else value:.2f}",
        f"{vector}",
        f"{steps}",
        f"{back:.2f}",
    ]


# What a figure says, to the numbers that posenc gives.
NTK = rotary.ntk_frequencies(128, 4, base=1e6)
LLAMA3 = rotary.llama3_frequencies(128, 4, original_length=32768, base=1e6)
LINEAR = rotary.linear_frequencies(128, 3, base=1e6)
SAID: list[tuple[str, dict[str, Any], list[str]]] = [
    ("rotary-dials", {"t": 1002}, _dials(1002, 3, 0, [0, 1, 2])),
    ("rotary-dials", {"k": -7, "sought": -12, "pair0": False}, _dials(2, -7, -12, [1, 2])),
    ("rotary-contexts", {}, _contexts(131072, 4, NTK)),
    ("rotary-contexts", {"method": "linear", "length": 120000, "factor": 3}, _contexts(120000, 3, LINEAR)),
    (
        "rotary-contexts",
        {"method": "llama3", "length": 131072, "beside": "none"},
        _contexts(131072, 4, LLAMA3),
    ),
    ("kernel", {"k": 30, "dimB": 4, "baseB": 100}, ["30", _share(30, 64, 10000), _share(30, 4, 100)]),
    *(
        ("word-order", {"order": "".join(map(str, order)), "code": code}, _change(order, code))
        for order, code in itertools.product(([2, 1, 0], [1, 2, 0]), ("off", "sinusoidal", "rope"))
    ),
    *(
        ("order-weights", {"order": "201", "code": code, "causal": causal}, _weights([2, 0, 1], code, causal))
        for code, causal in itertools.product(("off", "sinusoidal", "rope"), (False, True))
    ),
    *(
        ("attention-step", {"query": str(query), "key": key, "at": at}, _step(query, key, at))
        for query, key, at in (
            (1, 2, "s2"),
            (0, 2, "s2"),
            (2, -5, "e2"),
            (1, -2, "w0"),
            (1, -6, "w2"),
            (0, 2, "o1"),
        )
    ),
    *(
        ("frame-rate", {"fps": fps, "first": first, "second": second}, _frames(fps, first, second))
        for fps, first, second in ((30, 1, 1.5), (5, 3.9, 0.3), (23, 0.2, 4))
    ),
    *(
        ("table-stretch", {"N": length, "j": j, "marks": marks}, _stretched(length, j, marks == "corners"))
        for length, j, marks in (
            (48, 20, "corners"),
            (46, 9, "corners"),
            (61, 33, "corners"),
            (11, 4, "corners"),
            (48, 0, "cells"),
            (48, 20, "cells"),
            (63, 61, "cells"),
        )
    ),
    *(
        (
            "graph-codes",
            dict(zip(("first", "second", "node", "vector", "steps", "flip"), state, strict=True)),
            _graph_codes(*state),
        )
        for state in (("h", "b", "c", 3, 6, False), ("a", "e", "g", 7, 2, True))
    ),
    ("alibi-slopes", {"back": 10000, "content": 44.6}, _alibi(10000, 44.6, 8)),
    ("alibi-slopes", {"back": 99, "content": 0.39, "heads": "12"}, _alibi(99, 0.39, 12)),
    *(
        (
            "t5-buckets",
            dict(zip(("k", "length", "reach", "buckets", "bidirectional"), state, strict=True)),
            said,
        )
        for state in ((9, 77, 20, "8", True), (-200, 5, 256, "32", False))
        for said in [_buckets(state[0], state[1], state[2], int(state[3]), state[4])]
    ),
]


def test_a_figure_says_what_posenc_gives(page: Page, address: str) -> None:
    for name in dict.fromkeys(name for name, _, _ in SAID):
        moved = Moved(page, address, name, "en")
        wanted = [(state, numbers) for known, state, numbers in SAID if known == name]
        every = moved.seen((state for state, _ in wanted), TEXT)
        for (state, numbers), text in zip(wanted, every, strict=True):
            said = re.findall(r"[+-]?\d+(?:\.\d+)?", text.replace("−", "-"))
            assert said[-len(numbers) :] == numbers, f"{name} {state}: {text}"


def test_figures_share_an_address_and_say_what_was_done_when_it_is_done(page: Page, address: str) -> None:
    moved = Moved(page, address, "shift-rotation", "en", "#other.a=5")
    moved.input("k").evaluate("(input) => { input.value = 7; input.dispatchEvent(new Event('input')); }")
    page.evaluate(STILL)
    assert (moved.state["k"], moved.hash) == (7, "#other.a=5")
    assert moved.said != moved.heard, "said while it is still moved"
    moved.input("k").dispatch_event("change")
    assert moved.said == moved.heard
    assert moved.hash == "#other.a=5&shift-rotation.k=7"
    page.evaluate("location.hash = '#shift-rotation.k=-4&shift-rotation.t=1e9'")
    page.wait_for_function("document.querySelector('live-shift-rotation').state.k === -4")
    assert moved.state["t"] == 2, "a value that it does not take"


def _round(centre: tuple[float, float], *angles: float) -> list[tuple[float, float]]:
    """Places on a circle, by their angles counter-clockwise from the right."""
    return [(centre[0] + 34 * np.cos(angle), centre[1] - 34 * np.sin(angle)) for angle in angles]


# What is dragged in a drawing, in its own units, and what is found there, one after the other.
DRAGGED: list[tuple[str, list[tuple[list[tuple[float, float]], dict[str, Any]]]]] = [
    (
        "clocks",
        [
            (_round((129.75, 66), np.pi / 2, np.pi / 4, 0), {"t": 50 + 16, "pair": 1}),  # a quarter of 62.8
            ([(200, 170), (174, 170)], {"t": 66 + 21}),  # four waves are 312 wide
            ([(302.75, 110)], {"pair": 3}),  # a name under its clock
        ],
    ),
    (
        "shift-rotation",
        [
            (_round((43.25, 54), np.pi / 2 - 2, np.pi / 2 - 3, np.pi / 2 - 4), {"t": 4}),
            (_round((43.25, 54), np.pi / 2 - 7, np.pi / 2 - 8), {"k": 4}),
        ],
    ),
    ("attention-step", [([(260, 64), (296, 64)], {"key": 5}), ([(260, 64), (100, 200)], {"key": -6})]),
    (
        "table-stretch",
        [
            ([(257, 184), (175, 184)], {"N": 31}),
            ([(80, 184), (78, 184)], {"j": 10}),
            ([(172, 80)], {"j": 14}),
        ],
    ),
    ("kernel", [([(100, 90), (151.6, 100)], {"k": 40})]),
    ("aliasing", [([(182, 70), (336, 70)], {"omega": 2.65})]),
    ("rotary-contexts", [([(200, 60), (86.2, 60)], {"pair": 10})]),
    ("length-sweep", [([(290, 150), (140, 90)], {"length": "64"})]),
    (
        "rotary-dials",
        [
            (_round((61, 56), 2, 3), {"t": 3}),
            (_round((61, 56), 6, 7), {"k": 4}),
            ([(184, 202), (184, 195)], {"k": 0}),  # in the curve
            ([(184, 202), (69, 222)], {"k": -29}),
            ([(184, 202), (692, 222)], {"k": 40}),  # beyond its end
        ],
    ),
    ("counted-positions", [([(325, 166)], {"t9": True}), ([(106, 60)], {"t2": False})]),
    (
        "frame-rate",  # a second is 65.75 wide
        [
            ([(169.6, 13), (235.4, 13)], {"second": 2.5}),
            ([(136.75, 112), (169.6, 112)], {"fps": 20}),  # what was at 1 s is at 1.5 s
            ([(268.25, 34), (228.8, 34)], {"fps": 25}),
        ],
    ),
    (
        "graph-codes",
        [
            ([(157, 72), (35, 42)], {"first": "c"}),  # the tip, and the upper left of the ring
            ([(206, 102)], {"second": "e"}),
            ([(60, 219), (122, 218)], {"node": "g"}),
            ([(241, 248)], {"node": "f"}),
        ],
    ),
    (
        "alibi-slopes",
        [
            ([(145.4, 65.7), (174, 108.4)], {"back": 100, "content": 0.342}),
            ([(174, 73), (-346, -278)], {"back": 1, "content": 100}),  # beyond both ends
            ([(174, 73)], {"back": 100, "content": 3.16}),
        ],
    ),
    ("grid-code", [([(82.5, 105.5), (38.5, 160.5)], {"row": 11, "column": 2})]),
    (
        "padding-leak",
        [
            ([(113, 130), (62, 120)], {"tokens": 2}),
            ([(240, 128)], {"query": 5}),
            ([(150, 110)], {"query": 4}),  # a row of the map
            ([(150, 68), (150, 102)], {"tokens": 4}),  # the lower dashed line
        ],
    ),
    ("t5-buckets", [([(142.9, 60), (136.7, 60)], {"length": 74}), ([(120.4, 60)], {"k": -100})]),
]


def drags(turn: int) -> pytest.MarkDecorator:
    """A fourth of them in each run, not the same for a mouse and a finger."""
    some = [
        pytest.param(name, drags, marks=[pytest.mark.slow] if number % 4 != turn else [], id=name)
        for number, (name, drags) in enumerate(DRAGGED)
    ]
    return pytest.mark.parametrize(("name", "drags"), some)


@drags(0)
def test_what_is_drawn_is_dragged(
    page: Page, address: str, name: str, drags: list[tuple[list[tuple[float, float]], dict[str, Any]]]
) -> None:
    moved = Moved(page, address, name, "en")
    place = moved.places()
    grips = moved.figure.locator(".grip").all()
    assert grips or name == "counted-positions", "no sign that it can be dragged: that one has words"
    assert all(grip.is_visible() for grip in grips)
    for places, found in drags:
        before, heard = moved.state, moved.heard
        page.mouse.move(*place(*places[0]))
        page.mouse.down()
        for x, y in places[1:]:
            page.mouse.move(*place(x, y))
        page.evaluate(STILL)
        if grips:
            assert moved.state == before | found
            assert moved.heard == heard, "said while it is still moved"
        page.mouse.up()
        assert moved.state == before | found
        assert moved.heard == moved.said != heard
        said = {control: json.dumps(value).strip(chr(34)) for control, value in found.items()}
        for control, value in said.items():
            assert f"{name}.{control}={value}" in moved.hash
            typed = moved.input(control, typed=True)
            assert not typed.count() or typed.input_value() == value
    assert not any(grip.is_visible() for grip in grips), "they have been seen"


@drags(2)
def test_a_finger_drags_what_a_mouse_does(
    phone: Page, address: str, name: str, drags: list[tuple[list[tuple[float, float]], dict[str, Any]]]
) -> None:
    """The page does not scroll away instead."""
    moved = Moved(phone, address, name, "en")
    touch, place = finger(phone), moved.places()
    places, found = drags[0]
    before, scrolled = moved.state, phone.evaluate("scrollY")
    touch("Start", place(*places[0]))
    for start, end in itertools.pairwise(places):
        for share in np.linspace(0, 1, 11)[1:]:
            touch("Move", place(*((1 - share) * np.array(start) + share * np.array(end)).tolist()))
            phone.evaluate(STILL)
    touch("End")
    phone.evaluate(STILL)
    assert moved.state == before | found
    assert moved.heard == moved.said
    assert phone.evaluate("scrollY") == scrolled


@pytest.mark.parametrize("name", ["kernel", "grid-code", "padding-leak"])
def test_a_finger_that_scrolls_past_changes_nothing(phone: Page, address: str, name: str) -> None:
    """Neither over the drawing nor over a slider."""
    moved = Moved(phone, address, name, "en")
    touch = finger(phone)
    for part in (moved.figure.locator(".live-panel > svg"), moved.figure.locator("[type=range]").first):
        part.evaluate("(part) => part.scrollIntoView({ block: 'center' })")
        box, before, scrolled = part.bounding_box(), moved.state, phone.evaluate("scrollY")
        assert box
        x, y = box["x"] + 0.22 * box["width"], box["y"] + 0.3 * box["height"]
        touch("Start", (x, y))
        for step in range(1, 13):
            touch("Move", (x + step / 4, y - 15 * step))
        touch("End")
        phone.evaluate(STILL)
        assert phone.evaluate("scrollY") > scrolled + 50
        assert moved.state == before
        assert moved.hash == ""


def test_a_number_goes_up_and_down_by_one_at_a_press(page: Page, address: str) -> None:
    moved = Moved(page, address, "clocks", "en", "#clocks.t=4998")
    for button, t in (("t + 1", 4999), ("t + 1", 4999), ("t − 1", 4998)):
        moved.figure.get_by_role("button", name=button).click()
        assert moved.state["t"] == t
        assert moved.said == moved.heard
    assert moved.hash == "#clocks.t=4998"
    assert "hands at 4999" in moved.drawn


PACE = "const PACE = 250;"  # ms for a door: here a fifth of that


def test_a_walk_goes_door_by_door_until_something_is_pressed(page: Page, address: str) -> None:
    def hurried(route: Route) -> None:
        script = route.fetch()
        assert PACE in script.text()
        route.fulfill(response=script, body=script.text().replace(PACE, "const PACE = 50;"))

    page.route("**/clocks.js", hurried)
    moved = Moved(page, address, "clocks", "en")
    heard = moved.heard
    for stops, key in (
        ("stop", None),
        ("Reset", None),
        ("t + 1", None),
        ("Reset", "Enter"),
        ("t + 1", "Space"),
    ):
        moved.figure.get_by_role("button", name="walk").click()
        page.wait_for_function("document.querySelector('live-clocks').state.t >= 53", timeout=5_000)
        assert moved.heard == heard, "said at every door"
        button = moved.figure.get_by_role("button", name=stops)
        button.press(key) if key else button.click()
        stood = moved.state
        page.wait_for_timeout(150)  # three doors
        assert moved.state == stood, f"{stops} by {key or 'mouse'} does not stop it"
        assert moved.heard == moved.said
        moved.figure.get_by_role("button", name="Reset").click()
        heard = moved.heard
    moved.figure.get_by_role("button", name="walk").click()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.wait_for_timeout(400)
    stood = moved.state
    page.wait_for_timeout(150)  # three doors
    assert moved.state == stood, "it walks where nobody sees it"


def test_a_row_beyond_the_end_of_a_table_is_its_last(page: Page, address: str) -> None:
    moved = Moved(page, address, "table-stretch", "en", "#table-stretch.N=8")
    moved.input("j", typed=True).fill("40")
    page.keyboard.press("Tab")
    assert moved.input("j", typed=True).input_value() == "7"
    assert moved.heard == moved.said
    assert "New row 7 of 8" in moved.said


def test_a_frequency_is_told_as_it_was_typed(page: Page, address: str) -> None:
    moved = Moved(page, address, "aliasing", "en")
    for omega, told in (
        (5.3, "ω = 5.3 has the samples of ω = −0.98, the other way"),
        (6.28, "ω = 6.28 has the samples of ω = −0.0032, the other way"),
        (3.1416, "ω = 3.1416 has the samples of ω = −3.1416, the other way"),
        (3.1415, "At ω = 3.1415 no slower wave"),
    ):
        moved.set({"omega": omega})
        assert moved.said.startswith(told)


def test_a_pair_is_told_by_its_wavelength_and_turns(page: Page, address: str) -> None:
    moved = Moved(page, address, "rotary-contexts", "en")
    for pair in (0, 45, 63):
        wavelength = posenc.sinusoidal_wavelengths(128, 1e6)[pair]
        wave, turns = (f"{x:.3g}" if x < 100 else f"{x:.0f}" for x in (wavelength, 32768 / wavelength))
        moved.set({"pair": pair})
        assert f"pair {pair}: wavelength {wave}, {turns} turns" in moved.drawn


def test_without_scripts_and_on_paper_the_drawing_stays(
    page: Page, address: str, reader: Callable[..., Page]
) -> None:
    drawing = "live-shift-rotation > figure > svg"
    moved = Moved(page, address, "shift-rotation", "en")
    assert not page.locator(drawing).is_visible()
    page.emulate_media(media="print")
    assert page.locator(drawing).is_visible()
    assert not moved.figure.locator(".live-panel").is_visible()
    page.emulate_media(media="screen")
    moved = Moved(page, address, "kernel", "en")
    drawn, moving = moved.figure.locator("figcaption > span").all()
    assert (drawn.is_visible(), moving.is_visible()) == (False, True)
    page.emulate_media(media="print")
    assert (drawn.is_visible(), moving.is_visible()) == (True, False)
    without = reader(DESKTOP, java_script_enabled=False)
    without.goto(f"{address}en/shift.html")
    box = without.locator(drawing).bounding_box()
    assert box
    assert box["height"] == pytest.approx(without.locator(drawing).evaluate("(s) => s.clientHeight"), abs=1)
    assert without.locator(".live-panel").count() == 0


def test_a_page_without_a_figure_that_moves_fetches_nothing_for_it(page: Page, address: str) -> None:
    visit = browsing.Visit(address)
    answers = browsing.watch(page, visit)
    page.goto(f"{address}en/naive.html")
    page.wait_for_load_state("networkidle")
    page.goto(f"{address}en/shift.html#where-next")
    page.wait_for_load_state("networkidle")
    fetched = [answer.url.rpartition("/")[2] for answer in answers if "/live/" in answer.url]
    assert sorted(fetched) == ["index.js", "live.css"], "the figure is far away"


# --- What single figures show -------------------------------------------------------------------------------


def _numbers(text: str) -> list[int]:
    return [int(number.replace("−", "-")) for number in re.findall(r"−?\d+", text)]


def test_neighbours_of_a_patch_are_those_of_posenc(page: Page, address: str) -> None:
    moved = Moved(page, address, "grid-code", "en")
    tables = posenc.sinusoidal_encoding(196, 64), posenc.grid_encoding((14, 14), 64)
    for place in ((0, 0), (6, 6), (10, 13), (13, 5)):
        moved.set({"row": place[0], "column": place[1]})
        _, _, *found = _numbers(moved.said)
        own = 14 * place[0] + place[1]
        for table, near in zip(tables, np.reshape(found, (2, 4, 2)), strict=True):
            scores = (table @ table[own]).round(9)
            best = sorted(np.delete(scores, own), reverse=True)[:4]
            assert sorted(scores[14 * near[:, 0] + near[:, 1]], reverse=True) == pytest.approx(best)
            assert len({tuple(patch) for patch in near.tolist()} - {place}) == 4


def test_a_patch_is_picked_by_mouse_and_by_touch(page: Page, phone: Page, address: str) -> None:
    moved = Moved(page, address, "grid-code", "en")
    touched = Moved(phone, address, "grid-code", "zh")
    for figure, press in ((moved, moved.page.mouse.click), (touched, touched.page.touchscreen.tap)):
        for number, (row, column) in enumerate([(0, 13), (9, 2)]):
            box = figure.figure.locator("rect[cursor]").nth(number).bounding_box()
            assert box
            press(box["x"] + box["width"] * (column + 0.5) / 14, box["y"] + box["height"] * (row + 0.5) / 14)
            figure.page.evaluate(STILL)
            assert (figure.state["row"], figure.state["column"]) == (row, column)
            assert figure.heard == figure.said
            assert f"grid-code.row={row}" in figure.hash


def test_a_number_that_cannot_be_is_named_and_goes_with_the_reader(page: Page, address: str) -> None:
    for name, control, typed, told in (
        ("attention-step", "key", "-7", "first number of man’s key: a whole number from −6 to 6."),
        ("clocks", "pair", "1.5", "wave of hand: a whole number from 0 to 3."),
        ("kernel", "dimA", "7", "A, width: an even number from 2 to 512."),
        ("aliasing", "omega", "13", "frequency ω: a number from 0.1 to 12.5."),
    ):
        moved = Moved(page, address, name, "en")
        moved.input(control, typed=True).fill(typed)
        assert moved.heard == told
        page.keyboard.press("Tab")
        assert moved.input(control, typed=True).input_value() == str(moved.state[control])
        assert moved.input(control, typed=True).get_attribute("aria-invalid") is None
        assert moved.heard == moved.said != told
    moved = Moved(page, address, "shift-rotation", "en")
    moved.input("k", typed=True).fill("-0")  # on the way to −0.5
    assert moved.figure.evaluate("({ state }) => Object.is(state.k, 0)")


def test_a_thread_is_whole_where_two_numbers_are_equal_and_nowhere_else(page: Page, address: str) -> None:
    moved = Moved(page, address, "word-order", "en")
    for code in ("off", "sinusoidal", "rope"):
        moved.set({"code": code, "order": "102"})  # the sinusoidal code changes no number of "man" by 0.02
        page.wait_for_function(
            "(({ now, aim }) => now.every((x, i) => x === aim[i]))(document.querySelector('live-word-order'))"
        )
        least = moved.figure.evaluate(
            """({ threads }) => threads.map(({ previousSibling }) =>
              Math.min(...[...previousSibling.children].map(({ style }) => Number(style.stopOpacity))))"""
        )
        assert set(least) == {int(code == "off")}, code


def test_words_are_moved_by_hand_and_by_keyboard(page: Page, address: str) -> None:
    moved = Moved(page, address, "word-order", "en")

    def order() -> str:
        there = (
            "(({ now, aim }) => now.every((x, i) => x === aim[i]))(document.querySelector('live-word-order'))"
        )
        page.wait_for_function(there)  # a card that glides is not where it was measured
        words = moved.figure.locator(".word-order button").all_inner_texts()
        assert moved.state["order"] == "".join(str(["dog", "bites", "man"].index(word)) for word in words)
        assert moved.heard.split() == moved.said.split()
        return " ".join(words)

    assert order() == "man bites dog"
    scrolled = page.evaluate("scrollY")
    for key, found in (("End", "bites dog man"), ("Home", "man bites dog")):
        moved.figure.get_by_role("button", name="man").focus()
        page.keyboard.press(key)
        assert order() == found
    assert page.evaluate("scrollY") == scrolled
    man = moved.figure.get_by_role("button", name="man")
    man.focus()
    page.keyboard.press("ArrowRight")
    assert order() == "bites man dog"
    page.keyboard.press("Enter")
    assert order() == "bites dog man"
    assert page.evaluate("document.activeElement.innerText") == "man"
    box = man.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 9)
    page.mouse.down()
    page.mouse.move(box["x"] - box["width"], box["y"])
    assert moved.said.split() != moved.heard.split(), "said while it is still moved"
    page.mouse.up()
    assert order() == "bites man dog"
    moved.figure.get_by_role("button", name="Swap").click()
    assert order() == "dog man bites"
    moved.figure.get_by_label("RoPE").check()
    assert moved.state["code"] == "rope"
    assert moved.hash == "#word-order.order=021&word-order.code=rope"
    again = Moved(page, address, "word-order", "zh", moved.hash)
    assert again.state == {"code": "rope", "order": "021"}
    assert again.figure.locator(".word-order button").all_inner_texts() == ["狗", "人", "咬"]


def test_a_word_of_the_table_of_weights_is_moved_by_a_press(page: Page, address: str) -> None:
    moved = Moved(page, address, "order-weights", "en")
    for number, order in ((2, "120"), (3, "012")):  # "man" beside its row, "dog" above its column
        moved.figure.locator("svg rect[cursor]").nth(number).click()
        page.evaluate(STILL)
        assert moved.state["order"] == order
        assert moved.heard == moved.said
        assert moved.hash == f"#order-weights.order={order}"


def test_a_word_of_the_table_of_weights_is_dragged(page: Page, phone: Page, address: str) -> None:
    moved, touched = (Moved(reader, address, "order-weights", "en") for reader in (page, phone))
    touch = finger(phone)

    def places(figure: Moved, number: int, row: int, column: int) -> list[tuple[float, float]]:
        figure.figure.evaluate("(figure) => figure.svg.scrollIntoView({ block: 'center' })")
        box = figure.figure.locator("svg rect[cursor]").nth(number).bounding_box()
        assert box
        start, cell = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2), box["width"]
        return [start, (start[0] + column * cell, start[1] + row * cell)]

    assert all(figure.figure.locator(".grip").is_visible() for figure in (moved, touched)), "no sign of it"
    # "dog", the last, is taken to the first place: beside its row by mouse, above its column by finger.
    start, end = places(moved, 0, -2, 0)
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end)
    page.mouse.up()
    start, end = places(touched, 3, 0, -2)
    touch("Start", start)
    touch("Move", end)
    touch("End")
    for figure in (moved, touched):
        figure.page.evaluate(STILL)
        assert figure.state["order"] == "021"
        assert figure.heard == figure.said


def test_numbers_of_a_step_are_pointed_at(page: Page, address: str) -> None:
    """Pressed or hovered, each lights up what it is made of; what a mouse leaves is as it was."""
    moved = Moved(page, address, "attention-step", "en")
    place = moved.places()

    def lit() -> int:
        return moved.figure.locator("svg g > [stroke='#d55e00']").count()

    chosen = moved.said
    for x, y, at, lights, says in (
        (110, 97, "s0", 9, "Score of “dog”"),
        (110, 130, "e0", 2, "e to the score of “dog”"),
        (110, 163, "w0", 4, "Weight of “dog”"),
        (186, 229, "o1", 7, "A number of the output of “bites”"),
        (161, 31, "q0", 4, "A number of the query of “bites”: 1"),
        (186, 64, "k11", 2, "A number of the key of “bites”: −1"),
        (309, 196, "v22", 2, "A number of the value of “man”: 10"),
        (260, 64, "k20", 2, "A number of the key of “man”: 2"),
    ):
        page.mouse.move(*place(x, y))
        page.evaluate(STILL)
        assert moved.said.startswith(says)
        assert lit() == lights
        assert moved.state["at"] == "w2", "hovered, not chosen"
        page.mouse.move(*place(30, 64))
        page.evaluate(STILL)
        assert moved.said == chosen
        page.mouse.click(*place(x, y))
        page.evaluate(STILL)
        assert moved.state["at"] == at
        assert moved.heard == moved.said
        moved.set({})
    page.mouse.click(*place(63, 31))
    assert (moved.state["query"], moved.state["at"]) == ("0", "q0"), "of another token"
    assert "of “dog”: 0" in moved.heard


def test_numbers_of_a_graph_stand_beside_each_other(page: Page, address: str) -> None:
    moved = Moved(page, address, "graph-codes", "en")
    for state in [{"vector": vector, "flip": flip} for vector in range(1, 8) for flip in (False, True)]:
        moved.set(state)
        found = moved.figure.evaluate(
            """({ svg, panels }) => {
              const away = ({ x, y, width, height }, [left, top]) =>
                Math.hypot(Math.max(x - left, left - x - width, 0), Math.max(y - top, top - y - height, 0));
              const near = panels.flatMap(({ nodes, at }) => nodes.flatMap(({ number }, t) =>
                at.filter((place, u) => u !== t && away(number.getBBox(), place) < 8).map(() => number.textContent)));
              const boxes = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBBox()]);
              return boxes.flatMap(([text, a], n) => boxes.slice(0, n).filter(([, b]) =>
                Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x) > 1
                && Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y) > 4).map(([other]) => [text, other]))
                .concat(near);
            }"""
        )
        assert found == [], state


def test_all_tokens_count_where_the_gate_of_the_others_is_1(page: Page, address: str) -> None:
    moved = Moved(page, address, "counted-positions", "en")
    for other, told in ((0, "3 of 10 tokens count."), (0.5, "3 of 10 tokens count in full"), (1, "10 of 10")):
        moved.set({"other": other})
        assert moved.said.startswith(told)


def test_nodes_of_a_graph_are_told_apart_by_what_the_chapter_names(page: Page, address: str) -> None:
    """Mirror images: by anchors that are not on the mirror, by two eigenvectors, never by walks."""
    moved = Moved(page, address, "graph-codes", "en")

    def apart(**state: Any) -> bool:
        moved.set(state)
        other = 2 if moved.state["node"] == "e" else 4
        marked = moved.figure.evaluate(
            "({ panels }, t) => panels.map(({ nodes }) => nodes[t].halo.checkVisibility())", other
        )
        assert all(marked) == ("Nothing here tells it from" in moved.said), state
        return not all(marked)

    assert not apart()
    assert [anchor for anchor in "abcdefgh" if apart(second=anchor)] == [*"bcef"]
    assert [vector for vector in range(1, 8) if apart(vector=vector)] == [2, 5]
    assert [steps for steps in range(1, 9) if apart(steps=steps)] == []
    for flip in (False, True):
        said = []
        for node in "ce":
            assert apart(vector=2, flip=flip, node=node)
            said.append(re.findall(r"[+−]?0\.50", moved.said)[0])
        assert said == (["−0.50", "0.50"] if flip else ["0.50", "−0.50"])


def test_without_a_real_query_no_share_is_given(page: Page, address: str) -> None:
    moved = Moved(page, address, "padding-leak", "en")
    assert "real queries, on pads: 46" in moved.drawn
    moved.set({"tokens": 0})
    assert "no real query" in moved.drawn
    assert "on pads:" not in moved.drawn


def test_masks_stop_the_leak_that_they_stop(page: Page, address: str) -> None:
    """What the chapter says of each mask, with pads that hold codes and with zeros."""
    moved = Moved(page, address, "padding-leak", "en")

    def leak(**state: Any) -> int:
        return _numbers(moved.seen([state], TEXT)[0])[0]

    for pads, tokens, left in itertools.product(("codes", "zeros"), (1, 4, 8), (False, True)):
        state = {"pads": pads, "tokens": tokens, "left": left}
        assert abs(leak(**state) - 100 * (9 - tokens) / 9) <= 12, "small scores: nearly z / (n + z)"
        assert leak(**state, mask="key") == leak(**state, mask="key", causal=True) == 0
        assert (leak(**state, causal=True) > 0) == left, "pads on the right are in the future"
        leak(**state, mask="after")
        assert re.search(r"sum to 0\.\d\d", moved.said), "the pads are still in the denominator"
    leak(tokens=5, left=True, causal=True, mask="key")
    assert "without any key: 4" in moved.said
    average, shares = leak(), []
    for query in range(9):
        moved.set({"query": query})
        kind, share = re.findall(r"a (pad|real token): (\d+)", moved.said)[0]
        assert (kind == "pad") == (query >= 5)
        shares += [int(share)] * (kind != "pad")
    assert np.mean(shares) == pytest.approx(average, abs=0.5)


def _compared(results: Results, state: dict[str, str]) -> str:
    """What five seeds say of two schemes: how they are to be compared."""
    task, at = state["task"], results.lengths.index(int(state["length"]))
    one, other = (results.scores(state[side], task)[:, at] for side in ("scheme", "beside"))
    if task != "language" and max(one.mean(), other.mean()) < 2 * results.chance(task):
        return "Neither is right twice as often as a guess (0.06)"
    if task == "language":
        one, other = -one, -other
    begins = [
        results.data["schemes"][state[side]].get("begins", state[side]) for side in ("scheme", "beside")
    ]
    first, second = one.min() > other.max(), other.min() > one.max()
    if first or second:
        if {(first_of, task) for first_of in begins} & set(results.longer()):
            return "do not overlap, but * had not finished"
        little = abs(one.mean() - other.mean()) < 0.01
        better = f"ll five seeds of the {'first' if first else 'second'} are better"
        return f"A{better}, but by less than 0.01" if little else f"larger than the spread: a{better}."
    if begins[0] != begins[1]:
        return "five seeds do not settle which"
    wins = int((one > other).sum()), int((other > one).sum())
    return (
        "the first is better with {} of 5, the second with {}.".format(*wins) if any(wins) else "same scores"
    )


def test_the_sweep_is_that_of_the_package_and_is_compared_by_its_seeds(page: Page, address: str) -> None:
    moved, results = Moved(page, address, "length-sweep", "en"), extrapolation_results()
    tasks, lengths, schemes, _ = (control["options"] for control in moved.controls)
    assert (tasks, [int(length) for length in lengths]) == (list(results.tasks), list(results.lengths))
    pairs = [pair[:: 1 if k % 2 else -1] for k, pair in enumerate(itertools.combinations(schemes, 2))]
    states = [
        {"task": task, "length": length, "scheme": scheme, "beside": beside}
        for task, length, (scheme, beside) in itertools.product(tasks, lengths, pairs)
    ]
    said = moved.figure.evaluate(
        """(figure, states) => states.map((state) => {
          figure.state = state;
          figure.drawn();
          return [figure.said.textContent, figure.svg.textContent];
        })""",
        states,
    )
    verdicts = set()
    for state, (sentence, drawing) in zip(states, said, strict=True):
        at = results.lengths.index(int(state["length"]))
        for side in ("scheme", "beside"):
            seeds = results.scores(state[side], state["task"])
            mean = f"{seeds.mean(axis=0)[at]:.2f}"  # as the table of the page has it
            assert f" {mean}" in sentence, (state, sentence)
            assert f"{mean}, seeds {seeds[:, at].min():.2f} to {seeds[:, at].max():.2f}" in drawing, state
        verdict = _compared(results, state)
        assert verdict in sentence, (state, sentence)
        verdicts.add(re.sub(r"first|second|\d", "", verdict))
    assert len(verdicts) == 7
    for sentence in sorted({sentence for sentence, _ in said}, key=len)[-20:]:
        moved.figure.evaluate("(figure, sentence) => (figure.said.textContent = sentence)", sentence)
        box = moved.figure.locator(".live-said").bounding_box()
        assert box
        assert box["height"] <= 58, f"more than three lines: {sentence}"


def test_what_the_chapter_answers_about_the_sweep_is_so() -> None:
    results = extrapolation_results()
    random_start = {"scheme": "sinusoidal_offset", "beside": "learned_offset"}
    scaled = {"scheme": "rotary", "beside": "rotary_yarn", "task": "back"}
    for state, answer in (
        *(
            ({**random_start, "task": task, "length": "256"}, "second are better.")
            for task in ("sort", "recall")
        ),
        *(
            ({**random_start, "task": task, "length": "256"}, "do not settle")
            for task in ("back", "language")
        ),
        ({**random_start, "task": "copy", "length": "256"}, "Neither is right"),
        ({**random_start, "task": "copy", "length": "32"}, "had not finished"),
        *(({**scaled, "length": length}, "first are better.") for length in ("32", "40")),
        ({**scaled, "length": "64"}, "first is better with 1 of 5, the second with 4."),
        *(({**scaled, "length": length}, "second are better.") for length in ("128", "256")),
    ):
        assert answer in _compared(results, state), state
