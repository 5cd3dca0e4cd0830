"""Every test draws without a screen and leaves no figure or style behind; one site and browser for all."""

from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import ahead
import browsing
import matplotlib
import matplotlib.pyplot as plt
import missing
import pytest
import torch
from book import blocktests
from hypothesis import settings

from posenc.plot import _style

# The first call into torch, or a busy machine, is slow; that is no fault of what is tested.
settings.register_profile("posenc", deadline=None)
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
    blocktests.register(config)
    if _style.chinese_font() is None:
        config.addinivalue_line("filterwarnings", r"ignore:Glyph \d+ .* missing from font")


@pytest.fixture(scope="session")
def chinese_font() -> None:
    """For tests that look at Chinese characters in pictures."""
    if _style.chinese_font() is None:
        missing.skip_or_fail("fonts", "no Chinese font: `apt-get install fonts-noto-cjk`")


_ahead = ahead.Ahead()


def _waits_for(item: pytest.Item) -> list[str]:
    return [name for name in ahead.NAMES if name in getattr(item, "fixturenames", ())]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that wait for something come last."""
    items.sort(key=lambda item: (bool(_waits_for(item)), "visits" in _waits_for(item)))


def pytest_collection_finish(session: pytest.Session) -> None:
    if not session.config.option.collectonly:
        for name in sorted({name for item in session.items for name in _waits_for(item)}):
            _ahead.begin(name)


def pytest_unconfigure() -> None:
    _ahead.end()


@pytest.fixture(scope="session")
def site() -> Path:
    """The real site, built once for all tests; POSENC_SITE names one that is already built."""
    path: Path = _ahead.result("site")
    return path


@pytest.fixture(scope="session")
def visits(chromium: str) -> dict[str, browsing.Visit]:
    """One visit to each page of the site in a browser, by the name of the page."""
    made: dict[str, browsing.Visit] = _ahead.result("visits")
    return made


@pytest.fixture(scope="session")
def offline_books(chromium: str) -> Path:
    """The folder with the zip and the PDFs."""
    folder: Path = _ahead.result("offline_books")
    return folder


@pytest.fixture(scope="session")
def mypy() -> CompletedProcess[str]:
    """What mypy says of the whole project."""
    done: CompletedProcess[str] = _ahead.result("mypy")
    return done


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a browser; without one the tests are skipped."""
    path = browsing.chromium()
    if path is None:
        missing.skip_or_fail("browser", browsing.NONE)
    return str(path)


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[browsing.Browser]:
    with browsing.launched(chromium) as started:
        yield started


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Where the real site is served."""
    with browsing.served(site) as url:
        yield url
