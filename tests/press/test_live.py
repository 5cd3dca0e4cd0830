"""Figures that move: the formulas in JavaScript are those of posenc, and what a page fetches for them is light."""

import ast
import gzip
import json
import re
from typing import Any

import numpy as np
import pytest
import torch
from press import live, markup
from press.cache import ROOT
from press.pages import read

import posenc
from posenc import learned, masks, rotary, times
from posenc.experiments import extrapolation_results
from posenc.grids import coordinate_encoding
from posenc.learned import interpolate_table
from posenc.shift import alias_offsets, relative_kernel, shift_matrix
from posenc.sinusoidal import code_distance
from tests.node import computed

SHARED_MOST, FIGURE_MOST = 12 * 1024, 8 * 1024  # bytes, compressed

T = [0, 1, 2, 3, 17, 100, 511, 1000, 2047, 4095, 4096]
K = np.array([*range(-300, 301), *range(-4200, 4201, 97)])
X, Y = np.random.default_rng(0).normal(size=(2, 6, 16))
PADS = [False, False, False, False, True, True]
KEYS = [[min(t, u) % 2 == 1 or u > t for u in range(6)] for t in range(6)]  # and a row without any
_, WEIGHTS = posenc.dot_product_attention(X, Y, Y)

EDGES = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0], [0, 6], [6, 7]]
GRAPH = np.zeros((8, 8))
for _t, _u in EDGES:
    GRAPH[_t, _u] = GRAPH[_u, _t] = 1


def _rotary(frequencies: np.ndarray) -> np.ndarray:
    return np.stack([posenc.apply_rotary(X[0], np.array([t]), frequencies=frequencies)[0] for t in T])


def _bfloat16(numbers: list[float]) -> list[float]:
    return [float(torch.tensor(x, dtype=torch.float32).to(torch.bfloat16)) for x in numbers]


def _attended(bias: np.ndarray | None, hidden: list[list[bool]]) -> np.ndarray:
    return posenc.dot_product_attention(X, Y, Y, bias=bias, mask=np.array(hidden))[1]


