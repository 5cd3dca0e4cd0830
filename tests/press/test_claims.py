"""What figures claim of their curves: each kind of claim, and the claims of this book that once were wrong."""

import json
import re
from functools import cache
from typing import Any

import matplotlib.pyplot as plt
import pytest
from press import claims, numbers, pages
from press.cache import ROOT
from press.check import planted
from press.running import execute, outputs


@cache
def drawn(code: str) -> list[dict[str, Any]]:
    """The panels of the figure that a block draws, as the cache of the build would give them."""
    plt.close("all")
    exec(code, {"__name__": "__main__"})
    panels: list[dict[str, Any]] = json.loads(json.dumps(numbers.panels(plt.gcf())))
    return panels


@pytest.mark.parametrize(("good", "bad", "says"), planted.CLAIMS)
def test_a_claim_holds_or_it_is_said_what_is_drawn(good: str, bad: str, says: str) -> None:
    panels = drawn(planted.DRAWING)
    assert list(claims.faults(good, panels)) == []
    (said,) = claims.faults(bad, panels)
    assert said.startswith(bad)
    assert says in said


def test_each_kind_of_claim_has_an_example() -> None:
    called = {name for _, bad, _ in planted.CLAIMS for name in re.findall(r"\w+(?=\()", bad)}
    assert {kind.__name__ for kind in claims.KINDS} <= called


def test_what_does_not_hold_is_a_fault_of_the_page_and_its_numbers_may_be_said() -> None:
    text = f"```python\n{planted.DRAWING}```\n<!-- figure: 80% and 6 -->\n<!-- holds: share(bars, 1, 2) == 80% -->\n"
    wrong = text.replace("== 80%", "== 81%")
    for source, found in ((text, []), (wrong, ["80% is neither in the drawing", "== 81% does not hold"])):
        (unit,) = pages.parse(source).blocks
        faults = outputs.faults(unit, execute.run([unit.code]))
        assert len(faults) == len(found)
        assert all(part in fault.message for part, fault in zip(found, faults, strict=True))


# --- Once wrong ---------------------------------------------------------------------------------------------

FOUR_HEADS = """
import matplotlib.pyplot as plt
heads = [{179: .499, 122: .3, 242: .1}, {242: .352, 122: .2}, {3: .401, 242: .21, 122: .08}, {122: .674, 242: .05}]
for weights, look in zip(heads, ("-", "--", "-.", ":")):
    plt.plot([weights.get(k, 0) for k in range(251)], look)
"""
BY_POSITION = """
import matplotlib.pyplot as plt
yarn = [.975, .9038, .902, .8746, .8678, .8694, .8624, .8606, .8638, .8598, .8678, .8692, .8684, .8754, .8698, .8698]
plt.plot([8 + 16 * k for k in range(16)], yarn, "^-.")
plt.ylim(-0.03, 1.05)
"""
PANELS = """
import matplotlib.pyplot as plt
_, axes = plt.subplots(5, 3)
for k, ax in enumerate(axes.flat):
    ax.plot([32, 256], [1, 0.07 if k in (1, 4, 7, 12) else 0.5], "o-")
    ax.plot([32, 256], [1, 0.07 if k < 11 else 0.6], "s--")
"""
ONCE_WRONG = [  # a page or a drawing, what is right, what was said, what the check says of that
    ("alibi", "share(p3.bars, 50, 59) == 96.5%", "share(p3.bars, 50, 59) == 100%", "it is 0.965"),
    ("alibi", "share(p2.bars, 20, 20) == 61%", "share(p2.bars, 20, 20) > 0.9", "it is False"),
    ("times", "width(dashed) + 1 == 33", "30 * width(dashed) < 10", "it is False"),
    ("addition", "0.57, 0.996, 1.000", "at(circles, 4, 8, 16) == 0.57, 1.000, 1.000", "0.574, 0.996"),
    ("extrapolation", "1.2, 2.2, 5.7", "at(solid, 8, 32, 2048) == 1.2, 2.1, 5.7", ", 2.17"),
    ("extrapolation", "top(dashed, 32) == 2.4", "level(dashed, 32)", "it is False"),
    ("extrapolation", "low(solid) == -0.28", "low(solid) == -0.2", "it is -0.28175"),
    ("extrapolation", "mean(dashed > solid) > 0.9", "all(dashed > solid)", "it is False"),
    (FOUR_HEADS, "peaks(dashdot) == 3, 122, 242", "peaks(dashdot) == 122, 242", "it is 3, 122, 242"),
    (FOUR_HEADS, "peak(dashdot) == 3; top(dashdot) == 0.40", "all(peak(c) > 100 for c in curves)", "it is False"),
    (FOUR_HEADS, "peak(solid) == 179", "[peak(c) for c in curves] == 122, 242, 122, 242", "it is 179, 242, 3, 122"),
    (BY_POSITION, "level(triangles, 70)", "level(triangles)", "it is False"),
    (PANELS, "sum(last(p.dashed) < 0.1 for p in panels) == 11", "sum(last(p.solid) < 0.1 for p in panels) > 7", ""),
    (PANELS, "sum(last(p.solid) < 0.1 for p in panels) == 4", "mean(last(p.solid) < 0.1 for p in panels) > 0.5", ""),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("where", "right", "wrong", "says"), ONCE_WRONG)
def test_what_once_was_wrong_would_be_found(where: str, right: str, wrong: str, says: str) -> None:
    code = where
    if where.isalpha():  # a page: its own block, and what it claims now
        blocks = pages.read(ROOT / "docs" / "en" / f"{where}.md").blocks
        (code,) = (
            unit.code
            for unit in blocks
            if any(part.figure and right in part.figure.holds for part in unit.parts)
        )
    else:
        assert list(claims.faults(right, drawn(code))) == []
    assert any(says in said for said in claims.faults(wrong, drawn(code)))
