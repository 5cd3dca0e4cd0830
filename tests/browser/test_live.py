"""Figures that move, in a reader's browser: whoever moves them is served, and told what posenc computes."""

import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page
from press import live
from press.cache import ROOT
from press.pages import read

import posenc
from posenc import rotary
from tests.browser import browsing
from tests.browser.browsing import DESKTOP, LOOKS, PHONE

FIGURES = sorted(path.stem for path in live.FOLDER.glob("*.js") if path.stem not in live.SHARED)
# The chapter in which each stands.
PLACES = {
    figure.live: path.stem
    for path in sorted((ROOT / "docs" / "en").glob("*.md"))
    for figure in read(path).figures
    if figure.live
}
STILL = "async () => { await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame); }"


class Moved:
    """A figure in a reader's browser."""

    def __init__(self, page: Page, url: str, name: str, language: str, address: str = "") -> None:
        self.page, self.name = page, name
        self.visit = browsing.Visit(url)
        browsing.watch(page, self.visit)
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
        self.figure.evaluate("(figure, state) => figure.changed({ ...figure.initial, ...state })", state)
        self.page.evaluate(STILL)


@pytest.fixture
def page(reader: Callable[..., Page]) -> Page:
    """On a phone."""
    return reader(PHONE, reduced_motion="no-preference")


LEAST_LABEL = """(figure) => Math.min(...[...figure.svg.querySelectorAll("text")]
  .filter((text) => text.textContent.trim())
  .map((text) => {
    const { a, b } = text.getScreenCTM();
    return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
  }))"""
OUTSIDE = """(figure) => {
  const drawing = figure.svg.getBoundingClientRect();
  return [...figure.svg.querySelectorAll("*")].filter((part) => !part.closest("defs") && part.checkVisibility())
    .filter((part) => {
      const box = part.getBoundingClientRect();
      return box.width + box.height && (box.left < drawing.left - 2 || box.right > drawing.right + 2
        || box.top < drawing.top - 2 || box.bottom > drawing.bottom + 2);
    }).map((part) => part.outerHTML.slice(0, 120)).slice(0, 3);
}"""
SMALL = """(figure) => [...figure.querySelectorAll(".live-controls :is(input, select, button)")].filter((input) => {
  const { width, height } = (input.type === "checkbox" ? input.parentElement : input).getBoundingClientRect();
  return height < (input.matches("[type=number], select") ? 36 : 44) || width < 44;
}).map((input) => input.outerHTML)"""


