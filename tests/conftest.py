"""Every test draws without a screen and leaves no figure or style behind; one site and browser for all."""

import os
from collections.abc import Iterator
from pathlib import Path

import blocktests
import browsing
import matplotlib
import matplotlib.pyplot as plt
import missing
import pytest
import sitebuild
from hypothesis import settings

# The first call into torch, or a busy machine, is slow; that is no fault of what is tested.
settings.register_profile("posenc", deadline=None)
settings.load_profile("posenc")
blocktests.install()
plt.switch_backend("agg")


@pytest.fixture(autouse=True)
def _no_figure_left() -> Iterator[None]:
    with matplotlib.rc_context():
        yield
    plt.close("all")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real site, built once for all tests; POSENC_SITE names one that is already built."""
    if built := os.environ.get("POSENC_SITE"):
        return Path(built)
    folder = tmp_path_factory.mktemp("book") / "site"
    status, said, _ = sitebuild.build(sitebuild.ROOT, folder)
    assert status == 0, said
    return folder


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
