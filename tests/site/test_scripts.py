"""The script of every chapter runs from beginning to end, without a warning."""

from __future__ import annotations


def test_the_script_of_every_chapter_runs(scripts: dict[str, str]) -> None:
    """None but the two that are bad."""
    assert scripts == {"raises.py": "ZeroDivisionError: division by zero", "warns.py": "UserWarning: no"}