@pytest.mark.parametrize(
    ("language", "looks"),
    [
        pytest.param("en", LOOKS[:1], id="en"),
        pytest.param("en", LOOKS[1:], id="en, other looks", marks=pytest.mark.slow),
        pytest.param("zh", LOOKS, id="zh, all looks", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", FIGURES)
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
    for scheme, size in looks:
        browsing.resized(page, size, scheme)
        heights = set()
        for what, state in moved.extremes():
            where = f"{what}, {scheme}, {size[0]} px"
            moved.set(state)
            assert moved.figure.evaluate(OUTSIDE) == [], where
            assert moved.said, where
            assert not re.search(r"NaN|undefined|Infinity|\[object", moved.said + moved.drawn), where
            if size == PHONE:
                assert moved.figure.evaluate(LEAST_LABEL) >= browsing.LABEL - 0.05, where
            heights.add(round(moved.figure.evaluate("(figure) => figure.getBoundingClientRect().height")))
            if what in ("as it comes", "all most"):
                assert axe(page, name) == [], where
        assert len(heights) == 1, f"the text below jumps: {heights}, {scheme}, {size[0]} px"
    browsing.resized(page, browsing.NARROW)
    assert page.evaluate(browsing.WIDE) == []
    assert moved.visit.complaints == []


AXE = f"""async (name) => {{
  const {{ violations }} = await axe.run(`live-${{name}}`, {{ resultTypes: ["violations"] }});
  return violations.map({browsing.REPORT});
}}"""


def axe(page: Page, name: str) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(browsing.axe_script())
    found: list[str] = page.evaluate(AXE, name)
    return found


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "word-order"])
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
    again.figure.locator("button").focus()
    page.keyboard.press("Enter")
    assert again.state == again.figure.evaluate("(figure) => figure.initial")
    assert again.hash == ""


def _dials(t: int, k: int, sought: int, pairs: list[int]) -> list[str]:
    """What the pairs give, their sum, the best offset, its margin and the next best."""
    omega, key = posenc.sinusoidal_frequencies(6, 100), np.array([1.0, 0, 1, 0, 1, 0])
    offsets = np.arange(-40, 41)
    turned = posenc.apply_rotary(rotary.offset_query(key, sought, base=100), np.array([t]), frequencies=omega)
    keys = posenc.apply_rotary(key, t + offsets, frequencies=omega)
    parts = (turned * keys).reshape(-1, 3, 2).sum(axis=-1)[:, pairs]
    scores = parts.sum(axis=-1)
    ours = [*parts[k + 40], scores[k + 40]][: len(pairs) + 1 if len(pairs) > 1 else 1]
    best, other = np.argsort(-scores, kind="stable")[:2]
    margin = f"{scores[best] - scores[other]:.2g}"
    return [*(f"{x:+.2f}" for x in ours), f"{offsets[best]}", margin, f"{offsets[other]}"]


def _contexts(length: int, factor: float, omega: np.ndarray) -> list[str]:
    """Pairs that reach what training did not, by how much at most, and what steps the ends keep."""
    usual = posenc.sinusoidal_frequencies(128, 1e6)
    seen, reached = (np.minimum(w * n / (2 * np.pi), 1) for w, n in ((usual, 32768), (omega, length)))
    left = np.where(reached - seen > 1e-9, reached - seen, 0)
    unseen = [f"{np.count_nonzero(left)}", "64", f"{left.max():.2f}"] if left.any() else []
    return [*unseen, f"{omega[0] / usual[0]:.3f}", f"{omega[-1] / usual[-1]:.3f}"]


def _alibi(back: int, content: float, heads: int) -> list[str]:
    """Heads in which the far key outbids the query's own; its price and weight in the flattest."""
    slopes = posenc.alibi_slopes(heads)
    scores = np.zeros((heads, back + 1, 1))
    scores[:, 0] = content
    bias = posenc.alibi_bias(slopes, 1, back + 1)
    _, weights = posenc.dot_product_attention(np.ones((heads, 1, 1)), scores, scores, bias=bias)
    wins = np.count_nonzero(weights[:, 0, 0] > weights[:, 0, -1])
    return [f"{wins}", f"{heads}", f"{slopes.min() * back:.2f}", f"{weights[slopes.argmin(), 0, 0]:.2f}"]


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


# What a figure says, to the numbers that posenc gives.
NTK = rotary.ntk_frequencies(128, 4, base=1e6)
LINEAR = rotary.linear_frequencies(128, 3, base=1e6)
SAID: list[tuple[str, dict[str, Any], list[str]]] = [
    ("rotary-dials", {"t": 1002}, _dials(1002, 3, 0, [0, 1, 2])),
    ("rotary-dials", {"k": -7, "sought": -12, "pair0": False}, _dials(2, -7, -12, [1, 2])),
    ("rotary-contexts", {}, _contexts(131072, 4, NTK)),
    ("rotary-contexts", {"method": "linear", "length": 120000, "factor": 3}, _contexts(120000, 3, LINEAR)),
    *(
        ("word-order", {"order": "".join(map(str, order)), "code": code}, _change(order, code))
        for order, code in itertools.product(([2, 1, 0], [1, 2, 0]), ("off", "sinusoidal", "rope"))
    ),
    *(
        ("order-weights", {"order": "201", "code": code, "causal": causal}, _weights([2, 0, 1], code, causal))
        for code, causal in itertools.product(("off", "sinusoidal", "rope"), (False, True))
    ),
    ("alibi-slopes", {"back": 10000, "content": 44.6}, _alibi(10000, 44.6, 8)),
    ("alibi-slopes", {"back": 99, "content": 0.39, "heads": 12}, _alibi(99, 0.39, 12)),
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
        for state, numbers in [(state, numbers) for known, state, numbers in SAID if known == name]:
            moved.set(state)
            said = re.findall(r"[+-]?\d+(?:\.\d+)?", moved.said.replace("−", "-"))
            assert said[-len(numbers) :] == numbers, f"{name} {state}: {moved.said}"


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


# Where a mouse goes in a drawing, as shares of its width and height, and what is found there.
PICKED: list[tuple[str, tuple[float, float], dict[str, Any]]] = [
    ("rotary-dials", (0.5316, 0.7), {"k": 0}),
    ("rotary-dials", (0.2, 0.8), {"k": -29}),
    ("rotary-dials", (2.0, 0.8), {"k": 40}),
    ("alibi-slopes", (0.5029, 0.2636), {"back": 100, "content": 3.16}),
    ("alibi-slopes", (-1.0, -1.0), {"back": 1, "content": 100}),
]


def test_a_figure_is_moved_by_a_mouse(page: Page, address: str) -> None:
    for name in dict.fromkeys(name for name, _, _ in PICKED):
        moved = Moved(page, address, name, "en")
        moved.figure.evaluate("(figure) => figure.svg.scrollIntoView({ block: 'center' })")
        box = moved.figure.locator(".live-panel > svg").bounding_box()
        assert box
        for (across, down), found in [(place, found) for known, place, found in PICKED if known == name]:
            before, heard = moved.state, moved.heard
            moved.figure.locator("[pointer-events=all]").hover()
            page.mouse.down()
            page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])
            page.evaluate(STILL)
            assert moved.state == before | found
            assert moved.heard == heard, "said while it is still moved"
            page.mouse.up()
            assert moved.heard == moved.said != heard
            control, value = next(iter(found.items()))
            assert f"{name}.{control}={value}" in moved.hash
            assert moved.input(control, typed=True).input_value() == str(value)


def test_without_scripts_and_on_paper_the_drawing_stays(
    page: Page, address: str, reader: Callable[..., Page]
) -> None:
    drawing = "live-shift-rotation > figure > svg"
    moved = Moved(page, address, "shift-rotation", "en")
    assert not page.locator(drawing).is_visible()
    page.emulate_media(media="print")
    assert page.locator(drawing).is_visible()
    assert not moved.figure.locator(".live-panel").is_visible()
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


def test_masks_stop_the_leak_that_they_stop(page: Page, address: str) -> None:
    """What the chapter says of each mask, with pads that hold codes and with zeros."""
    moved = Moved(page, address, "padding-leak", "en")

    def leak(**state: Any) -> int:
        moved.set(state)
        return _numbers(moved.said)[0]

    for pads, tokens, left in itertools.product(("codes", "zeros"), (1, 4, 8), (False, True)):
        state = {"pads": pads, "tokens": tokens, "left": left}
        assert abs(leak(**state) - 100 * (9 - tokens) / 9) <= 12, "small scores: nearly z / (n + z)"
        assert leak(**state, mask="key") == leak(**state, mask="key", causal=True) == 0
        assert (leak(**state, causal=True) > 0) == left, "pads on the right are in the future"
        leak(**state, mask="after")
        assert re.search(r"sum to 0\.\d\d", moved.said), "the pads are still in the denominator"
    leak(tokens=5, left=True, causal=True, mask="key")
    assert "without any key: 4" in moved.said
