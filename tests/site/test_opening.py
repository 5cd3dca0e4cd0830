"""How a page opens: it is shown before its scripts run, and at the heading that its address names."""

from pathlib import Path

import browsing
import pytest
import sitecheck
from browsing import Browser


def test_a_page_is_shown_before_its_scripts_run(site: Path) -> None:
    """Without this a change in Material's templates would undo it without a word."""
    for name in ("en/order.html", "zh/labs/waveforms.html", "zh/404.html"):
        scripts = sitecheck.soup(site / name).select("script[src]")
        assert len(scripts) == 2, name
        assert [tag["src"] for tag in scripts if not tag.has_attr("defer")] == [], name


@pytest.mark.parametrize("width", [390, 1280])
def test_an_address_with_an_anchor_leads_to_its_heading(browser: Browser, site: Path, width: int) -> None:
    """Below the header, also when the page has just been opened."""
    with browsing.served(site) as url:
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.goto(f"{url}zh/shift.html")
        ids = page.evaluate("[...document.querySelectorAll('article h2')].map((heading) => heading.id)")
        assert len(ids) > 4
        for name in (ids[-2], ids[2]):
            page.goto(f"{url}zh/index.html")
            page.goto(f"{url}zh/shift.html#{name}")
            top = f"document.getElementById('{name}').getBoundingClientRect().top"
            page.wait_for_function(f"{top} > 0 && {top} < 100", timeout=10_000)
        page.close()
