"""What a reader does with the blocks that run in the page.

Python is played by WORKER, which answers at once and belongs to one page, but in `test_python_runs` and where pages
have one Python together: there it is the one that the site has.
"""

import re
import time

import pytest
from playwright.sync_api import Locator, Page, Route
from playwright.sync_api import TimeoutError as Late

from tests.browser import browsing
from tests.browser.browsing import Harm, Visit, opened

pytestmark = pytest.mark.usefixtures("runtime")
harmed = pytest.mark.harmed
CHAPTER, LAB = "sinusoidal.html", "en/labs/waveforms.html"

WORKER = """
const pause = (ms) => new Promise((over) => setTimeout(over, ms));
const there = new Set();
let last = Promise.resolve();
onmessage = ({ data }) => (last = last.then(() => run(data)));

async function run({ id, blocks, needs }) {
  for (const what of needs.filter((each) => !there.has(each))) {
    for (const loaded of [1e6, 5e6, 9e6]) {
      postMessage({ type: "progress", what, loaded, total: 9e6 });
      await pause(60);
    }
    for (const step of what === "numpy" ? ["start", "numpy", "posenc"] : ["import"]) {
      postMessage({ type: "step", what, step });
      await pause(60);
    }
    there.add(what);
  }
  postMessage({ type: "ready" });
  const say = (type, rest) => postMessage({ type, id, ...rest });
  say("begin");
  const { code } = blocks.at(-1);
  if (code.includes("while True")) await new Promise(() => {});
  if (code.includes("import gone")) return say("error", { text: "404 gone", line: 0, name: "", cut: 0, fatal: true });
  if (code.includes("'x' *")) {
    say("output", { text: "0123456789\\n".repeat(9000) });
    return say("done", { ms: 5, cut: 2345678 });
  }
  for (const each of blocks) {
    const line = each.code.split("\\n").findIndex((text) => text.includes("1 / 0")) + 1;
    if (line) return say("error", { text: "ZeroDivisionError: division by zero", line, name: each.name, cut: 0 });
  }
  if (code.includes("plot.")) {
    const line = '<path id="posenc-id-0" d="M0 0l9 9"/><use xlink:href="#posenc-id-0"/>';
    say("figure", { svg: `<svg viewBox="0 0 90 90" role="img" aria-label="A line.">${line}</svg>` });
  }
  if (code.includes("print")) say("output", { text: blocks.map((each) => `${each.name}: ${each.code}\\n`).join("") });
  say("done", { ms: 5, cut: 0 });
}
"""


def play(page: Page, worker: str = WORKER, status: int = 200) -> None:
    """Python is played by this worker from now on, in a browser that has none for all pages."""
    browsing.first(page, OWN)
    page.route(
        "**/runtime/worker.js",
        lambda route: route.fulfill(status=status, body=worker, content_type="text/javascript"),
    )


def played(page: Page, url: str, worker: str = WORKER) -> Visit:
    """Open a page whose Python is played."""
    play(page, worker)
    return opened(page, url)


def block(page: Page, needs: str = "numpy", number: int = 0) -> Locator:
    """One of the blocks that run, when it has its buttons."""
    found = page.locator(f".highlight[data-run={needs}]").nth(number)
    found.locator(".run-run").wait_for(timeout=15_000)
    return found


def said(box: Locator, words: str, what: str = "", wait: int | None = None) -> None:
    """The line under a block says these words (a regular expression) in time."""
    bar = box.locator(".run-bar")
    try:
        box.locator(".run-bar", has_text=re.compile(words)).wait_for(timeout=wait)
    except Late:
        pytest.fail(f"{what or words}: {bar.inner_text() if bar.count() else 'nothing is said'}")


def ran(box: Locator) -> float:
    """Run a block that may have to start Python; seconds from the click to the result."""
    began = time.monotonic()
    box.locator(".run-run").click(timeout=15_000)
    said(box, "Ran in", wait=60_000)
    return time.monotonic() - began


