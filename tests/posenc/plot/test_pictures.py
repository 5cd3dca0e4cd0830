"""What all pictures share: they can be read, speak both languages, and take or refuse what they are given."""

import copy
import functools
import inspect
import re
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from press import figures

from posenc import plot, sinusoidal_encoding, sinusoidal_frequencies
from posenc.masks import key_padding_mask
from posenc.plot import _style
from posenc.plot._style import WIDTH
from posenc.rotary import linear_frequencies
from tests.posenc.plot import figurecheck
from tests.site import contrast

WAVE = np.sin(np.arange(40) / 3)
FALLING = np.exp(-np.arange(40) / 9)
TABLE = sinusoidal_encoding(40, 16)
SQUARE = TABLE @ TABLE.T
SHARES = np.full((9, 9), 1 / 9)
AXES = np.kron(np.eye(2), [1.0, 0.1, 0.01])
PADS = key_padding_mask(5, 9)
CURVES = {label: FALLING / k for k, label in enumerate("abcd", start=1)}
RUNS = np.array([[1.0, 0.9, 0.5, 0.2], [1.0, 0.7, 0.4, 0.1]])
STEPS = np.cumsum(np.ones((4, 5, 8)), axis=0)
SLOTS = np.tril(np.ones((2, 6, 6), dtype=int)) * np.arange(1, 7) - 1
BASE = {"base": 10000.0}

