"""Claims about texts that are longer than those of training: angles computed, and trained models from their files."""

import functools
import re

import numpy as np
import torch

from posenc import sinusoidal_encoding, sinusoidal_frequencies
from posenc.experiments.choosing import held_lengths
from posenc.experiments.claims.ledger import Found, claim, found
from posenc.experiments.extrapolation import extrapolation_results
from posenc.experiments.models import released_models
from posenc.experiments.results import hybrid_results
from posenc.extrapolation import first_negative, turns, unseen_angles
from posenc.nn import SinusoidalEncoding
from posenc.relative import t5_bucket
from posenc.rotary import (
    linear_frequencies,
    ntk_frequencies,
    yarn_attention_factor,
)

_CHANCE = 1 / 16


_results = functools.cache(extrapolation_results)  # a file of half a megabyte


def _trained(scheme: str, task: str, steps: int | None = None) -> list[float]:
    """Mean of all seeds, at the trained length of 32 tokens, at 64 and at 256."""
    results = _results()
    mean = results.scores(scheme, task, steps=steps).mean(axis=0)
    return [float(mean[results.lengths.index(n)]) for n in (32, 64, 256)]


@claim("only if", "sinusoidal.md#defined")
def works_at_any_length() -> Found:
    defined = np.isfinite(sinusoidal_encoding([10**6], 64)).all()
    at_32, _, at_256 = _trained("sinusoidal", "copy")
    return found(defined, at_256 < at_32 / 2, at_32=at_32, at_256=at_256)


@claim("false", "sinusoidal.md#layer")
def layer_has_no_end() -> Found:
    try:
        SinusoidalEncoding(8, max_len=100)(torch.zeros(1, 101, 8))
    except ValueError:
        return found(False, True, max_len=100)
    return found(True, max_len=100)


@claim("only if", "extrapolation.md#false")
def period_extrapolates() -> Found:
    recall, (at_32, _, at_256) = _trained("periodic", "recall"), _trained("periodic", "back")
    return found(recall[2] > 0.85, at_256 < 0.5 * at_32, recall=recall[2], at_32=at_32, at_256=at_256)


@claim("only if", "extrapolation.md#rows")
def random_starts_help() -> Found:
    plain, started = (_trained(name, "back")[2] for name in ("sinusoidal", "sinusoidal_offset"))
    copied = _trained("sinusoidal_offset", "copy")[0]
    learned, _, far = _trained("sinusoidal_offset", "copy", 9600)
    return found(
        started > 2 * plain,
        copied < 0.5,
        plain=plain,
        started=started,
        copied=copied,
        learned=learned,
        far=far,
        without=_trained("sinusoidal", "copy", 2400)[2],
    )


@claim("only if", "learned.md#beyond")
def clamped_table_reads_on() -> Found:
    recall, (at_32, at_64, _) = (_trained("learned_clamped", task) for task in ("recall", "back"))
    return found(recall[2] > 0.85, at_64 < 0.5 * at_32, recall=recall[2], at_32=at_32, at_64=at_64)


@claim("false", "extrapolation.md#came")
def rotary_extrapolates() -> Found:
    at_32, at_64, at_256 = _trained("rotary", "back")
    small = _trained("rotary_share_base", "back")[2]
    recall = _trained("rotary_share_base", "recall")[0]
    return found(at_64 > 0.9 * at_32, at_32=at_32, at_64=at_64, at_256=at_256, small=small, recall=recall)


@claim("only if", "extrapolation.md#came")
def alibi_extrapolates() -> Found:
    recall, back, copy = (_trained("alibi", task) for task in ("recall", "back", "copy"))
    learned, _, far = _trained("alibi", "copy", 2400)
    return found(
        recall[2] > 0.85,
        copy[2] < 0.5 * copy[0],
        near=recall[0],
        recall=recall[2],
        back=back[0],
        back_far=back[2],
        copy_near=copy[0],
        copy=copy[2],
        learned=learned,
        far=far,
    )