def below(box: Locator) -> Locator:
    """What a run has put below a block."""
    return box.locator("xpath=following-sibling::*[contains(@class, 'run-output')][1]")


def shown(box: Locator) -> str:
    """What stands there."""
    return below(box).inner_text() if below(box).count() else "nothing"


def changed(box: Locator, code: str) -> Locator:
    """The text area of a block that is being changed, with other code."""
    if box.locator(".run-edit").is_visible():
        box.locator(".run-edit").click()
    area = box.locator("textarea")
    area.fill(code)
    return area


# --- Before a click -----------------------------------------------------------------------------------------

COVERED = """() => {
  const faults = [];
  for (const code of document.querySelectorAll(".highlight:is([data-run], [data-needs]) code")) {
    const text = new Range();
    text.selectNodeContents(code);
    const nav = code.parentElement.querySelector("nav").getBoundingClientRect();
    if (text.getBoundingClientRect().bottom > nav.top + 1) faults.push(code.textContent.trim().split("\\n").at(-1));
  }
  return faults.join("; ");
}"""

FETCHED = (
    """addEventListener("load", () => setTimeout(() => import(new URL("runtime/block.js", location)), 300))"""
)


@harmed(Harm("the layout shifts by", style=".highlight:has(.run-run) { padding-top: 99px }"))
@harmed(Harm("the buttons cover", style=".highlight code { padding-bottom: 4px !important }"))
@harmed(Harm("px high", style=".md-code__button { height: 20px !important }"))
@harmed(Harm("is fetched", script=FETCHED))
def test_who_clicks_nothing_sees_buttons_and_fetches_nothing_else(phone: Page, address: str) -> None:
    browsing.first(phone, browsing.SHIFTS)
    visit = browsing.Visit(f"{address}en/{CHAPTER}")
    responses = browsing.watch(phone, visit)
    held: list[Route] = []  # comes when the reader has a block before the eyes
    phone.route("**/runtime/run.js", lambda route: held.append(route))
    phone.goto(visit.url, wait_until="domcontentloaded")
    phone.locator(".highlight[data-run]").first.scroll_into_view_if_needed()
    phone.wait_for_timeout(300)
    held[0].continue_()
    box = block(phone)
    phone.wait_for_load_state("networkidle")
    phone.evaluate(browsing.MEASURE)
    shift = phone.evaluate("window.shift")
    assert shift <= 0.001, f"the layout shifts by {shift:.3f}"
    late = re.compile(r"/(block|python|worker)\.js$|/block\.css$|/py/")
    fetched = [answer.url for answer in responses if late.search(answer.url)]
    assert not fetched, f"{fetched} is fetched"
    covered = phone.evaluate(COVERED)
    assert not covered, f"the buttons cover {covered}"
    for button in box.locator("nav button:visible").all():
        place = button.bounding_box()
        assert place
        assert min(place["width"], place["height"]) >= 44, (
            f"{place['width']} px wide, {place['height']} px high"
        )
    assert re.search(r"\d\.\d MB", box.locator(".run-run").inner_text()), "no size on the button"
    assert phone.locator(".highlight[data-needs=torch] .run-needs:has-text('PyTorch')").count()
    assert visit.complaints == []


# --- Running ------------------------------------------------------------------------------------------------

RUN_BLOCK = """async () => {
  const { runBlock } = await import("./runtime/python.js");
  const one = await runBlock("print(x + 1)", { before: ["x = 1"] });
  const two = await runBlock("print(x)");
  const three = await runBlock("while True: pass", { limit: 500 });
  return [one.output, two.error.text, two.error.line, three.error.stopped];
}"""


# A browser whose workers end with their page: what they fetch can be watched.
OWN = "delete window.SharedWorker"


