"""How long a frame of each live figure takes: `pytest tests/benchmarks/bench_live.py -s`. Bound: 8 ms."""

from pathlib import Path

from book.cache import ROOT
from book.page import read
from browsing import Browser, served

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
