"""The scripts of the chapters, from beginning to end; a warning is an error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from press.cache import ROOT

from tests.site.sitecheck import Page, contents

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
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")  # else those of all scripts are too many
print("\\n" + json.dumps(faults))
"""
BAD = {"raises": "x = 1 / 0", "warns": "import warnings; warnings.warn('no')"}


def faults(site: Path, folder: Path) -> dict[str, str]:
    """What goes wrong in the English scripts, by file; the Chinese ones hold the same code but for its strings."""
    scripts = [file for name in contents("en") if (file := Page(site, "en", name).file(".py")).is_file()]
    assert len(scripts) >= 11
    folder.mkdir()
    for name, code in BAD.items():
        (folder / f"{name}.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, scripts), *(f"{name}.py" for name in BAD)],
        cwd=folder,
        env=os.environ | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found
