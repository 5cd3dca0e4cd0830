"""What figures claim of their curves: each kind of claim, and what becomes of one that does not hold."""

import json
import re
from functools import cache
from typing import Any

import matplotlib.pyplot as plt
import pytest
from press import claims, numbers, pages
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
