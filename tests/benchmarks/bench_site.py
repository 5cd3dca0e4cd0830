"""How long builds of the book take, and blocks in the page: `pytest tests/benchmarks/bench_site.py -s`."""

import re
import statistics
from pathlib import Path

import missing
from book.cache import ROOT
from browsing import Browser, served
from sitebuild import build


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
