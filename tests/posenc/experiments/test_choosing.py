"""The table of all schemes: a scheme with a broken property changes its cell, and the counts are what arrays take."""

import functools
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import posenc
from posenc import apply_rotary, dot_product_attention, nn, t5_bias
from posenc.experiments import extrapolation_results
from posenc.experiments.choosing import (
    CANDIDATES,
    LONG,
    Answers,
    Candidate,
    Hooks,
    Sizes,
    compare_schemes,
    held_lengths,
    measure_scheme,
    scheme_table,
    schemes,
    table,
    trained_longer,
)
from posenc.experiments.extrapolation import Results


def sound(name: str) -> Answers:
    """What is measured of a scheme of the book."""
    return measure_scheme(CANDIDATES[name])


def answers(make: Callable[[Sizes], Hooks], tokens: schemes.Tokens = "line") -> Answers:
    return measure_scheme(Candidate("own", "", make, tokens))


@functools.cache
def kept() -> dict[str, Answers]:
    """What the file says, by the names of the schemes."""
    return {found.name: found for found in compare_schemes()}


def changed(found: Answers, name: str) -> set[str]:
    """The cells in which a scheme differs from one of the book."""
    ours, theirs = asdict(found), asdict(sound(name))
    return {key for key in ours if key not in ("name", "section") and ours[key] != theirs[key]}


@pytest.mark.parametrize("name", CANDIDATES)
def test_the_file_says_what_is_measured(name: str) -> None:
    assert list(kept()) == list(CANDIDATES)
    # `python -m posenc.experiments choosing` writes it anew
    assert replace(kept()[name], held=None, longer=None, tuned=None) == sound(name)


# --- Planted faults


def rope(places: Callable[[Tensor, int], Tensor], scale: float = 1.0) -> Callable[[Sizes], Hooks]:
    """RoPE at the places that are made of all places and the number of queries."""

    def turn(q: Tensor, k: Tensor, all_places: Tensor) -> tuple[Tensor, Tensor]:
        t = places(all_places, q.shape[-2])
        return apply_rotary(q, t, scale=scale), apply_rotary(k, t, scale=scale)

    return lambda sizes: Hooks(turn=turn)


def last(places: Tensor, m: int) -> Tensor:
    return places[-m:]


def ending(places: Tensor, m: int) -> Tensor:
    if places.max() >= 1000:
        raise ValueError("positions end at 999")
    return places[-m:]


@pytest.mark.parametrize(
    ("make", "cells"),
    [
        pytest.param(rope(last), set(), id="as in the book"),
        pytest.param(rope(lambda t, m: t[-m:].double().log1p()), {"shift"}, id="differences are no offsets"),
        pytest.param(rope(lambda t, m: torch.arange(m)), {"cached"}, id="each call counts from 0"),
        pytest.param(rope(lambda t, m: t[-m:] / (t[-1] + 1)), {"shift", "cached", "change"}, id="length decides"),
        pytest.param(rope(last, scale=1.2), {"norm"}, id="a factor"),
        pytest.param(rope(ending), {"defined", "memory", "cost"}, id="positions end"),
        pytest.param(lambda s: rope(lambda t, m: t[-m:] / s.factor)(s), {"change"}, id="made for a length"),
        pytest.param(lambda s: replace(rope(last)(s), parameters=(torch.ones(7),)), {"parameters"}, id="trained"),
    ],
)  # fmt: skip
def test_a_broken_property_changes_its_cell(make: Callable[[Sizes], Hooks], cells: set[str]) -> None:
    found = changed(answers(make), "rotary")
    assert found - {"memory", "cost"} == cells - {"memory", "cost"}
    assert found >= cells


def coded(code: Callable[[Tensor, Tensor], Tensor]) -> Hooks:
    """By what is added at the places of all tokens."""
    return Hooks(add=lambda x, places: x + code(x, places)[-len(x) :, None].to(x.dtype))


def biased(bias: Callable[[Tensor, Tensor], Tensor]) -> Hooks:
    """By a bias of places of queries and keys."""
    return Hooks(bias=lambda m, u, dtype: bias(u[-m:, None].to(dtype), u.to(dtype)))


