"""Faults planted in tiny models of transformers, and what posenc.check.all must say of each."""

from collections.abc import Callable
from typing import Any

import pytest

import posenc.check
from posenc.check.tried import tiny_model
from tests.peers import peer

Fault = Callable[[pytest.MonkeyPatch], Any]


def made(name: str, **fields: Any) -> Any:
    """A tiny model of transformers; skipped without them."""
    peer("transformers")
    return tiny_model(name, **fields)


class Faults(dict[str, tuple[Fault, str]]):
    """Faults by their names, each with words of its cause."""

    def planted(self, words: str) -> Callable[[Fault], Fault]:
        def kept(fault: Fault) -> Fault:
            self[fault.__name__] = fault, words
            return fault

        return kept

    def must_be_named(self, name: str, patch: pytest.MonkeyPatch) -> None:
        """The first line of the report is a fault and names its cause."""
        fault, words = self[name]
        report = posenc.check.all(fault(patch))
        first = sorted(report.findings, key=lambda finding: finding.ok)[0]
        assert not first.ok, report
        assert words in first.look, report