@claim("only if", "hybrids.md#counting")
def decoder_needs_none() -> Found:
    """What a decoder without positions can name, and what it learns of *back* in the steps of the others."""
    results = hybrid_results()
    counted = np.mean(results["count"]["random words, with a start"], axis=0)[0]
    none, rotary = (np.mean(results["mixes"][f"{mix} back"], axis=0)[0] for mix in ("nnnn", "ffff"))
    return found(counted > 0.99, none < 0.7 < rotary, counted=counted, none=none, rotary=rotary)


@claim("only if", "hybrids.md#mixes")
def none_extrapolates() -> Found:
    mixes = hybrid_results()["mixes"]
    recall, copy = (np.mean(mixes[f"nnnn {task}"], axis=0) for task in ("recall", "copy"))
    return found(recall[-1] > 0.9, copy[-1] < 0.2, recall=recall[-1], copy=copy[0], far=copy[-1])


@claim("false", "longer.md#linear")
def interpolation_is_free() -> Found:
    plain, linear = (_trained(name, "back") for name in ("rotary", "rotary_linear"))
    tuned = _trained("rotary_linear_tuned", "back")[2]
    return found(linear[0] > 0.9 * plain[0], plain=plain[0], linear=linear[0], far=linear[2], tuned=tuned)


@claim("false", "longer.md#breaks")
def rotary_has_no_limit() -> Found:
    new = (unseen_angles(sinusoidal_frequencies(128), 4096, 8192) > 1e-9).sum()
    near, _, far = _trained("rotary_small_base", "back")
    return found(new == 0, new=new, near=near, far=far)


@claim("false", "longer.md#ntk")
def ntk_keeps_angles() -> Found:
    usual = sinusoidal_frequencies(128)
    new = {
        name: (unseen_angles(usual, 4096, 32_768, stretched=omega) > 1e-9).sum()
        for name, omega in (
            ("plain", usual),
            ("ntk", ntk_frequencies(128, 8)),
            ("linear", linear_frequencies(128, 8)),
        )
    }
    return found(new["ntk"] == 0, **new)


@claim("only if", "extrapolation.md#sums")
def larger_base_longer() -> Found:
    reach, round_ = {}, {}
    for name, base in (("small", 10_000), ("large", 500_000)):
        omega = sinusoidal_frequencies(128, base=base)
        reach[name] = first_negative(omega) or 0
        round_[f"{name}_round"] = (turns(omega, 4096) >= 1).sum()
    more, fewer = reach["large"] > reach["small"], round_["large_round"] < round_["small_round"]
    return found(more, fewer, **reach, **round_)


@claim("false", "longer.md#factor")
def yarn_is_frequencies() -> Found:
    factor = yarn_attention_factor(8)
    return found(factor == 1, scores=factor**2)


@claim("only if", "longer.md#advice")
def scaling_stays_on() -> Found:
    """Texts of the trained length: with YaRN's scaling switched on, and after further training with it."""
    plain, scaled, tuned = (
        _trained(name, "back")[0] for name in ("rotary", "rotary_yarn", "rotary_yarn_tuned")
    )
    return found(tuned > 0.99 * plain, scaled < 0.95 * plain, plain=plain, scaled=scaled, tuned=tuned)


@claim("false", "extrapolation.md#false")
def perplexity_shows_use() -> Found:
    plain, window = (_trained(name, "language")[2] for name in ("rotary", "rotary_window"))
    recall = _trained("rotary_window", "recall")[2]
    return found(window > plain, plain=plain, window=window, recall=recall)


@claim("only if", "relative.md#t5")
def buckets_extrapolate() -> Found:
    """The buckets that offsets up to 255 use and that a training on 128 or on 32 tokens never reached."""
    used = {
        n: set(np.asarray(t5_bucket(-np.arange(n), bidirectional=False)).tolist()) for n in (32, 128, 256)
    }
    new_128, new_32 = (len(used[256] - used[n]) for n in (128, 32))
    return found(new_128 == 0, new_32 > 0, new_32=new_32)