# What JavaScript computes, and what posenc does.
FORMULAS: dict[str, tuple[str, Any]] = {
    "dot": ("m.dot(X[0], Y[0])", X[0] @ Y[0]),
    "sinusoidalFrequencies": ("[4, 64, 512].map((dim) => m.sinusoidalFrequencies(dim, 500)).flatMap((x) => [...x])",
        np.concatenate([posenc.sinusoidal_frequencies(dim, 500) for dim in (4, 64, 512)])),
    "sinusoidalWavelengths": ("m.sinusoidalWavelengths(64)", posenc.sinusoidal_wavelengths(64)),
    "sinusoidalEncoding": ("T.map((t) => m.sinusoidalEncoding(t, 64))", posenc.sinusoidal_encoding(np.array(T), 64)),
    "shift": ("T.map((k) => m.shift(m.sinusoidalEncoding(7, 16), k - 50))",
        shift_matrix(np.array(T) - 50, 16) @ posenc.sinusoidal_encoding(8, 16)[7]),
    "codeDistance": ("m.codeDistance(T, 16, 100)", code_distance(np.array(T), 16, base=100)),
    "relativeKernel": ("m.relativeKernel(T, 64)", relative_kernel(np.array(T), 64)),
    "aliasOffsets": ("m.aliasOffsets(1000, 8).concat(m.aliasOffsets(1000, 2, 1e4, 0.02))",
        np.concatenate([alias_offsets(1000, dim=8), alias_offsets(1000, dim=2, tolerance=0.02)])),
    "slowestAlias": (  # the same samples, half a turn a step at most
        "[1, 3, 4, 6, 7, 40].map((w) => m.slowestAlias(w)).flatMap((w) => [Math.sin(5 * w), w ** 2 <= Math.PI ** 2])",
        [x for w in (1, 3, 4, 6, 7, 40) for x in (np.sin(5 * w), True)],
    ),
    "toBfloat16": ("[0, 1, -1, 257, 258, 259, 0.1, 4095, 1e-3, 3.14159].map(m.toBfloat16)",
        _bfloat16([0, 1, -1, 257, 258, 259, 0.1, 4095, 1e-3, 3.14159])),
    "coordinateEncoding": ("m.coordinateEncoding([5, 4096], 16)", coordinate_encoding(np.array([[5, 4096]]), 16)[0]),
    "timeFrequencies": ("[...m.timeFrequencies(16, 2, 32), ...m.timeFrequencies(4, 0.5, 60)]",
        [*times.time_frequencies(16, shortest=2, longest=32), *times.time_frequencies(4, shortest=0.5, longest=60)]),
    "nearestIndex": ("[-0.2, 0, 0.25, 0.26, 1.24, 2, 2.3].map((t) => m.nearestIndex(t, [0, 0.5, 1, 1.5, 2]))",
        times.nearest_index([-0.2, 0, 0.25, 0.26, 1.24, 2, 2.3], [0, 0.5, 1, 1.5, 2])),
    "applyRotary": ("T.map((t) => m.applyRotary(X[0], t))", _rotary(posenc.sinusoidal_frequencies(16))),
    "rotaryScores": ("T.map((k) => m.rotaryScores(X[0], Y[0], k).reduce((a, b) => a + b))",
        [posenc.apply_rotary(X[0], np.array([9]))[0] @ posenc.apply_rotary(Y[0], np.array([9 + k]))[0] for k in T]),
    "linearFrequencies": ("m.linearFrequencies(64, 8)", rotary.linear_frequencies(64, 8)),
    "ntkFrequencies": ("m.ntkFrequencies(64, 8, 500)", rotary.ntk_frequencies(64, 8, base=500)),
    "yarnFrequencies": (
        "[...m.yarnFrequencies(128, 8, 4096), ...m.yarnFrequencies(16, 4, 512, 1000)]",
        [
            *rotary.yarn_frequencies(128, 8, original_length=4096),
            *rotary.yarn_frequencies(16, 4, original_length=512, base=1000),
        ],
    ),
    "llama3Frequencies": (
        "[...m.llama3Frequencies(128, 8, 8192, 5e5), ...m.llama3Frequencies(16, 4, 512, 1000, 2, 3)]",
        [
            *rotary.llama3_frequencies(128, 8, original_length=8192, base=5e5),
            *rotary.llama3_frequencies(
                16, 4, original_length=512, base=1000, low_freq_factor=2, high_freq_factor=3
            ),
        ],
    ),
    "yarnAttentionFactor": ("m.yarnAttentionFactor(4)", rotary.yarn_attention_factor(4)),
    "alibiSlopes": ("[1, 2, 6, 8, 12].flatMap((n) => [...m.alibiSlopes(n)])",
        np.concatenate([posenc.alibi_slopes(n) for n in (1, 2, 6, 8, 12)])),
    "t5BucketStarts": (
        "m.t5BucketStarts(32, 128).slice(1).flatMap((d) => [d, d - 1].map((d) => m.t5Bucket(-d, 32, 128, false)))",
        [x for bucket in range(1, 32) for x in (bucket, bucket - 1)],
    ),
    "t5Bucket": (
        "K.map((k) => [m.t5Bucket(k), m.t5Bucket(k, 32, 128, false),"
        " m.t5Bucket(k, 10, 4096), m.t5Bucket(k, 7, 64, false)])",
        np.stack(
            [
                posenc.relative.t5_bucket(K, num_buckets=n, max_distance=far, bidirectional=both)
                for n, far, both in ((32, 128, True), (32, 128, False), (10, 4096, True), (7, 64, False))
            ],
            axis=-1,
        ),
    ),
    "contextualPositions": (
        "[m.contextualPositions(W[0], 99), m.contextualPositions(W[1], 0.5)]",
        [
            posenc.contextual_positions(WEIGHTS[:1], max_position=99)[0],
            np.minimum(WEIGHTS[1, ::-1].cumsum()[::-1], 0.5),
        ],
    ),
    "taps": (
        "[[16, 48, true], [16, 48, false], [6, 1, true], [9, 4, false], [1, 3, true]].flatMap((given) =>"
        " m.taps(...given).flatMap(({ rows, weights }) => [...rows, ...weights]))",
        np.concatenate(
            [
                np.concatenate(learned.taps(*given), axis=1).ravel()
                for given in ((16, 48, True), (16, 48, False), (6, 1, True), (9, 4, False), (1, 3, True))
            ]
        ),
    ),
    "interpolateTable": (
        "[m.interpolateTable(X, 17), m.interpolateTable(X, 17, false), m.interpolateTable(X, 4)].flat()",
        np.concatenate(
            [interpolate_table(X, 17), interpolate_table(X, 17, align_corners=False), interpolate_table(X, 4)]
        ),
    ),
    "anchorDistances": ("GRAPH.map((_, a) => m.anchorDistances(GRAPH, a))", posenc.anchor_distances(GRAPH, range(8)).T),
    "randomWalkProbabilities": (
        "[1, 2, 3, 4, 5, 6, 7, 8].map((r) => m.randomWalkProbabilities(GRAPH, r))",
        posenc.random_walk_probabilities(GRAPH, 8).T,
    ),
    "laplacianEigenvectors": (
        "m.laplacianEigenvectors(GRAPH)",
        posenc.laplacian_eigenvectors(GRAPH, 7, sign="largest").vectors.T,
    ),
    "softmax": ("[m.softmax([1, 2, -Infinity, 700]), m.softmax([-Infinity, -Infinity, -Infinity, -Infinity])]",
        [[*np.exp(np.array([1.0, 2.0, -np.inf, 700.0]) - 700)], [0, 0, 0, 0]]),
    "attentionWeights": (
        "[m.attentionWeights(X, Y), m.attentionWeights(X, Y, { hidden: (t, u) => KEYS[t][u] }),"
        " m.attentionWeights(X, Y, { bias: (t, u) => -(t - u) / 2, hidden: (t, u) => u > t })]",
        [
            WEIGHTS,
            _attended(None, KEYS),
            posenc.dot_product_attention(X, Y, Y, bias=posenc.alibi_bias(0.5, 6))[1],
        ],
    ),
    "orderlessSum": ("T.map((t) => m.orderlessSum(X[0].map((x) => x * t)))", [X[0].sum() * t for t in T]),
    "attentionOutputs": ("m.attentionOutputs(W, Y)", WEIGHTS @ Y),
    "leakIn": ("m.leakIn(W, PADS)", masks.leak_in(WEIGHTS, np.array(PADS))),
    "leakOut": ("m.leakOut(W, PADS)", masks.leak_out(WEIGHTS, np.array(PADS))),
}  # fmt: skip
GIVEN = {
    "T": T,
    "X": X.tolist(),
    "Y": Y.tolist(),
    "K": K.tolist(),
    "PADS": PADS,
    "KEYS": KEYS,
    "W": WEIGHTS.tolist(),
    "GRAPH": GRAPH.tolist(),
}  # fmt: skip