# Every picture with every argument but `ax` and `lang`. A NumPy array stands where any array may, a list
# where whole numbers or words are asked for. Labels are single letters: longer words are the picture's own.
PICTURES: dict[str, dict[str, Any]] = {
    "accuracy_by_length": {"panels": {k: {"a": RUNS, "b": RUNS**2, "c": RUNS**4} for k in "defg"},
        "lengths": [32, 64, 128, 256], "trained": 32, "chance": 0.1},
    "alibi_maps": {"slopes": np.array([0.5, 0.125]), "n": 5},
    "alibi_rows": {"scores": WAVE, "slopes": np.array([0, 0.5, 0.0625])},
    "alibi_weights": {"slopes": np.array([1 / 2, 1 / 8, 1 / 32, 1 / 128, 1 / 256]), "n": 100},
    "attention_blurs": {"n": 101, "sigma": 5.0, "peaks": np.array([0.4, 5.0, 10, 27])},
    "attention_map": {"weights": np.eye(4) * 0.4 + 0.15, "queries": list("abcd"), "keys": list("efgh"),
        "mask": np.triu(np.ones((4, 4), dtype=bool), 1)},
    "attention_pair": {"weights": SHARES, "masked_weights": np.eye(9), "padding_mask": PADS},
    "axis_pairs": {"frequencies": {"a": AXES, "b": 2 * AXES}, "names": list("de")},
    "bias_curves": {"biases": CURVES, "trained": 16},
    "cache_slots": {"caches": {"a": SLOTS, "b": SLOTS[:, :, :4], "c": SLOTS[:, 2:]}},
    "clip_axis": {"audio": WAVE, "rate": 8.0, "words": list("abc"), "times": np.array([0.3, 2.1, 4.2]),
        "frames": np.arange(0.0, 5, 0.5)},
    "clock_hands": {"positions": np.array([0.0, 1, 50]), "dim": 8, **BASE},
    "code_distances": {"dims": [4, 16]},
    "cosine_sums": {"bases": np.array([1e4, 5e5]), "dim": 64, "n": 4096},
    "curves": {"curves": CURVES, "x": np.arange(1.0, 41), "labels": list("hv"), "log": True, "marks": True,
        "steps": False, "broad": False, "trained": 16, "chance": 0.6},
    "distance_profiles": {"codes": {"a": TABLE, "b": 2 * TABLE}, "position": 12},
    "distance_weights": {"panels": {"a": SHARES[:4], "b": RUNS[:, :3]}, "trained": 4},
    "graph_codes": {"graph": np.roll(np.eye(5), 1, axis=0),
        "places": np.array([[0.0, 2], [2, 1], [1, -1], [-1, -1], [-2, 1]]),
        "codes": {"a": np.arange(-2.0, 3), "b": np.arange(5.0)}},
    "grid_maps": {"maps": {"a": SQUARE[:5, :7], "b": SQUARE[5:10, :7]}, "place": (2, 3)},
    "head_scores": {"wavelengths": np.array([4.0, 32, 512]), "n": 100},
    "heat_map": {"codes": TABLE},
    "kernel_curves": {"dims": [4, 64], "n": 101, **BASE},
    "leak_paths": {"layers": [SHARES, SHARES], "padding_mask": PADS},
    "locality_curves": {"scores": CURVES, "weights": True},
    "mask_maps": {"masks": {"a": np.triu(np.ones((9, 9), bool), 1), "b": np.tri(9, dtype=bool)}},
    "nearest_codes": {"dims": [2, 4, 8, 16, 64], "n": 2000, **BASE},
    "offset_stripes": {"offset": 3, "dim": 32, "gains": np.array([1.0, 4, 16, 64]), "n": 40, **BASE},
    "order_blindness": {"first": list("abc"), "first_outputs": TABLE[:3], "second": list("cab"),
        "second_outputs": TABLE[1:4]},
    "output_mask_bars": {"changes": {"a": np.array([0.6, 0]), "b": np.array([1.5, 1.4])}},
    "padding_sides": {"lengths": [5, 2, 3]},
    "period_comb": {"period": 12.0, "position": 50},
    "position_entries": {},
    "rbf_bumps": {"n": 13, "centers": np.arange(-6.0, 20, 2), "sigma": 2.0},
    "ring_schedule": {"n": 16, "world": 4},
    "rotating_pairs": {"places": np.array([[2.0, 5], [12, 15]]), "dim": 6, **BASE},
    "score_by_position": {"curves": {"a": RUNS, "b": RUNS**2}, "width": 16, "measure": "accuracy", "trained": 16,
        "chance": 0.1},
    "score_curves": {"scores": {"a": TABLE[:3], "b": TABLE[3:6]}},
    "score_decay": {"dim": 16},
    "seen_angles": {"methods": {"a": sinusoidal_frequencies(8), "b": linear_frequencies(8, 8)},
        "pairs": [0, 1, 2, 3], "trained": 32, "length": 256},
    "shard_rows": {"n": 16, "world": 4},
    "shift_arrows": {"positions": np.array([0.0, 2, 5]), "offset": 3, "dim": 4, "pairs": [0, 1], **BASE},
    "shift_errors": {"errors": {"a": FALLING, "b": FALLING / 99}, "window": np.array([0.0, 15])},
    "sum_bars": {"embedding": TABLE[1, :4], "codes": {"a": np.ones(4), "b": 2 * np.ones(4)}},
    "table_lengths": {"tables": {"a": TABLE[:9], "b": TABLE, "c": TABLE}},
    "table_sum": {"x": TABLE[:5], "pe": TABLE[5:10], "tokens": list("abcde")},
    "timeline": {"events": {"a": {"b": 2017.5, "c": 2021.25}, "d": {"e": 2019.0}}},
    "toeplitz_maps": {"scores": {"a": SQUARE, "b": SQUARE, "c": SQUARE}},
    "training_panels": {"embedding": STEPS, "codes": STEPS, "tokens": list("abcde")},
    "vector_sum": {"embedding": np.array([1.0, 3]), "codes": np.array([[2.0, 1], [1, 3]])},
    "waveforms": {"dim": 64, "pairs": [0, 10, 21, 31], "n": 100, **BASE},
    "wavelength_ladder": {"dims": [4, 8, 64], **BASE},
}  # fmt: skip
OWN = {name: set(inspect.signature(getattr(plot, name)).parameters) - {"lang"} for name in PICTURES}
WITH_AXES = [name for name in PICTURES if "ax" in OWN[name]]


def drawn(name: str, **options: Any) -> Any:
    return getattr(plot, name)(**{**PICTURES[name], **options})


def the_figure() -> Figure:
    (number,) = plt.get_fignums()
    return plt.figure(number)


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


@functools.cache
def glyphs() -> set[str]:
    """The characters that matplotlib's font and the Chinese one of this machine have."""
    files = (font_manager.findfont(name) for name in ("DejaVu Sans", _style.chinese_font() or "DejaVu Sans"))
    return {"\n"} | {chr(code) for file in files for code in font_manager.get_font(file).get_charmap()}


def test_no_picture_and_no_argument_is_left_out() -> None:
    given = {name: set(options) for name, options in PICTURES.items()}
    assert given == {name: OWN[name] - {"ax"} for name in plot.__all__}


