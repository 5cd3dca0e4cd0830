"""The script of every chapter runs from beginning to end, without a warning."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from book.cache import ROOT
from sitecheck import Page, contents

# One interpreter for all: most of a short script's time is the import of torch.
RUN = """
import json, runpy, sys, warnings
faults = {}
warnings.simplefilter("error")
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")  # plt.show() without a screen
for file in sys.argv[1:]:
    try:
        runpy.run_path(file, run_name="__main__")
    except Exception as error:
        faults[file] = f"{type(error).__name__}: {error}"
print("\\n" + json.dumps(faults))
"""


def test_the_script_of_every_chapter_runs(site: Path, tmp_path: Path) -> None:
    """The English ones; the Chinese ones hold the same code but for its strings."""
    scripts = [file for name in contents("en") if (file := Page(site, "en", name).file(".py")).is_file()]
    assert len(scripts) >= 11
    bad = {"raises": "x = 1 / 0", "warns": "import warnings; warnings.warn('no')"}
    for name, code in bad.items():
        (tmp_path / f"{name}.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, scripts), *(f"{name}.py" for name in bad)],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    faults = json.loads(done.stdout.splitlines()[-1])
    assert faults == {"raises.py": "ZeroDivisionError: division by zero", "warns.py": "UserWarning: no"}