def _wrong(old: str = "", new: str = "") -> set[str]:
    """The formulas that are not those of posenc to 1e-12, as a share of the largest number where that is above 1.

    `new` stands in posenc.js for `old`.
    """
    text = (live.FOLDER / "posenc.js").read_text(encoding="utf-8")
    assert old in text
    formulas = ", ".join(f"{name}: () => {formula}" for name, (formula, _) in FORMULAS.items())
    script = f"""({{ {", ".join(GIVEN)} }}) => {{
      const plain = (x) => (typeof x === "object" ? Array.from(x, plain) : Number(x));
      const found = Object.entries({{ {formulas} }}).map(([name, value]) => [name, plain(value())]);
      return [Object.keys(m), Object.fromEntries(found)];
    }}"""
    names, values = computed(text.replace(old, new), script, GIVEN)
    assert set(names) == set(FORMULAS)
    found = set()
    for name, (_, expected) in FORMULAS.items():
        ours, theirs = np.asarray(values[name], dtype=float), np.asarray(expected, dtype=float)
        assert ours.shape == theirs.shape, name
        if not np.abs(ours - theirs).max() <= 1e-12 * max(1.0, np.abs(theirs).max()):
            found.add(name)
    return found


def test_formulas_are_those_of_posenc() -> None:
    assert _wrong() == set()


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("(-2 * i) / dim", "(-2.00000000001 * i) / dim", "sinusoidalFrequencies"),
        ("(j * (n - 1)) / Math.max(length - 1, 1)", "(j * n) / length", "interpolateTable"),
        ("[first + 1 - at, at - first]", "[at - first, first + 1 - at]", "taps"),
        ("hidden(t, u) ? -Infinity", "hidden(u, t) ? -Infinity", "attentionWeights"),
    ],
)
def test_a_wrong_formula_is_noticed(old: str, new: str, wrong: str) -> None:
    assert wrong in _wrong(old, new)


@pytest.mark.parametrize(("sorts", "equal"), [(".sort((a, b) => a - b)", True), ("", False)])
def test_what_does_not_see_order_is_the_same_to_the_last_bit_in_any_order(sorts: str, equal: bool) -> None:
    """As the front page says; where sums are not sorted, rounding sees the order."""
    text = (live.FOLDER / "posenc.js").read_text(encoding="utf-8")
    assert text.count(".sort((a, b) => a - b)") == 1
    script = """({ X, Y }) => {
      const outputs = (order) => {
        const [x, y] = [X, Y].map((rows) => order.map((t) => rows[t]));
        const found = m.attentionOutputs(m.attentionWeights(x, x), y);
        return JSON.stringify(order.map((_, t) => [...found[order.indexOf(t)]]));
      };
      const orders = [[5, 4, 3, 2, 1, 0], [1, 0, 2, 3, 4, 5], [3, 5, 1, 0, 2, 4]];
      return orders.every((order) => outputs(order) === outputs([0, 1, 2, 3, 4, 5]));
    }"""
    assert computed(text.replace(".sort((a, b) => a - b)", sorts), script, GIVEN) is equal