# --- Read ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_can_be_read_and_changes_nothing_but_its_figure(name: str, lang: str) -> None:
    with mpl.rc_context():
        figures.set_up()  # the style of the pages, and their measuring font
        given, settings = copy.deepcopy(PICTURES[name]), dict(mpl.rcParams)
        result, figure = getattr(plot, name)(**given, lang=lang), the_figure()
        assert (result in figure.axes) if isinstance(result, Axes) else (result is figure)
        np.testing.assert_equal(given, PICTURES[name])
        assert dict(mpl.rcParams) == settings
        assert figure.get_figwidth() == WIDTH
        assert figurecheck.told_apart(figure) == []
        if lang == "en":  # colours speak no language
            svg = figures.to_svg(figure)  # which also lays the figure out, once for all
            for palette, (ground, letters) in contrast.palettes().items():
                assert contrast.faint(svg, ground, letters) == [], palette
        assert figurecheck.explained(figure) == []
        assert figurecheck.legible(figure) == []
        words = texts(figure)
        if lang == "en":
            assert not [text for text in words if re.search("[\u2e80-\uffef]", text)]
        else:
            assert any(re.search("[\u4e00-\u9fff]", text) for text in words)
            # Shapes, such as (batch, seq), are code; of the rest only names, units and total variation are not Chinese.
            said = [re.sub(r"\([a-z_, /2]+\)", "", text) for text in words]
            english = {word for text in said for word in re.findall("[A-Za-z_]{2,}", text)}
            assert english <= {"ALiBi", "TV", "head_dim", "rad", "softmax"}
            assert set("".join(words)) <= glyphs() or _style.chinese_font() is None


@pytest.mark.parametrize("name", WITH_AXES)
@pytest.mark.usefixtures("chinese_font")
def test_a_picture_draws_into_given_axes(name: str) -> None:
    figure, ax = plt.subplots()
    assert drawn(name, ax=ax, lang="zh") is ax
    assert the_figure() is figure
    assert ax.has_data()
    figure.draw_without_rendering()  # a missing glyph is a warning, and a warning an error


@pytest.mark.parametrize("name", PICTURES)
def test_another_language_or_axes_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match='lang must be "en" or "zh", got \'fr\''):
        drawn(name, lang="fr")
    if name in WITH_AXES:
        with pytest.raises(TypeError, match="ax must be matplotlib Axes or None, got ndarray"):
            drawn(name, ax=np.eye(2))
    assert not plt.get_fignums()


# --- Kinds of arrays ----------------------------------------------------------------------------------------


def changed(value: Any, kind: str) -> Any:
    """`value` with all its arrays turned into another kind."""
    if isinstance(value, dict):
        return {label: changed(part, kind) for label, part in value.items()}
    if isinstance(value, list):
        return [changed(part, kind) for part in value]
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype == bool:
        return value.tolist() if kind == "list" else torch.tensor(value) if kind == "bfloat16" else value
    tensor = torch.tensor(value).bfloat16()
    if kind == "bfloat16":
        return tensor.requires_grad_()
    return tensor.tolist() if kind == "list" else tensor.double().numpy()


def shown(figure: Figure) -> list[Any]:
    """The data of all lines, maps and shapes, and the words."""
    data: list[Any] = []
    for artist in figure.findobj():
        if isinstance(artist, Line2D):
            data.append(artist.get_xydata())
        elif isinstance(artist, AxesImage):
            data.append(np.ma.filled(np.ma.asarray(artist.get_array(), dtype=float), np.nan))
        elif isinstance(artist, Patch):
            data.append(artist.get_verts())
        elif isinstance(artist, Collection):
            data += [path.vertices for path in artist.get_paths()]
        elif isinstance(artist, Text):
            data.append(artist.get_text())
    return data


@pytest.mark.parametrize("name", [name for name, given in PICTURES.items() if "array(" in repr(given)])
def test_lists_and_tensors_with_a_gradient_in_bfloat16_are_drawn_alike(name: str) -> None:
    expected = None
    for kind in ("rounded", "list", "bfloat16"):
        given = changed(PICTURES[name], kind)
        drawn(name, **given)
        found = shown(the_figure())
        plt.close("all")
        expected = expected or found
        np.testing.assert_equal(found, expected, err_msg=kind)


# --- What is refused ----------------------------------------------------------------------------------------


