"""What a check found."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "note", "FAULT", "left out"]


@dataclass(frozen=True)
class Finding:
    """One comparison.

    Attributes:
        what: what was compared.
        verdict: "ok"; "note" for what is right or wrong as it was meant; "FAULT"; "left out" where it cannot be tried.
        says: what was found, in words.
        number: the measured difference or count, as said in words; nan where nothing was measured.
        look: where to look, or the cause itself where it was proved; "" if nothing is to be done.
        section: where the book explains it, a page and a heading: "masks#left".

    Source: a check of this book, explained in check.md#interface.
    """

    what: str
    verdict: Verdict
    says: str
    number: float
    look: str
    section: str

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong here."""
        return self.verdict != "FAULT"

    def __str__(self) -> str:
        says = f"{self.look} ({self.says})" if self.look else self.says
        lines = textwrap.fill(
            f"{self.what}: {says}", 84, initial_indent=f"{self.verdict:<10}", subsequent_indent=" " * 10
        )
        return lines + f"\n{'':10}see {self.section}" * (self.verdict in ("FAULT", "note"))


@dataclass(frozen=True)
class Report:
    """Findings, the faults first. Print it for a text to read.

    Source: a check of this book, explained in check.md#interface.
    """

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether no finding is a fault."""
        return not self.faults

    @property
    def faults(self) -> tuple[Finding, ...]:
        """Those that are faults."""
        return tuple(finding for finding in self.findings if not finding.ok)

    def __str__(self) -> str:
        order = {"FAULT": 0, "note": 1, "ok": 2, "left out": 3}
        return "\n".join(map(str, sorted(self.findings, key=lambda finding: order[finding.verdict])))