@pytest.mark.usefixtures("python")
@harmed(Harm("could not be loaded", gone="**/py/numpy-*.whl", script=OWN))
def test_python_runs(page: Page, address: str) -> None:
    """By mouse, with Python as the site has it: the first block, the next one, a drawing, and runBlock by itself."""
    visit = opened(page, f"{address}en/{CHAPTER}")
    for needs, number in (("numpy", 0), ("numpy", 1), ("matplotlib", 0)):
        box = block(page, needs, number)
        box.locator(".run-run").click()
        said(box, r"Ran in|could not", wait=60_000)
        said(box, r"with the output of the book" if needs == "numpy" else "Ran in")
    assert below(box).locator("figure svg[role=img][aria-label]").count(), "no figure"
    assert page.evaluate(RUN_BLOCK) == ["2\n", "NameError: name 'x' is not defined", 1, True]
    assert visit.complaints == []


NO_TABLE = """const on = HTMLElement.prototype.replaceWith;
HTMLElement.prototype.replaceWith = function (next) { next.matches?.("figure.table") || on.call(this, next) }"""


@pytest.mark.usefixtures("python")
@pytest.mark.slow
@harmed(Harm("no table", script=NO_TABLE))
def test_a_table_that_is_printed_is_shown_as_one(page: Page, address: str) -> None:
    """That of all schemes, which takes no torch; and fewer rows of it, once the code is changed."""
    page.add_init_script(OWN)
    visit = opened(page, f"{address}zh/tables.html")
    box = block(page)
    box.locator(".run-run").click()
    said(box, "输出与书中一致|未能", wait=60_000)
    rows = below(box).locator("figure.table tbody tr")
    assert rows.count() > 50, "no table"
    assert ".html#" in str(rows.first.locator("a").get_attribute("href")), "links lead to sources"
    box.locator(".run-edit").click()
    area = box.locator("textarea")
    area.fill(area.input_value().replace("compare_schemes()", "compare_schemes()[:3]"))
    box.locator(".run-run").click()
    said(box, "用时")
    rows.nth(2).wait_for()
    assert rows.count() == 3
    assert visit.complaints == []


@pytest.mark.usefixtures("python")
@pytest.mark.slow
@harmed(Harm("could not be loaded", gone="**/py/scipy-*.whl"))
def test_scipy_is_loaded_for_the_block_that_needs_it(page: Page, address: str) -> None:
    """Not with Python; the button says how much it is."""
    page.add_init_script(OWN)
    visit = browsing.Visit(f"{address}en/graphs.html")
    responses = browsing.watch(page, visit)
    page.goto(visit.url)
    ran(block(page))
    assert not [answer.url for answer in responses if "scipy" in answer.url]
    box = block(page, "scipy")
    assert box.locator(".run-run").inner_text() == "Run · 14.0 MB"
    box.locator(".run-run").click()
    said(box, "Ran in|could not", wait=60_000)
    said(box, "with the output of the book")
    assert box.locator(".run-run").inner_text() == "Run"
    assert visit.complaints == []


@harmed(Harm("output stays beside", style=".output[hidden] { display: block !important }"))
@harmed(Harm("figure stays beside", style="figure[hidden], .live[hidden] { display: block !important }"))
def test_what_a_block_gives_takes_the_place_of_what_the_book_has(page: Page, address: str) -> None:
    """And once more. A figure that moves stays, and what its block gives comes under it."""
    visit = played(page, f"{address}en/{CHAPTER}")
    for needs, kind, tag in (("numpy", "output", "div"), ("matplotlib", "figure", "figure")):
        for number in (1, 0, 1):
            box = block(page, needs, number)
            box.locator(".run-run").click()
            said(box, "Ran in")
        theirs = below(box).locator(f"xpath=following-sibling::{tag}[1]")
        assert not theirs.is_visible(), f"the book's {kind} stays beside the new one"
    assert below(box).locator("figcaption").is_visible(), "no caption below a figure of the book's own code"
    moving = page.locator(".live.on")
    assert moving.is_visible(), "the figure that moves has gone"
    assert moving.locator("xpath=following-sibling::*[1]").get_attribute("class") == "output run-output"
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
    assert len(ids) == len(set(ids)), "two elements have one id"
    assert visit.complaints == []


NO_CONTROL = "addEventListener('keydown', (event) => event.ctrlKey && event.stopImmediatePropagation(), true)"