def _weight(*names: str) -> int:
    """Of these files as the site has them, without their comments."""
    served = [markup.lightened((live.FOLDER / name).read_text(encoding="utf-8")) for name in names]
    return sum(len(gzip.compress(text.encode(), 6)) for text in served)


def test_figures_are_light_and_each_stands_on_a_page() -> None:
    modules = {path.stem for path in live.FOLDER.glob("*.js")} - set(live.SHARED)
    pages = [read(path) for path in (ROOT / "docs" / "en").glob("*.md")]
    assert {figure.live for page in pages for figure in page.figures if figure.live} == modules
    assert _weight("figure.js", "index.js", "posenc.js", "live.css") <= SHARED_MOST
    assert {name: size for name in modules if (size := _weight(f"{name}.js")) > FIGURE_MOST} == {}


def _found_slowly(css: str) -> list[str]:
    """Selectors that ask for some descendant and then for any element."""
    selectors = re.findall(r"([^{};]+)\{", re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL))
    return [
        each.strip() for each in selectors if re.search(r":has\(.*[ >+~](\*|:not\([^)]*\))\s*(,|$)", each)
    ]


def test_no_style_makes_a_browser_look_at_all_of_a_page_for_each_frame() -> None:
    """With one such selector a sentence that changes took 12 ms of a frame instead of 0.2."""
    assert _found_slowly("a{}.b:has(> .c) > *{}tr:is(:hover, :has(:target)) > :not(td) {}") == [
        ".b:has(> .c) > *",
        "tr:is(:hover, :has(:target)) > :not(td)",
    ]
    sheets = (ROOT / "docs" / "theme").rglob("*.css")
    assert [found for sheet in sheets for found in _found_slowly(sheet.read_text(encoding="utf-8"))] == []


def test_the_sweep_is_handed_on_as_the_package_has_it() -> None:
    handed, results = json.loads(live.sweep()), extrapolation_results()
    assert (handed["lengths"], handed["steps"]) == (list(results.lengths), results.steps)
    assert handed["chance"] == {task: results.chance(task) for task in results.tasks}
    assert handed["floor"] == results.floor().tolist()
    assert tuple(handed["scores"]) == live.SWEPT
    for scheme, scores in handed["scores"].items():
        for task, found in zip(results.tasks, scores, strict=True):
            assert (np.array(found) / 1000 == results.scores(scheme, task)).all()
            first = results.data["schemes"][scheme].get("begins", scheme)
            assert handed["begins"].get(scheme, scheme) == first
            assert (scheme in handed["unfinished"][task]) == ((first, task) in results.longer())


@pytest.mark.parametrize(("language", "number"), [("en", 0), ("zh", 1)])
def test_the_sweep_has_the_schemes_of_the_table_and_their_names(language: str, number: int) -> None:
    page = (ROOT / "docs" / language / "extrapolation.md").read_text(encoding="utf-8")
    names = max(re.findall(r"^names = (\{\n.*?^\})", page, re.DOTALL | re.MULTILINE), key=len)
    schemes = re.findall(r"^  (\w+): \[\"(.*)\", \"(.*)\"\],$", live.module("length-sweep"), re.MULTILINE)
    assert ast.literal_eval(names) == {scheme: both[number] for scheme, *both in schemes}
    assert tuple(scheme for scheme, *_ in schemes) == live.SWEPT


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_graph_that_moves_is_that_of_the_still_drawing(language: str) -> None:
    page = (ROOT / "docs" / language / "graphs.md").read_text(encoding="utf-8")
    before = page[: page.index("<!-- live: graph-codes -->")]
    edges = re.findall(r"^edges = (\[.*\])$", before, re.MULTILINE)[-1]
    moved = re.findall(r"^const EDGES = (\[.*\]);$", live.module("graph-codes"), re.MULTILINE)[0]
    assert json.loads(moved) == [list(edge) for edge in ast.literal_eval(edges)] == EDGES
    assert not posenc.laplacian_eigenvectors(GRAPH, 7).degenerate.any(), "more than a sign would be open"
