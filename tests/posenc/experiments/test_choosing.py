"""The table of all schemes: a scheme with a broken property changes its cell, and the counts are what arrays take."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from torch import Tensor

import posenc
from posenc import alibi_slopes, apply_rotary, nn, t5_bias
from posenc.experiments import extrapolation_results
from posenc.experiments.choosing import (
    FAR,
    LONG,
    SCHEMES,
    Answers,
    Scheme,
    Setting,
    Ways,
    compare_schemes,
    held_lengths,
    measure,
    measure_scheme,
    scheme_table,
    schemes,
    table,
)
from posenc.experiments.extrapolation import Results

ALL = {found.scheme.name: found for found in compare_schemes(held={})}


def answers(make: Callable[[Setting], Ways], lies: schemes.Lies = "line") -> Answers:
    return measure_scheme(Scheme("own", "", make, lies))


def changed(found: Answers, sound: str) -> set[str]:
    """The cells in which a scheme differs from one of the book."""
    ours, theirs = asdict(found), asdict(ALL[sound])
    return {key for key in ours if key != "scheme" and ours[key] != theirs[key]}


# --- Planted faults


def rope(places: Callable[[Tensor, int], Tensor], scale: float = 1.0) -> Callable[[Setting], Ways]:
    """RoPE at the places that are made of all places and the number of queries."""

    def turn(q: Tensor, k: Tensor, all_places: Tensor) -> tuple[Tensor, Tensor]:
        t = places(all_places, q.shape[-2])
        return apply_rotary(q, t, scale=scale), apply_rotary(k, t, scale=scale)

    return lambda setting: Ways(turn=turn)


def last(places: Tensor, m: int) -> Tensor:
    return places[-m:]


def test_what_is_as_in_the_book_has_its_answers() -> None:
    assert changed(answers(rope(last)), "rotary") == set()


def ending(places: Tensor, m: int) -> Tensor:
    if places.max() >= 1000:
        raise ValueError("positions end at 999")
    return places[-m:]


def bias_of(offsets: Callable[[Tensor], Tensor]) -> Callable[[Setting], Ways]:
    """A slope for all heads, times what is made of the offsets."""
    return lambda setting: Ways(
        bias=lambda m, places, dtype: -offsets(places - places[-m:, None]).to(dtype) / 8
    )


@pytest.mark.parametrize(
    ("make", "sound", "cells"),
    [
        # positions whose differences are not the offsets
        (rope(lambda t, m: t[-m:].double().log1p()), "rotary", {"shift"}),
        # each call counts from 0, and with it each step of decoding
        (rope(lambda t, m: torch.arange(m)), "rotary", {"cached"}),
        # the length of the text decides
        (rope(lambda t, m: t[-m:] / (t[-1] + 1)), "rotary", {"shift", "cached", "change"}),
        (rope(last, scale=1.2), "rotary", {"norm"}),
        (rope(ending), "rotary", {"defined", "memory", "cost"}),
        # the made-for length decides
        (
            lambda setting: rope(lambda t, m: t[-m:] / setting.factor)(setting),
            "rotary",
            {"change"},
        ),
        # trained
        (
            lambda setting: replace(rope(last)(setting), parameters=(torch.ones(7),)),
            "rotary",
            {"parameters"},
        ),
        # no bias, but as a matrix
        (
            lambda setting: Ways(bias=lambda m, places, dtype: torch.zeros(m, len(places), dtype=dtype)),
            "none",
            {"memory", "cost", "fused"},
        ),
    ],
)
def test_a_broken_property_changes_its_cell(
    make: Callable[[Setting], Ways], sound: str, cells: set[str]
) -> None:
    found = changed(answers(make), sound)
    assert found - {"memory", "cost"} == cells - {"memory", "cost"}
    assert found >= cells


def test_direction_is_the_sign_of_the_offset() -> None:
    assert not answers(bias_of(torch.abs)).direction
    assert answers(bias_of(lambda k: k)).direction


def test_a_fast_way_that_gives_something_else_is_none() -> None:
    slopes = torch.from_numpy(alibi_slopes(2))
    other = nn.AlibiAttention(2, slopes=slopes * 1.01)

    def make(setting: Setting) -> Ways:
        ways = SCHEMES["alibi"].make(setting)
        wrong = lambda q, k, v: other(q[None], k[None], v[None])[0]  # noqa: E731
        return replace(ways, fused=wrong) if setting.num_heads == 2 else ways

    assert ALL["alibi"].fused
    assert changed(answers(make), "alibi") == {"fused"}


def test_a_code_that_is_not_there_does_not_count() -> None:
    def add(x: Tensor, places: Tensor) -> Tensor:
        return x + (places[-len(x) :, None] < 500).to(x.dtype)

    assert answers(lambda setting: Ways(add=add)).defined == 500


def test_nodes_that_are_numbered_otherwise() -> None:
    def by_number(x: Tensor, graph: Tensor) -> Tensor:
        return x + torch.arange(len(graph))[-len(x) :, None].to(x.dtype)

    def by_degree(x: Tensor, graph: Tensor) -> Tensor:
        return x + graph.sum(dim=1)[-len(x) :, None].to(x.dtype)

    assert not answers(lambda setting: Ways(add=by_number), "graph").shift
    assert answers(lambda setting: Ways(add=by_degree), "graph").shift


# --- Counts


def test_parameters_are_those_of_the_layers() -> None:
    layers = {
        "learned": nn.LearnedEncoding(768, 2048),
        "table": nn.RelativeBias(12, 128),
        "t5": nn.T5Bias(12),
        "kerple": nn.KerpleBias(12),
        "fire": nn.FireBias(12),
        "shaw": nn.ShawAttention(64, 16),
        "rotary": nn.RotaryEmbedding(64),
        "alibi": nn.AlibiBias(12),
    }
    for name, layer in layers.items():
        assert ALL[name].parameters == sum(p.numel() for p in layer.parameters()), name


def test_a_bias_takes_what_its_matrix_takes() -> None:
    bias = t5_bias(np.ones((32, 12), np.float32), 500)
    keys_and_values = 2 * 500 * 768 * 4
    assert bias.nbytes / keys_and_values == pytest.approx(500 / 128)
    assert ALL["t5"].memory == pytest.approx(LONG / 128, rel=1e-3)
    # added once, and twice copied on its way into (heads, n, n); by two products of width 64 and softmax
    assert ALL["t5"].cost == pytest.approx(2 / (4 * 64 + 6), rel=0.01)


def test_columns_cost_their_width() -> None:
    """ALiBi widens heads of 64 to 72."""
    assert ALL["alibi"].cost == pytest.approx(4 * 8 / (4 * 64 + 6), rel=1e-3)


@pytest.mark.parametrize("name", ["rotary", "t5", "shaw"])
def test_what_is_followed_to_128k_is_met_on_the_way(name: str) -> None:
    values = [measure._counted(SCHEMES[name], n) for n in measure._LENGTHS]
    for which in (0, 1):
        square = measure._polynomial(SCHEMES[name], [value[which] for value in values])
        assert square(600) == measure._counted(SCHEMES[name], 600)[which]


def test_what_is_no_polynomial_is_not_followed() -> None:
    cube = lambda n: torch.ones(n // 8, n // 8, n // 8)  # noqa: E731
    make = lambda setting: Ways(add=lambda x, places: x + cube(len(x)).sum())  # noqa: E731
    with pytest.raises(RuntimeError, match="own takes is no polynomial"):
        answers(make)


def test_nothing_of_the_state_around_matters() -> None:
    for name in ("fire", "rotary_mixed", "laplacian"):
        torch.manual_seed(3)
        assert measure._measured.__wrapped__(SCHEMES[name]) == ALL[name]


# --- What the chapter says of it


def test_what_is_known_of_the_schemes() -> None:
    blind = {name for name, found in ALL.items() if found.direction is False}
    assert blind == {"none", "none_logn", "alibi", "kerple", "fire"}
    assert {name for name, found in ALL.items() if not found.cached} == {
        *("rotary_dynamic", "rotary_longrope"),
        *(name for name, scheme in SCHEMES.items() if scheme.lies == "graph"),
    }
    ends = {
        name: found.defined
        for name, found in ALL.items()
        if found.defined is not None and found.defined < FAR
    }
    assert ends.pop("rbf") == pytest.approx(16_384 + 128, abs=64)
    assert ends == {
        "one_hot": 768,
        "learned": 2048,
        "learned_stretched": 16_384,
        "grid_table": 16_384,
        "xpos": 35_695,
    }


def test_every_scheme_of_the_package_is_there() -> None:
    """By the functions that make them, but for those that are other ways to say the same."""
    source = (schemes.__file__, "r")
    with open(*source, encoding="utf-8") as file:
        used = set(re.findall(r"\w+", file.read()))
    made = {
        name
        for name in posenc.__all__
        if re.search(r"_(encoding|bias|frequencies|attention|eigenvectors|probabilities|distances)$", name)
        or name.startswith("apply_rotary")
    }
    others = {"ring_attention", "grid_encoding"}
    assert made - used == others


# --- How far they held


def results(back: list[list[float]], copy: list[list[float]], sort: list[list[float]]) -> Results:
    """Of one scheme at three lengths: scores seed by seed; tuned, it does everything."""
    scores = {"back": back, "copy": copy, "sort": sort}
    runs = [{"scheme": "rotary", "task": task, "scores": row} for task, row in scores.items()]
    runs += [{"scheme": "rotary_tuned", "task": task, "scores": [[1.0] * 3] * 2} for task in scores]
    return Results({"lengths": [32, 64, 128], "runs": runs})


def test_what_held_is_counted_from_the_trained_length_on() -> None:
    found = held_lengths(
        results(
            back=[[1.0, 0.95, 0.2], [1.0, 0.91, 0.4]],  # the mean of the seeds, to 64
            copy=[[1.0, 0.7, 1.0], [1.0, 0.99, 1.0]],  # a gap ends it
            sort=[[0.5, 0.9, 1.0], [0.6, 0.9, 1.0]],  # never learned
        )
    )
    assert found == {"rotary": (64, 32, 0), "rotary_tuned": (128, 128, 128)}
    row = measure_scheme(SCHEMES["rotary"], found)
    assert (row.held, row.tuned) == ((64, 32, 0), (128, 128, 128))
    assert " | 64 → 128 | 32 → 128 | 0 → 128 | " in scheme_table([row])
    assert changed(row, "rotary") == {"held", "tuned"}


def test_the_table_has_the_results_of_the_book() -> None:
    held = held_lengths(extrapolation_results())
    tried = {found.scheme.name: found.held for found in compare_schemes() if found.held}
    assert len(tried) > 15
    assert tried == {name: held[name] for name in tried}
    assert held.keys() >= {name for name in SCHEMES if name in held}


def test_what_the_chapter_says_of_the_results() -> None:
    """No scheme does all three tasks at the longest; the mask alone sorts and cannot look back."""
    found = compare_schemes()
    reached = [min(lengths) for one in found for lengths in (one.held, one.tuned) if lengths]
    assert max(reached) < 256
    assert next(one.held for one in found if one.scheme.name == "none") == (0, 0, 256)


# --- The table


def test_both_languages_name_everything() -> None:
    english, chinese = (table._WORDS[lang] for lang in ("en", "zh"))
    assert english.keys() == chinese.keys()
    assert english.keys() >= SCHEMES.keys() | set(table._HEAD)
    for words in (english, chinese):
        names = [words[name] for name in SCHEMES]
        assert len(set(names)) == len(names)
    with pytest.raises(ValueError, match='lang must be "en" or "zh", got \'de\''):
        scheme_table([], lang="de")  # type: ignore[arg-type]


def test_numbers_are_the_same_in_both_languages() -> None:
    found = list(ALL.values())
    ours, theirs = (scheme_table(found, lang=lang).splitlines()[2:] for lang in ("en", "zh"))
    for one, other in zip(ours, theirs, strict=True):
        assert re.findall(r"[\d.,]+", one.partition("} | ")[2]) == re.findall(
            r"[\d.,]+", other.partition("} | ")[2]
        )


def test_each_row_can_be_linked_to() -> None:
    ids = re.findall(r"\{#([\w-]+)\}", scheme_table(list(ALL.values())))
    assert len(set(ids)) == len(SCHEMES)
    assert all(re.fullmatch(r"row(-[a-z0-9]+)+", name) for name in ids)


@pytest.mark.parametrize(
    ("share", "shown"), [(0.0, "0%"), (4e-6, "< 0.01%"), (0.0076, "0.76%"), (0.122, "12%"), (1.5, "150%")]
)
def test_percent(share: float, shown: str) -> None:
    assert table._percent(share) == shown
