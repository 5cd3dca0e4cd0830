"""What a reader takes home runs there: pages under pytest-codeblocks as it comes, and the script of every chapter.

Whoever copies a page can test it without our plugin; a script runs from beginning to end, without a warning.
"""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from press import pages
from press.cache import ROOT

from tests.programs import python
from tests.site.sitecheck import BOOKS, Page, contents

# One interpreter for all: they train the same, and most of a short script's time is the import of torch.
RUN = """
import json, runpy, sys, warnings
import pytest
from press.running import trainings
trainings.share()
pytest.main(["--codeblocks", "-q", "-p", "no:cacheprovider", "."])
faults = {}
warnings.simplefilter("error")
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")  # plt.show() without a screen
for file in sys.argv[1:]:
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")  # else those of all pages and scripts are too many
    try:
        runpy.run_path(file, run_name="__main__")
    except Exception as error:
        faults[file] = f"{type(error).__name__}: {error}"
print("\\n" + json.dumps(faults))
"""
BAD = {"raises.py": "x = 1 / 0", "warns.py": "import warnings; warnings.warn('no')"}

# Each page in one language: the twin has the same code but for its strings.
PAGES = [f"{BOOKS[n % 2]}/{path.name}" for n, path in enumerate(sorted((ROOT / "docs/en").glob("*.md")))]
CHEAP = ["en/primer.md", "zh/shift.md", "en/layouts.md"]  # they train nothing, and need no torch.distributed
SOME, ALL = slice(3, None, 10), slice(None)  # some that train nothing


@pytest.mark.parametrize(
    ("names", "taken"),
    [(CHEAP, SOME), pytest.param(PAGES, ALL, marks=pytest.mark.slow)],
    ids=["some", "all"],
)
def test_pages_and_scripts_run_without_the_book(
    site: Path, tmp_path: Path, names: list[str], taken: slice
) -> None:
    """The English scripts: the Chinese ones hold the same code but for its strings. Two that are bad are found."""
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "docs" / name, tmp_path / name)
    scripts = [file for name in contents("en") if (file := Page(site, "en", name).file(".py")).is_file()]
    assert len(scripts) >= 11
    for name, code in BAD.items():
        (tmp_path / name).write_text(code)
    path = f"{ROOT}{os.pathsep}{ROOT / 'docs'}"
    environment = os.environ | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    done = python("-c", RUN, *map(str, scripts[taken]), *BAD, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    blocks = sum(len(pages.read(ROOT / "docs" / name).blocks) for name in names)
    assert re.findall(r"\n(.*) passed", done.stdout) == [str(blocks)], done.stdout[-5000:]
    faults = json.loads(done.stdout.splitlines()[-1])
    assert faults == {"raises.py": "ZeroDivisionError: division by zero", "warns.py": "UserWarning: no"}
