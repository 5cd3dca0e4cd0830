"""What tests of the machinery share."""

import os

import pytest
from press.running import execute


class Here:
    """Runs units in this process, which is faster and hides nothing."""

    codes: list[str]

    def run(self, units: list[list[str]]) -> list[execute.Outcome]:
        self.codes += map("".join, units)
        return [execute.run(parts) for parts in units]

    def close(self) -> None:
        pass


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The code of the units that had to be run."""
    monkeypatch.setattr(execute, "Interpreter", type("Counted", (Here,), {"codes": (codes := list[str]())}))
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    return codes