@harmed(Harm("has no mark", style=".run-run { outline: none !important }"))
@harmed(Harm("Control+Enter", script=NO_CONTROL))
def test_a_block_is_changed_and_run_by_keyboard(phone: Page, address: str) -> None:
    """In Chinese."""
    visit = played(phone, f"{address}zh/{CHAPTER}")
    phone.evaluate(browsing.MEASURE)
    box = block(phone)
    run, area, keys = box.locator(".run-run"), box.locator("textarea"), phone.keyboard
    focused = "node => node === document.activeElement"
    phone.locator("h1").evaluate("node => { node.tabIndex = -1; node.focus(); }")
    for _ in range(60):
        keys.press("Tab")
        if run.evaluate(focused):
            break
    assert run.evaluate("node => getComputedStyle(node).outlineStyle") != "none", "the focus has no mark"
    keys.press("Enter")
    said(box, "用时", "Enter on the button")
    keys.press("Tab")
    keys.press("Enter")
    area.wait_for()
    assert area.evaluate(focused), "the focus does not go to the code"
    keys.press("ControlOrMeta+a")
    keys.type("for k in range(2):\nprint(k)")
    assert area.input_value() == "for k in range(2):\n    print(k)"
    for both in ("Control+Enter", "Shift+Enter"):
        keys.type("#")
        keys.press(both)
        said(box, "用时", both)
        assert area.input_value() in shown(box), both
    keys.press("Tab")
    assert not area.evaluate(focused), "Tab does not leave the code"
    assert visit.complaints == []


AXE_NEAR = """async () => {
  const include = [...document.querySelectorAll(".highlight:has(> .run-bar), .run-output")];
  const { violations } = await axe.run({ include }, { resultTypes: ["violations"] });
  return violations.map(REPORT);
}"""


@pytest.mark.slow
@harmed(Harm("color-contrast", style=".run-error code { color: #555 !important }"))
def test_axe_finds_nothing_in_any_state(phone: Page, address: str) -> None:
    visit = played(phone, f"{address}zh/{CHAPTER}", WORKER.replace("60)", "200)"))
    phone.evaluate(browsing.MEASURE)
    box, drawing = block(phone), block(phone, "matplotlib")
    for reach, where, words in (
        (lambda: box.locator(".run-run").click(), box, "MB"),
        (lambda: None, box, "用时"),
        (lambda: changed(box, "while True: pass").press("Control+Enter"), box, "正在运行"),
        (lambda: box.locator(".run-stop").click(), box, "已停止"),
        (lambda: changed(box, "1 / 0").press("Control+Enter"), box, "第 1 行出错"),
        (lambda: changed(box, "print('x' * 10**7)").press("Control+Enter"), box, "用时"),
        (lambda: drawing.locator(".run-run").click(), drawing, "用时"),
    ):
        reach()
        said(where, words)
        if words == "MB":
            assert browsing.axe(phone) == [], words
        else:  # nothing else has changed
            assert phone.evaluate(AXE_NEAR.replace("REPORT", browsing.REPORT)) == [], words
    assert visit.complaints == []


@harmed(Harm("an interpreter is left", script="Worker.prototype.terminate = () => {}"))
def test_an_endless_loop_is_stopped_and_the_next_block_runs(page: Page, address: str) -> None:
    """Another block waits for it; the button ends it with its interpreter."""
    visit = played(page, f"{address}en/{CHAPTER}")
    box, other = block(page), block(page, number=1)
    changed(box, "while True: pass")
    box.locator(".run-run").click()
    said(box, "Running")
    other.locator(".run-run").click()
    said(other, "Waiting")
    workers = list(page.workers)
    box.locator(".run-stop").click()
    said(box, "Stopped")
    said(other, "Ran in")
    assert not [worker for worker in workers if worker in page.workers], "an interpreter is left"
    assert visit.complaints == []


MARKED = "[...CSS.highlights.get('run-fault')].map(String)"