def spoiled(value: Any) -> Iterator[Any]:
    """What cannot stand where `value` does: not a number, no number at all, too few, too many axes."""
    match value:
        case bool():
            return
        case int() | float():
            yield from ("text", np.nan, np.inf, [value, value], 1j)
        case dict():
            yield from ({}, list(value.values()))
            last = list(value)[-1]
            yield from ({**value, last: bad} for bad in spoiled(value[last]))
        case [*_, str()]:
            yield from ([*value, "z"], value[:-1], [])
        case [*_, int()]:
            yield from ([], [np.nan], ["text"], [1.5], [value], 8)
        case list():
            yield from ([], *([*value[:-1], bad] for bad in spoiled(value[-1])))
        case np.ndarray():
            yield from (value[None], value[:0], [*value.tolist(), [[1.0]]], value.astype(str))
            if value.dtype == bool:
                yield value.astype(int)
            else:
                yield value * 1j
                for bad in (np.nan, np.inf):
                    yield np.where(np.arange(value.size).reshape(value.shape) == value.size - 1, bad, value)


@pytest.mark.parametrize(
    ("name", "argument"), [(name, argument) for name, given in PICTURES.items() for argument in given]
)
def test_what_cannot_be_drawn_is_refused_by_its_name(name: str, argument: str) -> None:
    for bad in spoiled(PICTURES[name][argument]):
        with pytest.raises((TypeError, ValueError), match=rf"\b{argument}\b"):
            pytest.fail(f"{argument}={bad!r} was taken: {drawn(name, **{argument: bad})}")
        assert not plt.get_fignums(), f"{argument}={bad!r} left an empty figure"


# What must fit something else: with a row less it does not.
FITTING = """attention_map.mask attention_pair.masked_weights attention_pair.weights curves.x distance_profiles.codes
    graph_codes.codes graph_codes.places leak_paths.layers order_blindness.first_outputs order_blindness.second_outputs
    sum_bars.codes table_sum.pe training_panels.codes vector_sum.embedding"""


@pytest.mark.parametrize("place", FITTING.split())
def test_what_must_fit_is_refused_with_a_row_less(place: str) -> None:
    name, argument = place.split(".")
    given = copy.copy(PICTURES[name][argument])
    if isinstance(given, np.ndarray):
        given = given[:-1]
    else:
        last = list(given)[-1] if isinstance(given, dict) else -1
        given[last] = given[last][:-1]
    with pytest.raises(ValueError, match=rf"\b{argument}\b.* must have shape"):
        drawn(name, **{argument: given})


# At most so many of what is drawn, and at least so many where integers are asked for.
MOST = {
    3: "axis_pairs.frequencies leak_paths.layers mask_maps.masks vector_sum.codes",
    4: "alibi_maps.slopes alibi_rows.slopes attention_blurs.peaks distance_weights.panels grid_maps.maps "
    "offset_stripes.gains rotating_pairs.places seen_angles.methods seen_angles.pairs shift_arrows.pairs "
    "table_lengths.tables toeplitz_maps.scores",
    5: "shift_arrows.positions training_panels.embedding",
    6: "alibi_weights.slopes bias_curves.biases clock_hands.positions cosine_sums.bases curves.curves "
    "distance_profiles.codes graph_codes.codes head_scores.wavelengths "
    "locality_curves.scores nearest_codes.dims score_by_position.curves shift_errors.errors timeline.events",
    30: "accuracy_by_length.panels",
}
LEAST = {
    0: "distance_profiles.position period_comb.position",
    1: "accuracy_by_length.trained alibi_maps.n bias_curves.trained curves.trained score_by_position.width",
    2: "alibi_weights.n attention_blurs.n cosine_sums.n head_scores.n kernel_curves.n rbf_bumps.n waveforms.n",
    3: "nearest_codes.n",
}


def many(value: Any, n: int) -> Any:
    """n of what is given in a mapping, an array or a list."""
    if isinstance(value, dict):
        return dict.fromkeys(map(str, range(n)), next(iter(value.values())))
    return np.resize(value, (n, *value.shape[1:])) if isinstance(value, np.ndarray) else [value[0]] * n


@pytest.mark.parametrize(("most", "places"), MOST.items())
def test_no_more_are_drawn_than_can_be_told_apart(most: int, places: str) -> None:
    for name, argument in (place.split(".") for place in places.split()):
        with pytest.raises(ValueError, match=f"{argument} must hold 1 to {most}, got {most + 1}"):
            drawn(name, **{argument: many(PICTURES[name][argument], most + 1)})
    assert not plt.get_fignums()


