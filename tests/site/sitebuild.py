"""Building the site, for the tests and the benchmarks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build(root: Path, site: Path, **environment: str) -> tuple[int, str, float]:
    """`mkdocs build`: exit status, what it said without colours, seconds."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(site)],
        cwd=root,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    return done.returncode, said, time.perf_counter() - start