@harmed(Harm("[] == ['print(1 / 0)']", script="Highlight.prototype.add = () => {}"))
@harmed(Harm("[''] == []", script="Highlight.prototype.delete = () => {}"))
def test_an_error_is_said_with_its_line_which_is_marked(page: Page, address: str) -> None:
    """Of the block itself, and of one that it continues."""
    visit = played(page, f"{address}en/{CHAPTER}")
    box = block(page)
    area = changed(box, "x = 1\n\nprint(1 / 0)")
    area.press("Control+Enter")
    said(box, r"An error in line 3\.")
    assert shown(box) == "Line 3: print(1 / 0)\nZeroDivisionError: division by zero"
    assert page.evaluate(MARKED) == ["print(1 / 0)"]
    area.fill("print(1)")
    assert page.evaluate(MARKED) == []
    assert visit.complaints == []

    visit = played(page, f"{address}{LAB}")
    first, last = block(page, "matplotlib"), block(page, "matplotlib", 2)
    changed(first, "1 / 0")
    last.locator(".run-run").click()
    said(last, "line 1 of an earlier block")
    assert "Line 1: 1 / 0" in shown(last)
    assert page.evaluate(MARKED) == ["1 / 0"]
    assert visit.complaints == []


@harmed(Harm("px high", style=".run-output * { max-height: none !important }"))
def test_output_without_end_is_cut_off_and_the_page_does_not_grow_by_it(page: Page, address: str) -> None:
    visit = played(page, f"{address}en/{CHAPTER}")
    page.evaluate(browsing.MEASURE)
    box = block(page)
    changed(box, "print('x' * 10**7)").press("Control+Enter")
    said(box, "Ran in")
    assert below(box).get_by_text("The first 99 kB are shown; 2.3 MB more were printed.").count()
    height = below(box).evaluate("node => node.offsetHeight")
    assert height <= 800, f"the output is {height} px high"
    assert visit.complaints == []


@harmed(Harm("Changed, not run yet", script="Storage.prototype.setItem = () => {}"))
@harmed(Harm("what was reset comes back", script="Storage.prototype.removeItem = () => {}"))
def test_changed_code_is_copied_continued_kept_and_reset(page: Page, address: str) -> None:
    """Kept over a reload, but not for other code of the book."""
    visit = played(page, f"{address}{LAB}")
    box, last = block(page, "matplotlib"), block(page, "matplotlib", 2)
    original = box.locator("code").inner_html()
    changed(box, "print('mine')")
    box.locator("[data-clipboard-target]").click()
    assert page.evaluate("navigator.clipboard.readText()") == "print('mine')\n"
    changed(last, "print(2)").press("Control+Enter")
    said(last, "Ran in")
    assert "1: print('mine')" in shown(last), "a block does not continue the changed one"
    page.reload()
    box = block(page, "matplotlib")
    said(box, "Changed, not run yet")
    assert box.locator("textarea").input_value() == "print('mine')"
    box.locator("textarea").press("Control+Enter")
    said(box, "Ran in")
    box.locator(".run-reset").click()
    box.locator(".run-reset").wait_for(state="hidden")
    assert box.locator("code").inner_html() == original, "after a reset it is not the code of the book"
    assert page.evaluate("document.activeElement.matches('.run-run')"), "the focus is lost by a reset"
    last = block(page, "matplotlib", 1)
    changed(last, "print(3)").press("Control+Enter")
    said(last, "Ran in")
    last.locator(".run-reset").click()
    last.locator(".run-reset").wait_for(state="hidden")
    assert last.locator("xpath=following-sibling::*[1]").is_visible(), "the output of the book is not back"
    changed(block(page, "matplotlib", 3), "print(4)")
    page.route(
        "**/waveforms.html", lambda route: route.fulfill(body=route.fetch().text().replace("pairs", "pears"))
    )
    page.reload()
    said(block(page, "matplotlib", 3), "Changed, not run yet")
    areas = page.locator("textarea").evaluate_all("all => all.map((area) => area.value)")
    assert "print('mine')" not in areas, "what was reset comes back"
    assert areas == ["print(4)"], "code of another edition is kept"
    assert visit.complaints == []


