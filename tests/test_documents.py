"""Every block of the pages and of the README, and every example of a docstring, runs and gives what it shows."""

from __future__ import annotations

import subprocess


def test_blocks_and_docstrings(documents: subprocess.CompletedProcess[str]) -> None:
    assert documents.returncode == 0, documents.stdout[-20_000:] + documents.stderr[-2000:]
    assert " passed" in documents.stdout
