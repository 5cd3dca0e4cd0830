"""Every test draws without a screen and leaves no figure or style behind; one site and browser for all."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
import torch
from hypothesis import settings
from press.cache import ROOT
from press.offline import archive
from press.running import pytest_plugin

from posenc.plot import _style
from tests import ahead, missing
from tests.ahead import begun_ahead, finished
from tests.browser import browsing, journeys, page_blocks
from tests.site import sitebuild, sitecheck, sitescripts

# The first call into torch, or a busy machine, is slow; that is no fault of what is tested.
settings.register_profile("posenc", deadline=None, max_examples=50)
settings.load_profile("posenc")
plt.switch_backend("agg")
torch.set_num_threads(1)  # small tensors, and other work beside: two threads would wait for each other


@pytest.fixture(autouse=True)
def _no_figure_left() -> Iterator[None]:
    with matplotlib.rc_context():
        yield
    plt.close("all")


def pytest_configure(config: pytest.Config) -> None:
    """Without a Chinese font pictures show boxes; what else is tested of them holds."""
    pytest_plugin.register(config)
    config.pluginmanager.register(ahead)
    if _style.chinese_font() is None:
        config.addinivalue_line("filterwarnings", r"ignore:Glyph \d+ .* missing from font")


@pytest.fixture(scope="session")
def chinese_font() -> None:
    """For tests that look at Chinese characters in pictures."""
    if _style.chinese_font() is None:
        missing.skip_or_fail("fonts", "no Chinese font: `apt-get install fonts-noto-cjk`")


# --- One site and one browser for all -----------------------------------------------------------------------


@begun_ahead
def site(folder: Path) -> Path:
    """The real site, built once for all tests; POSENC_SITE names one that is already built."""
    if built := os.environ.get("POSENC_SITE"):
        return Path(built)
    status, said, _ = sitebuild.build(ROOT, folder / "site", OMP_NUM_THREADS="1")
    assert not status, f"the site could not be built:\n{said}"
    return folder / "site"


@begun_ahead
def documents(folder: Path) -> subprocess.CompletedProcess[str]:
    """A run of all blocks of the pages and of all docstrings: the second core has nothing else to do."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "posenc", "docs", "README.md"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@begun_ahead
def mypy(folder: Path) -> subprocess.CompletedProcess[str]:
    """What mypy says of the whole project."""
    command = [sys.executable, "-m", "mypy"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@begun_ahead
def offline_books(folder: Path) -> Path:
    """The folder with the zip and the PDFs."""
    with browsing.launched() as launched:
        archive.make(launched, finished("site"), folder / "offline")
    return folder / "offline"


@begun_ahead
def visits(folder: Path) -> dict[str, browsing.Visit]:
    """One visit to each page of the site in a browser, by the name of the page."""
    names = [str(page) for page in sitecheck.all_pages(finished("site"))]
    with browsing.served(finished("site")) as address:  # with a question the front page sends nobody on
        urls = [f"{address}{name}{'?stay' * (name == 'index.html')}" for name in names]
        return dict(zip(names, browsing.visits(urls), strict=True))


@begun_ahead
def deeds(folder: Path) -> journeys.Deeds:
    """What a reader does in the site, and in a copy of it in which something is broken."""
    copy = Path(shutil.copytree(finished("site"), folder / "broken"))
    with browsing.launched() as launched:
        return journeys.deeds(launched, finished("site"), copy)


@begun_ahead
def blocks_in_the_page(folder: Path) -> tuple[list[page_blocks.Block], browsing.Visit]:
    """All blocks of the site, and some that are bad, run in a browser; and what it fetched for them."""
    blocks = [*page_blocks.blocks(finished("site")), *page_blocks.PLANTED.values()]
    with browsing.launched() as launched:
        return blocks, page_blocks.run(launched, finished("site"), blocks)


@begun_ahead
def scripts(folder: Path) -> dict[str, str]:
    """What the scripts of the chapters raise, and two that are bad."""
    return sitescripts.faults(finished("site"), folder / "scripts")


@pytest.fixture(scope="session")
def browser() -> Iterator[browsing.Browser]:
    with browsing.launched() as started:
        yield started


@pytest.fixture(scope="session")
def copy(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the site to break something in."""
    return Path(shutil.copytree(site, tmp_path_factory.mktemp("copy") / "site"))