# --- One Python for all pages -------------------------------------------------------------------------------

# Of a browser whose workers all end with their page, though it says otherwise.
SHORT = """SharedWorker = class extends SharedWorker {
  constructor(address, options) {
    super(address, { type: "module", extendedLifetime: options.extendedLifetime && false });
  }
}"""
# What pages run is run before it on every other page.
MIXED = """const post = MessagePort.prototype.postMessage;
MessagePort.prototype.postMessage = function (data) {
  if (data.blocks) {
    const before = JSON.parse(localStorage.mixed ?? "[]");
    localStorage.mixed = JSON.stringify(data.blocks.map((each) => ({ ...each, name: `other ${each.name}` })));
    data.blocks.unshift(...before);
  }
  post.call(this, data);
}"""


@pytest.mark.usefixtures("python")
@harmed(Harm("Python is gone", script=SHORT))
def test_python_stays_for_the_next_page(page: Page, address: str) -> None:
    """It runs within a second of the click there, and nothing is said of loading."""
    visit = opened(page, f"{address}en/{CHAPTER}")
    first = block(page)
    assert "MB" in first.locator(".run-run").inner_text()
    ran(first)
    for name in ("notation.html", "order.html"):
        page.goto(f"{address}en/{name}")
    box = block(page)
    label = box.locator(".run-run").inner_text()
    assert label == "Run", f"Python is gone: {label}"
    seconds = ran(box)
    assert seconds < 1, f"it takes {seconds:.1f} s"
    assert visit.complaints == []


@pytest.mark.usefixtures("python")
@pytest.mark.slow
@harmed(Harm("has the names of another", script=MIXED))
def test_pages_have_one_python_and_each_its_own_names(page: Page, address: str) -> None:
    other = page.context.new_page()
    visits = [opened(each, f"{address}en/{CHAPTER}") for each in (page, other)]
    changed(block(page), "import numpy as np\nmine, np.pi = 1, 3\nprint(mine)")
    ran(block(page))
    changed(block(other), "import numpy as np\nprint(np.pi, 'mine' in globals())")
    assert ran(block(other)) < 3, "it has not the Python of the first page"
    found = shown(block(other)).strip()
    assert found == "3.141592653589793 False", f"a page has the names of another: {found}"
    assert [visit.complaints for visit in visits] == [[], []]


ENDLESS = "while True:\n    pass"
STUBBORN = (
    "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass"
)
UNTOLD = """const on = MessagePort.prototype.addEventListener;
MessagePort.prototype.addEventListener = function (kind, heard) {
  on.call(this, kind, (event) => event.data?.type === "gone" || heard(event));
};
LockManager.prototype.request = async () => {};"""


def looped(page: Page, address: str, code: str) -> tuple[Locator, Locator, float]:
    """A block of this page that ran a loop and was stopped, one of another page that waits, seconds of the start."""
    other = page.context.new_page()
    for each in (page, other):
        opened(each, f"{address}en/{CHAPTER}")
    box, waits = block(page), block(other)
    start = ran(box)
    changed(box, code)
    box.locator(".run-run").click()
    said(box, "Running", wait=15_000)
    waits.locator(".run-run").click()
    said(waits, "Python is busy, maybe with a block on another page", wait=5000)
    box.locator(".run-stop").click(timeout=15_000)
    said(box, "Stopped")
    return box, waits, start


@pytest.mark.usefixtures("python")
@pytest.mark.slow
@harmed(Harm("Ran in: ", script="URL.revokeObjectURL = () => {}"))
def test_a_loop_is_stopped_and_costs_another_page_nothing(page: Page, address: str) -> None:
    box, waits, _ = looped(page, address, ENDLESS)
    said(waits, "Ran in", wait=7000)
    assert "again" not in waits.locator(".run-bar").inner_text()
    changed(box, "print(2)")
    assert ran(box) < 3, "it has not the Python that it had"
    assert shown(box).strip() == "2"


