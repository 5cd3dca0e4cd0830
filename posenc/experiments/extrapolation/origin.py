"""What the results file says beside its runs, and whether it belongs to the code that stands here."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from posenc.experiments.extrapolation.runs import BIN, LENGTHS, SIZES, Settings
from posenc.experiments.extrapolation.tasks import TASKS
from posenc.experiments.schemes import SCHEMES

FOLDER = Path(__file__).parent


def header(
    settings: Settings, rates: dict[str, dict[str, list[float]]], floor: Iterable[float]
) -> dict[str, Any]:
    """What the file says beside the runs. `rates`: the losses of each scheme and task at each of the rates."""
    return {
        "made_by": "python -m posenc.experiments extrapolation",
        "code": code_digest(),
        "settings": asdict(settings),
        "sizes": {name: asdict(size) for name, size in SIZES.items()},
        "lengths": list(LENGTHS),
        "positions_together": BIN,
        "chance": {name: task.chance for name, task in TASKS.items()},
        "floor": [round(value, 4) for value in floor],
        "schemes": described(),
        "losses_by_rate": rates,
    }


def described() -> dict[str, dict[str, Any]]:
    """The schemes, each by what tells it from the plainest one."""
    plain = asdict(SCHEMES["none"]) | {"name": None}
    return {
        name: {key: value for key, value in asdict(scheme).items() if value != plain[key]}
        for name, scheme in SCHEMES.items()
    }


def code_digest(folder: Path = FOLDER) -> str:
    """A digest of what decides the numbers of the file: the code of this folder's tasks and runs, settings, schemes.

    Not of the formulas that they call: that these still give the file's numbers is tested by training anew.
    """
    decides = json.dumps([asdict(Settings()), described()], sort_keys=True)
    digest = hashlib.sha256(decides.encode())
    for name in ("runs.py", "tasks.py"):
        digest.update(f"{name}\n{_bare(folder / name)}\n".encode())
    return digest.hexdigest()[:16]


def _bare(file: Path) -> str:
    """The code without docstrings, lines of comment and empty ones. Not ast.dump: each Python has its own."""
    text = file.read_text(encoding="utf-8")
    lines: list[str] = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (1 + (node.end_lineno or 0) - node.lineno)
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))