def multiplied(factor: Callable[[Tensor, Tensor], Tensor]) -> Hooks:
    """By a factor of scores, of places of queries and keys."""

    def attend(q: Tensor, k: Tensor, v: Tensor, u: Tensor, mask: Tensor | None) -> Tensor:
        scores = factor(u[-q.shape[-2] :, None].to(q.dtype), u) * (q @ k.mT) / 4
        return dot_product_attention(torch.zeros_like(q), k, v, bias=scores, mask=mask)[0]

    return Hooks(attend=attend)


@pytest.mark.parametrize(
    ("hooks", "tokens", "answer", "value"),
    [
        (biased(lambda t, u: -(u - t).abs() / 8), "line", "direction", False),
        (biased(lambda t, u: (t - u) / 8), "line", "direction", True),
        (coded(lambda x, places: places < 500), "line", "defined", 500),  # a code of zeros is none
        (coded(lambda x, graph: torch.arange(len(graph))), "graph", "shift", False),  # by the number of the node
        (coded(lambda x, graph: graph.sum(dim=1)), "graph", "shift", True),  # by its degree
        # besides a vector for each token
        (biased(lambda t, u: (u - t) / 4), "line", "pairs", "no"),  # a column
        (biased(lambda t, u: (u - t) ** 2 / 400), "line", "pairs", "no"),  # two
        (biased(lambda t, u: (t * u).sqrt() / 8), "line", "pairs", "no"),  # a product, though not of offsets
        (biased(lambda t, u: -(t - u).abs().sqrt()), "line", "pairs", "offsets"),
        (biased(lambda t, u: -((t - u).abs() / (t + 1)).sqrt()), "line", "pairs", "yes"),
        (multiplied(lambda t, u: 1 / (1 + t)), "line", "pairs", "no"),  # all scores of a query alike
        (multiplied(lambda t, u: 1 + (t - u).cos() / 9 + (t - u).abs().sqrt() / 9), "line", "pairs", "yes"),
    ],
)  # fmt: skip
def test_an_answer_is_found_by_running(
    hooks: Hooks, tokens: schemes.Tokens, answer: str, value: object
) -> None:
    assert getattr(answers(lambda sizes: hooks, tokens), answer) == value


def test_columns_that_give_something_else_are_none() -> None:
    wrong = CANDIDATES["alibi_short"]  # other slopes

    def make(sizes: Sizes) -> Hooks:
        hooks = CANDIDATES["alibi"].make(sizes)
        return replace(hooks, columns=wrong.make(sizes).columns) if sizes.num_heads == 2 else hooks

    assert sound("alibi").fused
    assert changed(answers(make), "alibi") == {"fused"}


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
        assert sound(name).parameters == sum(p.numel() for p in layer.parameters()), name


def test_a_bias_takes_what_its_matrix_takes() -> None:
    bias = t5_bias(np.ones((32, 12), np.float32), 500)
    keys_and_values = 2 * 500 * 768 * 4
    assert bias.nbytes / keys_and_values == pytest.approx(500 / 128)
    assert sound("t5").memory == pytest.approx(LONG / 128, rel=1e-3)
    # added once, and twice copied on its way into (heads, n, n); by two products of width 64 and softmax
    assert sound("t5").cost == pytest.approx(2 / (4 * 64 + 6), rel=0.01)


def test_layers_by_turns_have_the_answers_of_both() -> None:
    def answered(first: str, second: str) -> Answers:
        layers = (CANDIDATES[name].make for name in (first, second))
        return measure_scheme(Candidate("own", "", next(layers), other_layers=next(layers)))

    assert changed(answered("rotary", "rotary"), "rotary") == set()
    mixed = answered("learned", "kerple")
    assert (mixed.shift, mixed.norm, mixed.fused, mixed.change) == (False, False, False, True)
    assert (mixed.direction, mixed.cached, mixed.pairs) == (True, True, "offsets")
    assert (mixed.defined, mixed.parameters) == (2048, 1_572_864 + 24)
    assert mixed.memory == sound("kerple").memory
    assert answered("rotary", "rotary_dynamic").cached is False
    assert answered("none", "alibi").direction is False


# --- What the chapter says of it