@claim("only if", "alibi.md#extrapolation")
def alibi_at_any_length() -> Found:
    """The task that ALiBi goes on doing at eight times the trained length, and one that it does not."""
    language, copy = _trained("alibi", "language"), _trained("alibi", "copy")
    learned, _, beyond = _trained("alibi", "copy", 2400)
    return found(
        language[2] < language[0],
        copy[2] < 0.5 * copy[0],
        perplexity=language[0],
        far=language[2],
        at_32=copy[0],
        at_256=copy[2],
        learned=learned,
        beyond=beyond,
    )


@claim("only if", "relative.md#three-back")
def biases_at_any_length() -> Found:
    """*back* at eight times the trained length."""
    kerple, t5, fire = (_trained(name, "back")[2] for name in ("kerple", "t5", "fire"))
    return found(kerple > 0.9, max(t5, fire) < 0.5, kerple=kerple, t5=t5, fire=fire)


@claim("only if", "tables.md#tasks")
def relative_at_any_length() -> Found:
    """Of the relative schemes of the sweep: the longest text at which each solves *back* and *copy*."""
    held = held_lengths(extrapolation_results())
    names = ("rotary", "xpos", "alibi", "t5", "kerple", "fire")
    back, copy = (sum(held[name][task] == 256 for name in names) for task in (0, 1))
    return found(back > 0, copy < len(names), all=len(names), back=back, copy=copy)


@claim("false", "extrapolation.md#false")
def defined_so_it_works() -> Found:
    """How many of the schemes trained on 32 tokens alone hold all three tasks up to 256."""
    held = held_lengths(extrapolation_results())
    untuned = {name: lengths for name, lengths in held.items() if not re.search("tuned|256|512", name)}
    hold = sum(min(lengths) == 256 for lengths in untuned.values())
    return found(hold == len(untuned), all=len(untuned), hold=hold)


@claim("false", "choosing.md#false")
def table_names_the_best() -> Found:
    """Schemes trained on 32 tokens alone: whether one of them goes as far as any other in every task."""
    held = {
        n: v for n, v in held_lengths(extrapolation_results()).items() if not re.search("tuned|256|512", n)
    }
    best = [max(lengths[task] for lengths in held.values()) for task in range(3)]
    leads = [{name for name, lengths in held.items() if lengths[task] == best[task]} for task in range(3)]
    return found(set.intersection(*leads), back=best[0], copy=best[1], sort=best[2])


@claim("only if", "locality.md#false")
def local_is_better() -> Found:
    """At eight times the trained length: perplexity, and *recall*, with all keys and with the last ones alone."""
    plain, window = (_trained(name, "language")[2] for name in ("rotary", "rotary_window"))
    far, near = (_trained(name, "recall")[2] for name in ("rotary", "rotary_window"))
    return found(window < plain, near < 0.5 * far, plain=plain, window=window, far=far, near=near)


@claim("false", "disentangled.md#false")
def fourth_term_is_useless() -> Found:
    """T5, whose bias is that term alone, beside a model without positions, on *back* at the trained length."""
    t5, none = (_trained(name, "back")[0] for name in ("t5", "none"))
    return found(t5 < none + 0.1, t5=t5, none=none)


def _lengths() -> list[tuple[int, int]]:
    """Of the models of the table: the length of training if the file gives one besides the limit, and the limit."""
    given = []
    for model in released_models():
        fields = model.config or {}
        scaling = fields.get("rope_scaling") or fields.get("rope_parameters") or {}
        first = scaling.get("original_max_position_embeddings") if isinstance(scaling, dict) else None
        limit = fields.get("max_position_embeddings")
        if limit:
            given.append((int(first or limit), int(limit)))
    return given


@claim("false", "longer.md#false")
def limit_is_the_trained_length() -> Found:
    """Of the models of the table that give a limit, those whose file gives a shorter length of training."""
    shorter = sum(first < limit for first, limit in _lengths())
    return found(shorter == 0, shorter=shorter, all=len(_lengths()))


@claim("false", "models.md#false")
def trained_at_128k() -> Found:
    """Of the models of the table with a limit above 100,000: what their files give as the length of training."""
    long = [(first, limit) for first, limit in _lengths() if limit > 100_000]
    shorter = [first for first, limit in long if first < limit]
    return found(not shorter, all=len(long), shorter=len(shorter), least=min(shorter))
