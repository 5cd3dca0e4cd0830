"""How long builds take, blocks in the page, and frames of live figures: `pytest tests/benchmarks/bench_site.py -s`."""

import re
import statistics
from pathlib import Path

from press.cache import ROOT
from press.pages import read

from tests import missing
from tests.browser.browsing import Browser, served
from tests.site.sitebuild import build


def test_cost_of_a_build(tmp_path: Path) -> None:
    """A second build runs nothing and costs little; that it gives the same bytes is tested in tests/site."""
    empty, site = {"POSENC_CACHE": str(tmp_path / "cache")}, tmp_path / "site"
    first, second, without = (build(ROOT, site, **how) for how in (empty, empty, {"POSENC_EXECUTE": "0"}))
    assert [status for status, _, _ in (first, second, without)] == [0, 0, 0], first[1]
    assert re.search(r"\bRan ", first[1])
    assert not re.search(r"\bRan ", second[1])
    print(f"\nbuild: first {first[2]:.1f} s, second {second[2]:.1f} s, without execution {without[2]:.1f} s")
    print(f"second / without execution = {second[2] / without[2]:.2f}")


# From the click to what it shows, block by block.
CLICKED = """async () => {
  const times = [];
  for (const box of [...document.querySelectorAll("[data-run=numpy]")].slice(0, 6)) {
    const start = performance.now();
    const ran = () => box.querySelector(".run-bar")?.textContent.startsWith("Ran in");
    await new Promise((done) => {
      new MutationObserver(() => ran() && done()).observe(box, { childList: true, subtree: true, characterData: true });
      box.querySelector(".run-run").click();
    });
    times.push(performance.now() - start);
  }
  return times;
}"""


def test_times_in_the_page(site: Path, browser: Browser) -> None:
    """The first block that a reader runs is there within 12 seconds, the later ones within 100 ms."""
    if not (site / "py").is_dir():
        missing.skip_or_fail("runtime", "no Python for the pages: `python -m press runtime`")
    with served(site) as root:
        page = browser.new_page()
        page.goto(f"{root}en/sinusoidal.html")
        page.wait_for_selector(".run-run")
        first, *later = page.evaluate(CLICKED)
        page.close()
    print(
        f"\nin the page: first block {first / 1000:.1f} s, later {', '.join(f'{ms:.0f}' for ms in later)} ms"
    )
    assert first < 12_000
    assert statistics.median(later) < 100


# The shortest of some rounds for each of the states: what other work on the machine adds is not counted.
FRAMES = """(figure) => {
  const numbers = figure.controls.filter((control) => control.min !== undefined);
  const times = Array(24).fill(Infinity);
  for (let n = 0; n < 6 * times.length; n++) {
    const at = n % times.length;
    const control = numbers[at % numbers.length];
    const part = (at * 37 % 100) / 100;
    let value = control.log ? control.min * (control.max / control.min) ** part
      : control.min + (control.max - control.min) * part;
    const step = control.step ?? 1;
    if (Number.isInteger(step)) value = control.min + step * Math.round((value - control.min) / step);
    figure.state = { ...figure.state, [control.name]: value };
    const start = performance.now();
    figure.show();
    figure.drawn();
    figure.getBoundingClientRect(); // the layout, too
    times[at] = Math.min(times[at], performance.now() - start);
  }
  return Math.max(...times);
}"""


def test_a_frame_is_short(site: Path, browser: Browser) -> None:
    """No frame of a live figure takes more than 8 ms."""
    longest = {}
    with served(site) as root:
        page = browser.new_page()
        for path in sorted((ROOT / "docs" / "en").glob("*.md")):
            for name in sorted(figure.live for figure in read(path).figures if figure.live):
                page.goto(f"{root}en/{path.stem}.html")
                page.locator(f"live-{name}").scroll_into_view_if_needed()
                page.wait_for_selector(f"live-{name}.on")
                longest[name] = page.locator(f"live-{name}").evaluate(FRAMES)
                print(f"{name:20} {longest[name]:5.1f} ms")
        page.close()
    assert max(longest.values()) < 8
