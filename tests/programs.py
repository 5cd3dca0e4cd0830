"""Programs of their own: what this Python does with a program, or with a module."""

import subprocess
import sys
from typing import Any


def python(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """What `python -c code` or `python -m module` does, with the options of subprocess.run."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, **{"capture_output": True, "text": True, "check": False, **options})