@pytest.mark.parametrize(("least", "places"), LEAST.items())
def test_integers_are_not_too_small(least: int, places: str) -> None:
    for name, argument in (place.split(".") for place in places.split()):
        with pytest.raises(ValueError, match=f"{argument} must be at least {least}, got {least - 1}"):
            drawn(name, **{argument: least - 1})
    assert not plt.get_fignums()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("accuracy_by_length", {"panels": {k: {k: RUNS} for k in "abcdef"}}, "at most 5 labels in all, got 6"),
        ("accuracy_by_length", {"lengths": [32, 8, 64, 256]}, r"lengths must ascend, got \[32, 8, 64, 256\]"),
        ("alibi_maps", {"slopes": [-0.5]}, "slopes must be at least 0, got -0.5"),
        ("alibi_rows", {"slopes": [-0.5]}, "slopes must be at least 0, got -0.5"),
        ("alibi_weights", {"slopes": [0.0]}, "slopes must be above 0, got 0"),
        ("attention_blurs", {"peaks": [0.0]}, "peaks must be above 0, got 0"),
        ("cache_slots", {"caches": {"a": SLOTS[0]}}, r"caches\['a'\] must have shape \(2, tokens, slots\)"),
        ("clip_axis", {"frames": [0.0, 1]}, "frames must be at least as many as words, 3, got 2"),
        ("clip_axis", {"frames": np.arange(9.0)[::-1]}, "marks must not go back"),
        ("clip_axis", {"times": [300.0, 2100, 4200]}, "in another unit"),
        ("clip_axis", {"rate": 0}, "rate must be above 0"),
        ("clock_hands", {"dim": 14}, "dim must be at most 12 .* got 14"),
        ("clock_hands", {"dim": 7}, "dim must be even .* got 7"),
        ("code_distances", {"dims": [4, 5]}, "each of dims must be even .* got 5"),
        ("curves", {"x": list("abc"), "log": False}, "x must hold 40 names, got 3"),
        ("curves", {"x": None}, "x must be numbers above 0 on a logarithmic axis, got None"),
        ("curves", {"x": np.arange(40)}, "x must be above 0, got 0"),
        ("distance_profiles", {"position": 40}, r"position must lie in 0\.\.39, got 40"),
        ("graph_codes", {"graph": "path"}, "graph must be an array .* got 'path'"),
        ("grid_maps", {"place": (5, 0)}, r"place must lie in 0\.\.4, got 5"),
        ("head_scores", {"wavelengths": [0.0]}, "wavelengths must be above 0, got 0"),
        ("heat_map", {"codes": np.zeros((3, 0))}, r"codes must have shape \(n, dim\), .*got \(3, 0\)"),
        ("kernel_curves", {"dims": [5]}, "each of dims must be even .* got 5"),
        ("offset_stripes", {"gains": [0]}, "gains must be above 0, got 0"),
        ("offset_stripes", {"n": 6}, "n must be above 6 for offset 3, got 6"),
        ("output_mask_bars", {"changes": {"a": (1, -1)}}, r"changes\['a'\] must be at least 0, got -1"),
        ("padding_sides", {"lengths": [13]}, "lengths must hold numbers from 1 to 12"),
        ("padding_sides", {"lengths": [0]}, "each of lengths must be at least 1, got 0"),
        ("period_comb", {"period": 0}, "period must be finite and above 0"),
        ("ring_schedule", {"n": 18, "world": 9}, "world must be at most 8 in a picture, got 9"),
        ("rotating_pairs", {"dim": 14}, "dim must be at most 12 .* got 14"),
        ("rotating_pairs", {"places": [[1, 2, 3]]}, r"places must have shape \(n, 2\), got \(1, 3\)"),
        ("score_by_position", {"measure": "loss"}, "measure must be"),
        ("score_by_position", {"curves": {"a": [[1.5]]}}, "must be at least 0 and at most 1, got 1.5"),
        ("shard_rows", {"n": 64}, "n must be at most 32 in a picture, got 64"),
        ("shift_arrows", {"pairs": [2]}, "pairs must lie in 0..1 for dim 4, got 2"),
        ("shift_errors", {"errors": {"a": [-1.0]}}, r"errors\['a'\] must be at least 0, got -1"),
        ("training_panels", {"embedding": STEPS[:1]}, "embedding must hold the start and at least one step"),
        ("waveforms", {"pairs": [32]}, r"pairs must lie in 0\.\.31 for dim 64, got 32"),
        ("waveforms", {"pairs": [True]}, "each of pairs must be an integer, got True"),
        ("wavelength_ladder", {"base": 1}, "base must be finite and above 1, got 1"),
    ],
)  # fmt: skip
def test_limits_are_named_with_what_was_given(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        drawn(name, **options)
    assert not plt.get_fignums()