@pytest.mark.usefixtures("python")
@pytest.mark.slow
@harmed(Harm("Python is busy", script=UNTOLD))
def test_a_loop_that_lets_itself_not_be_stopped_costs_python_and_that_is_said(
    page: Page, address: str
) -> None:
    box, waits, start = looped(page, address, STUBBORN)
    said(waits, "Ran in.*was started again", wait=10_000 + round(2000 * start))
    changed(box, "print(2)")
    ran(box)
    assert shown(box).strip() == "2"


# --- Before it runs -----------------------------------------------------------------------------------------

AT_HOME = """addEventListener("DOMContentLoaded", () => document.querySelector("#at-home")?.removeAttribute("id"))"""


@harmed(Harm("no line that runs it", script=AT_HOME))
@harmed(Harm("does not say why", style=".run-needs { display: none }"))
def test_what_no_browser_has_leads_to_the_line_that_runs_it_at_home(phone: Page, address: str) -> None:
    for name in (f"en/{CHAPTER}", f"zh/{CHAPTER}", "en/labs/masks.html"):
        visit = opened(phone, f"{address}{name}")
        needs = phone.locator(".highlight[data-needs=torch] .run-needs").first
        assert "PyTorch" in needs.inner_text(), "a block does not say why it does not run"
        assert needs.is_visible(), "a block does not say why it does not run"
        needs.locator("a").click()
        phone.wait_for_url("**/index.html#at-home")
        line = phone.locator("#at-home ~ .highlight, #at-home ~ div .highlight").first
        found = line.inner_text() if line.count() else "nothing"
        assert "pip install '.[torch,plot]'" in found, f"no line that runs it: {found}"
        assert visit.complaints == []


NO_PROGRESS = """const on = Worker.prototype.addEventListener;
Worker.prototype.addEventListener = function (kind, heard) {
  on.call(this, kind, (event) => event.data?.type === "progress" || heard(event));
}"""
TOLD = """() => new MutationObserver(() => {
  const text = document.querySelector(".run-bar [role=status]")?.textContent;
  if (text && text !== (window.told ??= []).at(-1)) told.push(text);
}).observe(document.body, { subtree: true, childList: true, characterData: true })"""


@harmed(Harm("how many MB of how many", script=NO_PROGRESS))
@harmed(Harm("what it does when all is loaded", script=NO_PROGRESS.replace("progress", "step")))
@harmed(Harm("0 px beside the button", style=".run-busy > .run-bar { position: static !important }"))
def test_how_much_is_loaded_is_said_and_what_does_not_come_is_tried_again(page: Page, address: str) -> None:
    visit = played(page, f"{address}en/{CHAPTER}", WORKER.replace("60)", "300)"))
    box = block(page)
    page.evaluate(TOLD)
    box.locator(".run-run").click()
    said(box, r"1/4 Loading Python[\s\S]*\d\.\d MB of 9\.0 MB", "how many MB of how many")
    line, stops = box.locator(".run-bar").bounding_box(), box.locator(".run-stop").bounding_box()
    assert line
    assert stops
    beside = min(line["y"] + line["height"], stops["y"] + stops["height"]) - max(line["y"], stops["y"])
    assert beside > 9, f"{max(beside, 0):.0f} px beside the button"
    said(box, "Ran in")
    told = page.evaluate("window.told")
    steps = ["1/4 Loading Python", "2/4 Starting Python", "3/4 Importing NumPy", "4/4 Importing posenc"]
    assert [each for each in told if "/4 " in each] == steps, f"not what it does when all is loaded: {told}"
    assert "MB" not in (box.locator(".run-run").get_attribute("title") or ""), (
        "it still says how much it loads"
    )
    assert visit.complaints == []

    play(page, "", status=404)
    page.reload()
    box = block(page)
    box.locator(".run-run").click()
    said(box, "could not be loaded; you can try again")
    play(page)
    box.locator(".run-run").click()
    said(box, "Ran in")
