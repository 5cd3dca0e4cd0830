"""Every test draws without a screen and leaves no figure or style behind; one site and browser for all."""

import gc
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
import torch
from filelock import FileLock
from hypothesis import settings
from press.cache import ROOT
from xdist.scheduler import LoadFileScheduling

from posenc.plot import _style
from tests import missing
from tests.browser import browsing
from tests.site import sitebuild

# The first call into torch, or a busy machine, is slow; that is no fault of what is tested.
settings.register_profile("posenc", deadline=None, max_examples=50)
settings.load_profile("posenc")
plt.switch_backend("agg")
torch.set_num_threads(1)  # small tensors, and other work beside: two threads would wait for each other
os.environ.setdefault("OMP_NUM_THREADS", "1")  # NumPy's, too, in the processes that this one starts


@pytest.fixture(autouse=True)
def _no_figure_left() -> Iterator[None]:
    with matplotlib.rc_context():
        yield
    plt.close("all")


def pytest_configure(config: pytest.Config) -> None:
    """Without a Chinese font pictures show boxes; what else is tested of them holds."""
    if _style.chinese_font() is None:
        config.addinivalue_line("filterwarnings", r"ignore:Glyph \d+ .* missing from font")


def pytest_collection_finish() -> None:
    """What is there now stays: to look through it all for circles takes a second each time, and finds none."""
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # One process builds the site, and no other one waits for it; single tests come last and fill up the ends.
    items.sort(
        key=lambda item: (
            "/test_visits.py" not in item.nodeid,
            [part in item.nodeid for part in ("/browser/", *SINGLE)],
        )
    )
    for item in items:
        if item.get_closest_marker("slow") and not config.option.markexpr:
            item.add_marker(pytest.mark.skip("slow: `pytest -m slow`"))


# Files whose tests are handed out one by one, what harms one together; the first has the shortest and comes last.
SINGLE = "/browser/test_live.py", "/browser/test_journeys.py", "/browser/test_run_buttons.py"


class Files(LoadFileScheduling):
    """A file at a time for each process; the pages are one, for what both books do is run once.

    What a reader does is a case at a time, and visits go by what they share.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        if file.endswith(SINGLE):
            return nodeid.partition("[harmed")[0]
        if file.endswith("/test_visits.py"):
            return f"{file} {'the second half' in nodeid}"
        return "pages" if file.endswith(".md") else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Files:
    return Files(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many blocks ran, and what was left out."""
    reports = terminalreporter.stats
    blocks = [report for report in reports.get("passed", ()) if ".md::" in report.nodeid]
    if blocks:
        terminalreporter.write_line(f"{len(blocks)} blocks of pages ran.")
    skipped = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports.get("skipped", ()))
    for reason, count in skipped.items():
        terminalreporter.write_line(f"Left out: {count}, {reason}")


@pytest.fixture(scope="session")
def chinese_font() -> None:
    """For tests that look at Chinese characters in pictures."""
    if _style.chinese_font() is None:
        missing.skip_or_fail("fonts", "no Chinese font: `apt-get install fonts-noto-cjk`")


# --- One site and one browser for all -----------------------------------------------------------------------


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The real site, built once for the tests of all processes; POSENC_SITE names one that is already built."""
    if built := os.environ.get("POSENC_SITE"):
        return Path(built)
    here = tmp_path_factory.getbasetemp()
    folder = (here if worker_id == "master" else here.parent) / "built"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            status, said, _ = sitebuild.build(ROOT, folder.with_name("part"), OMP_NUM_THREADS="1")
            assert not status, f"the site could not be built:\n{said}"
            folder.with_name("part").rename(folder)
    return folder


@pytest.fixture(scope="session")
def copy(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the site to break something in."""
    return Path(shutil.copytree(site, tmp_path_factory.mktemp("copy") / "site"))


@pytest.fixture(scope="session")
def browser() -> Iterator[browsing.Browser]:
    with browsing.launched() as started:
        yield started
