"""What a reader does is a test; `harmed` says what must break it, by what a reader would meet.

    @harmed("leads to", script="...")
    def test_the_switch_leads_to_the_other_book(page: Page, address: str) -> None: ...

is run in the site as it is, and where that script is at work, too: there it must fail, and say "leads to".
"""

import re
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests import missing
from tests.browser import browsing
from tests.browser.browsing import BELOW, DESKTOP, PHONE, Browser, Harm, served


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    harms = [mark.args[0] for mark in metafunc.definition.iter_markers("harmed")]
    if harms:
        slow = [pytest.param(harm, marks=pytest.mark.slow, id=f"harmed: {harm.says}") for harm in harms]
        metafunc.parametrize("harm", [pytest.param(None, id="as it is"), *slow])


@pytest.fixture
def harm() -> Harm | None:
    """What goes wrong, where something does."""
    return None


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    harm = pyfuncitem.funcargs.get("harm")
    if not isinstance(harm, Harm):
        return (yield)
    with pytest.raises((Exception, pytest.fail.Exception), match=re.escape(harm.says)):
        yield
    return True


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Where the site is served."""
    with served(site, BELOW) as url:
        yield url


@pytest.fixture(scope="session")
def disk(site: Path) -> str:
    """Where it lies."""
    return f"{site.as_uri()}/"


@pytest.fixture(scope="session")
def runtime(site: Path) -> None:
    """For tests of blocks that run in the page."""
    if not (site / "py").is_dir():
        missing.skip_or_fail("runtime", "no Python for the pages: `python -m press runtime`")


@pytest.fixture
def python(runtime: None) -> None:
    """For tests in which it is started: it outlives its page."""


@pytest.fixture(scope="session")
def readers() -> defaultdict[str, list[Page]]:
    """Pages that have been read in, by what they are: a page of a new browser costs a second more."""
    return defaultdict(list)


@pytest.fixture
def reader(
    request: pytest.FixtureRequest, browser: Browser, harm: Harm | None, readers: defaultdict[str, list[Page]]
) -> Iterator[Callable[..., Page]]:
    """Makes pages of readers, each with a browser as if it were new."""
    used: list[tuple[str, Page]] = []
    failed = request.session.testsfailed

    def new(size: tuple[int, int], **options: Any) -> Page:
        viewport: Any = {"width": size[0], "height": size[1]}
        options = {"viewport": viewport, "color_scheme": "light", "reduced_motion": "reduce", **options}
        kind = str(options)
        if harm or not readers[kind]:
            context = browser.new_context(permissions=["clipboard-read", "clipboard-write"], **options)
            context.set_default_timeout(15_000)  # ms that a busy machine may need
            if harm:
                context.set_default_timeout(4000)  # something is to be missed
                harm.works_in(context)
            context.set_default_navigation_timeout(60_000)
            readers[kind].append(context.new_page())
        page = readers[kind].pop()
        looks = {name: options[name] for name in ("color_scheme", "reduced_motion")}
        page.emulate_media(media="null", **looks)
        page.set_viewport_size(viewport)
        used.append((kind, page))
        return page

    yield new
    # what has failed may have left anything
    once = harm or "python" in request.fixturenames or request.session.testsfailed > failed
    for kind, page in used:
        if once:
            page.context.close()
        else:
            browsing.left(page)
            readers[kind].append(page)


@pytest.fixture
def page(reader: Callable[..., Page]) -> Page:
    """At a desktop."""
    return reader(DESKTOP)


@pytest.fixture
def phone(reader: Callable[..., Page]) -> Page:
    """On a phone in the dark."""
    return reader(PHONE, color_scheme="dark", has_touch=True, is_mobile=True)