def test_every_scheme_of_the_package_is_there() -> None:
    """By the functions that make them, but for those that are other hooks to say the same."""
    used = set(re.findall(r"\w+", Path(schemes.__file__).read_text(encoding="utf-8")))
    made = {
        name
        for name in (*posenc.__all__, *posenc.rotary.__all__)
        if re.search(r"_(encoding|bias|frequencies|attention|eigenvectors|probabilities|distances)$", name)
        or name.startswith("apply_rotary")
    }
    others = {"ring_attention", "grid_encoding", "head_frequencies"}
    assert made - used == others


# --- How far they held


def results(back: list[list[float]], copy: list[list[float]], sort: list[list[float]]) -> Results:
    """Of one scheme at three lengths: scores seed by seed; tuned, it does everything."""
    scores = {"back": back, "copy": copy, "sort": sort}
    runs = [run("rotary", task, row) for task, row in scores.items()]
    runs += [run("rotary_tuned", task, [[1.0] * 3] * 2) for task in scores]
    return of([32, 64, 128], runs)


def run(scheme: str, task: str, scores: list[list[float]], steps: int = 10) -> dict[str, Any]:
    return {"scheme": scheme, "task": task, "size": "usual", "steps": steps, "scores": scores}


def of(lengths: list[int], runs: list[dict[str, Any]]) -> Results:
    return Results({"lengths": lengths, "settings": {"steps": 10}, "runs": runs})


def test_what_held_is_counted_from_the_trained_length_on() -> None:
    found = results(
        back=[[1.0, 0.95, 0.2], [1.0, 0.91, 0.4], [0.2, 0.2, 0.2]],  # the middle one of the seeds, to 64
        copy=[[1.0, 0.7, 1.0], [1.0, 0.99, 1.0]],  # a gap ends it
        sort=[[0.5, 0.9, 1.0], [0.6, 0.9, 1.0]],  # never learned
    )
    assert held_lengths(found) == {"rotary": (64, 32, 0), "rotary_tuned": (128, 128, 128)}
    (row,) = (row for row in compare_schemes(found) if row.name == "rotary")
    assert (row.held, row.tuned) == ((64, 32, 0), (128, 128, 128))
    assert " | 64 → 128 | 32 → 128 | 0 → 128 | " in scheme_table([row])
    assert changed(row, "rotary") == {"held", "longer", "tuned"}


def test_what_was_trained_longer_counts_and_is_marked() -> None:
    runs = [run("alibi", task, [[0.5, 0.5]]) for task in ("back", "copy", "sort")]
    runs += [run("alibi", "back", [[1.0, 0.5]], 40), run("alibi", "copy", [[0.6, 0.5]], 40)]
    runs += [run("alibi", "copy", [[1.0, 1.0]], 160)]
    results = of([32, 64], runs)
    assert held_lengths(results) == {"alibi": (32, 64, 0)}
    assert trained_longer(results) == {"alibi": (True, True, False)}
    (row,) = (row for row in compare_schemes(results) if row.name == "alibi")
    assert " | 32* | 64* | 0 | " in scheme_table([row])


def test_the_table_has_the_results_of_the_book() -> None:
    held = held_lengths(extrapolation_results())
    tried = {found.name: found.held for found in compare_schemes() if found.held}
    assert len(tried) > 15
    names = {name: CANDIDATES[name].result or name for name in tried}
    assert tried == {name: held[result] for name, result in names.items()}
    assert held.keys() & {each.result or name for name, each in CANDIDATES.items()} == set(names.values())


# --- The table


def test_both_languages_name_everything() -> None:
    english, chinese = (table._WORDS[lang] for lang in ("en", "zh"))
    assert english.keys() == chinese.keys()
    assert english.keys() >= CANDIDATES.keys() | set(table._HEAD)
    for words in (english, chinese):
        names = [words[name] for name in CANDIDATES]
        assert len(set(names)) == len(names)
    with pytest.raises(ValueError, match='lang must be "en" or "zh", got \'de\''):
        scheme_table([], lang="de")  # type: ignore[arg-type]


def test_each_row_and_each_column_can_be_linked_to() -> None:
    ids = re.findall(r"\{#([\w-]+)\}", scheme_table([sound(name) for name in CANDIDATES]))
    columns = [name for name in ids if name.startswith("column-")]
    assert ids[: len(columns)] == columns
    assert len(columns) == 16
    assert len(set(ids)) == len(ids) == len(CANDIDATES) + len(columns)
    assert all(re.fullmatch(r"(row|column)(-[a-z0-9]+)+", name) for name in ids)
