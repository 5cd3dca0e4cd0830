"""Keys on their way from the cache to the scores: a cache can be right, and what is made of it wrong."""

from __future__ import annotations

from torch import Tensor

from posenc.check.models import Called, change, counted
from posenc.check.seen import attended

__all__ = ["changed_on_the_way"]


def changed_on_the_way(called: Called, ids: Tensor, start: int, new: int = 1) -> str:
    """What is wrong with keys that attention gets in a call with a cache, which itself is right; "" if nothing."""
    cache = called.step(ids[:, :-new], None)[1]
    step = [each.keys for each in attended(called, lambda: called.step(ids[:, -new:], cache))]
    whole = [each.keys for each in attended(called, lambda: called.step(ids, None))]
    # What is wrong in one layer makes others in the next, and those of a window have another length.
    if not step or len(step) != len(whole) or step[0].shape != whole[0].shape:
        return ""
    found, right = step[0], whole[0]
    limit = 1e-4 * float(right.abs().max())
    wrong = [t for t in range(right.shape[-2]) if change(found[..., t, :], right[..., t, :]) > limit]
    if not any(t < ids.shape[1] - new for t in wrong):
        return ""
    whose = f"({len(wrong)} of {right.shape[-2]} keys, layer 0)"
    if called.positions and wrong:
        again = [each.keys for each in attended(called, lambda: called.at(ids, 2 * counted(ids, start)))]
        if again and change(found[..., wrong, :], again[0][..., wrong, :]) <= 10 * limit:
            return f"keys from the cache are turned again before the scores, and the cache holds them turned {whose}"
    if change(found.norm(dim=-1), right.norm(dim=-1)) <= 10 * limit:
        return f"keys from the cache are turned otherwise before the scores: again, or for other positions {whose}"
    return f"keys from the cache are changed before the scores, and the cache itself is right {whose}"
