"""The script of every chapter runs from beginning to end, without a warning."""

import json
import os
from pathlib import Path

import pytest
from press.cache import ROOT

from tests.programs import python
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
BAD = {"raises.py": "x = 1 / 0", "warns.py": "import warnings; warnings.warn('no')"}


SOME, ALL = slice(3, None, 10), slice(None)  # some that train nothing


@pytest.mark.parametrize("taken", [SOME, pytest.param(ALL, marks=pytest.mark.slow)], ids=["some", "all"])
def test_scripts_of_chapters_run(site: Path, tmp_path: Path, taken: slice) -> None:
    """The English ones: the Chinese ones hold the same code but for its strings. Two that are bad are found."""
    scripts = [file for name in contents("en") if (file := Page(site, "en", name).file(".py")).is_file()]
    assert len(scripts) >= 11
    for name, code in BAD.items():
        (tmp_path / name).write_text(code)
    environment = os.environ | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = python("-c", RUN, *map(str, scripts[taken]), *BAD, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    faults = json.loads(done.stdout.splitlines()[-1])
    assert faults == {"raises.py": "ZeroDivisionError: division by zero", "warns.py": "UserWarning: no"}
