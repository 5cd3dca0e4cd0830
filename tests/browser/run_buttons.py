"""What a reader does with the blocks that run in the page; each deed gives a list of faults.

Python is played by WORKER, which answers at once, but for `python`, where it is the one that the site has.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator

from playwright.sync_api import Locator, Page, Route
from playwright.sync_api import TimeoutError as Late

from tests.browser import browsing
from tests.browser.journeys import complaints, opened
from tests.planted import Checks

RUN = Checks()  # what a reader does, and a file of the site with something else in it
WAIT = 15_000  # ms that a slow machine may need
START = 60_000  # and for Python to start
CHAPTER, LAB = "en/sinusoidal.html", "en/labs/waveforms.html"

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
    there.add(what);
  }
  postMessage({ type: "ready" });
  const say = (type, rest) => postMessage({ type, id, ...rest });
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


@contextlib.contextmanager
def phone(page: Page) -> Iterator[Page]:
    """A phone, in the dark."""
    width, height = browsing.PHONE
    assert page.context.browser is not None
    context = page.context.browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark",
        has_touch=True,
        is_mobile=True,
        reduced_motion="reduce",
    )
    try:
        yield context.new_page()
    finally:
        context.close()


def played(page: Page, url: str, worker: str = WORKER) -> browsing.Visit:
    """Open a page whose Python is played."""
    page.route(
        "**/runtime/worker.js", lambda route: route.fulfill(body=worker, content_type="text/javascript")
    )
    return opened(page, url)


def block(page: Page, needs: str = "numpy", number: int = 0) -> Locator:
    """One of the blocks that run, when it has its buttons."""
    found = page.locator(f".highlight[data-run={needs}]").nth(number)
    found.locator(".run-run").wait_for()
    return found


def said(box: Locator, words: str, wait: int = 0) -> bool:
    """Whether the line under a block says these words (a regular expression) in time."""
    try:
        box.locator(".run-bar", has_text=re.compile(words)).wait_for(timeout=wait or WAIT)
    except Late:
        return False
    return True


def saying(box: Locator) -> str:
    bar = box.locator(".run-bar")
    return bar.inner_text() if bar.count() else "nothing"


def below(box: Locator) -> Locator:
    """What a run has put below a block."""
    return box.locator("xpath=following-sibling::*[1][contains(@class, 'run-output')]")


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


@RUN(
    (
        "en/runtime/run.js",
        "blocks.set(number, block);",
        "box.style.paddingTop = '99px';",
        "the layout shifts",
    ),
    ("en/runtime/run.css", "padding-bottom: 44px", "padding-bottom: 4px", "the buttons cover"),
    ("en/runtime/run.css", "height: 44px", "height: 20px", "px high"),
    ("en/runtime/run.js", "const act =", "import('./block.js');\nconst act =", "block.js is fetched"),
    ("en/runtime/run.js", "`${words.run} · ${megabytes(loads)}`", "words.run", "no size"),
    ("en/runtime/run.js", "prepend(said)", "append()", "does not say that it needs"),
)
def untouched(page: Page, root: str) -> Iterator[str]:
    """What a reader who clicks nothing would notice: on a phone, and what is fetched."""
    with phone(page) as page:
        page.add_init_script(browsing.SHIFTS)
        visit = browsing.Visit(f"{root}{CHAPTER}")
        responses = browsing.watch(page, visit)
        held: list[Route] = []
        page.route(
            "**/runtime/run.js", lambda route: held.append(route)
        )  # comes when the reader has a block before the eyes
        page.goto(visit.url, wait_until="domcontentloaded")
        page.locator(".highlight[data-run]").first.scroll_into_view_if_needed()
        page.wait_for_timeout(300)
        held[0].continue_()
        box = block(page)
        page.wait_for_load_state("networkidle")
        shift = page.evaluate(browsing.MEASURE)["shift"]
        yield from [f"the layout shifts by {shift:.3f}"] * (shift > 0.001)
        late = re.compile(r"/(block|python|worker)\.js$|/block\.css$|/py/")
        yield from (f"{answer.url} is fetched" for answer in responses if late.search(answer.url))
        if page.evaluate(COVERED):
            yield f"the buttons cover {page.evaluate(COVERED)}"
        for button in box.locator("nav button:visible").all():
            place = button.bounding_box()
            assert place is not None
            if min(place["width"], place["height"]) < 44:
                yield f"{button.inner_text()}: {place['width']:.0f} px wide, {place['height']:.0f} px high"
        if not re.search(r"\d\.\d MB", box.locator(".run-run").inner_text()):
            yield "no size on the button"
        if page.locator(".highlight[data-needs=torch] .run-needs:has-text('PyTorch')").count() < 1:
            yield "a block does not say that it needs PyTorch"
        yield from complaints(visit)


# --- Running ------------------------------------------------------------------------------------------------


@RUN(
    ("en/runtime/block.js", "(this.text.endsWith(output.trimEnd())", "(this.text === this", "with another"),
    ("en/runtime/worker.js", 'postMessage({ type: "figure"', 'void ({ type: "figure"', "no figure"),
    ("py/numpy-*.whl", "", "", "could not be loaded"),
)
def python(page: Page, root: str) -> Iterator[str]:
    """By mouse, with Python as the site has it: the first block, the next one, a drawing, and runBlock by itself."""
    visit = opened(page, f"{root}{CHAPTER}")
    shown: list[str] = []
    for needs, number in (("numpy", 0), ("numpy", 1), ("matplotlib", 0)):
        box = block(page, needs, number)
        start = time.perf_counter()
        box.locator(".run-run").click()
        if not said(box, r"Ran in|could not", START):
            yield f"nothing in {START} ms, but {saying(box)}"
            return
        shown.append(f"{needs} {number}: {time.perf_counter() - start:.2f} s, {saying(box)}")
        if needs == "numpy" and "with the output of the book" not in saying(box):
            yield f"{needs} {number}: {saying(box)}"
            return
    if not below(box).locator("figure svg[role=img][aria-label]").count():
        yield "no figure"
    print(*shown, sep="\n")
    script = """async () => {
      const { runBlock } = await import("./runtime/python.js");
      const one = await runBlock("print(x + 1)", { before: ["x = 1"] });
      const two = await runBlock("print(x)");
      const three = await runBlock("while True: pass", { limit: 500 });
      return [one.output, two.error.text, two.error.line, three.error.stopped];
    }"""
    if (answers := page.evaluate(script)) != ["2\n", "NameError: name 'x' is not defined", 1, True]:
        yield f"runBlock gives {answers}"
    yield from complaints(visit)


@RUN(
    ("en/runtime/block.js", "each.hidden = true", "each.hidden = false", "the book's output stays"),
    (
        "en/runtime/block.css",
        ".md-typeset :is(.output, figure.plot, .live)[hidden]",
        ".md-typeset .output[hidden]",
        "the book's figure stays",
    ),
    ("en/runtime/block.js", "if (caption) figure.append", "if (0) figure.append", "no caption"),
    (
        "en/runtime/python.js",
        'svg.replaceAll("posenc-id-"',
        'svg.replaceAll("a name"',
        "two elements with the id",
    ),
)
def results(page: Page, root: str) -> Iterator[str]:
    """What a block prints and draws takes the place of what the book has there; and once more."""
    visit = played(page, f"{root}{CHAPTER}")
    for needs, kind in (("numpy", "output"), ("matplotlib", "figure")):
        for number in (0, 1, 0):
            box = block(page, needs, number)
            box.locator(".run-run").click()
            said(box, "Ran in")
        theirs = below(box).locator("xpath=following-sibling::*[1]")
        yield from [f"the book's {kind} stays beside the new one"] * theirs.is_visible()
    if not below(box).locator("figcaption").is_visible():
        yield "no caption below a figure of the book's own code"
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
    yield from (f"two elements with the id {name}" for name in {name for name in ids if ids.count(name) > 1})
    yield from complaints(visit)


@RUN(
    ("zh/runtime/block.js", 'event.key !== "Enter"', 'event.key !== "F9"', "Control+Enter does not run"),
    ("zh/runtime/block.js", "event.shiftKey)", "event.altKey)", "Shift+Enter does not run"),
    ("zh/runtime/block.js", '"beforeinput", indent', '"nothing", indent', "a new line begins with"),
    (
        "zh/runtime/block.js",
        'addEventListener("keydown", (event) => {',
        'addEventListener("keydown", (event) => { if (event.key === "Tab") event.preventDefault();',
        "Tab does not leave",
    ),
    ("zh/runtime/block.js", "block.area.focus({ preventScroll: true })", "", "does not go to the code"),
    ("zh/runtime/run.css", "@media", ".run-run { outline: none !important } @media", "has no mark"),
)
def by_keyboard(page: Page, root: str) -> Iterator[str]:
    """On a phone in the dark, in Chinese: change a block and run it by the keyboard alone."""
    with phone(page) as page:
        visit = played(page, f"{root}zh/sinusoidal.html")
        page.evaluate(browsing.MEASURE)
        box = block(page)
        page.locator("h1").evaluate("node => { node.tabIndex = -1; node.focus(); }")
        for _ in range(60):
            page.keyboard.press("Tab")
            if box.locator(".run-run").evaluate("node => node === document.activeElement"):
                break
        if box.locator(".run-run").evaluate("node => getComputedStyle(node).outlineStyle") == "none":
            yield "the button has no mark where it has the focus"
        page.keyboard.press("Enter")
        if not said(box, "用时"):
            yield f"Enter on the button does not run the block: {saying(box)}"
            return
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        area = box.locator("textarea")
        area.wait_for()
        if not area.evaluate("node => node === document.activeElement"):
            yield "the focus does not go to the code"
            return
        page.keyboard.press("Control+a")
        page.keyboard.type("for k in range(2):\nprint(k)")
        if (code := area.input_value()) != "for k in range(2):\n    print(k)":
            yield f"a new line begins with {code.splitlines()[1]!r}"
        for keys in ("Control+Enter", "Shift+Enter"):
            page.keyboard.type("#")
            page.keyboard.press(keys)
            if not said(box, "用时") or area.input_value() not in shown(box):
                yield f"{keys} does not run the block"
        page.keyboard.press("Tab")
        if area.evaluate("node => node === document.activeElement"):
            yield "Tab does not leave the code"
        yield from complaints(visit)


AXE_NEAR = """async () => {
  const include = [...document.querySelectorAll(".highlight:has(> .run-bar), .run-output")];
  const { violations } = await axe.run({ include }, { resultTypes: ["violations"] });
  return violations.map(REPORT);
}"""


@RUN(
    ("zh/runtime/block.js", 'block.area.setAttribute("aria-label", words.code)', "", "running: label"),
    (
        "zh/runtime/block.css",
        "--run-fault: #ff8a80",
        "--md-default-fg-color--light: #555",
        "output: color-contrast",
    ),
    ("zh/book.js", " || box.scrollHeight > box.clientHeight + 1", "", "much: scrollable-region-focusable"),
)
def accessible(page: Page, root: str) -> Iterator[str]:
    """What axe finds in each state, on a phone in the dark."""
    with phone(page) as page:
        visit = played(page, f"{root}zh/sinusoidal.html", WORKER.replace("60)", "200)"))
        page.evaluate(browsing.MEASURE)
        box, drawing = block(page), block(page, "matplotlib")
        states = {
            "loading": (lambda: box.locator(".run-run").click(), box, "MB"),
            "output": (lambda: None, box, "用时"),
            "running": (lambda: changed(box, "while True: pass").press("Control+Enter"), box, "正在运行"),
            "stopped": (lambda: box.locator(".run-stop").click(), box, "已停止"),
            "an error": (lambda: changed(box, "1 / 0").press("Control+Enter"), box, "第 1 行出错"),
            "much": (lambda: changed(box, "print('x' * 10**7)").press("Control+Enter"), box, "用时"),
            "a figure": (lambda: drawing.locator(".run-run").click(), drawing, "用时"),
        }
        for state, (reach, where, words) in states.items():
            reach()
            said(where, words)
            if state == "loading":
                faults = browsing.axe(page)
            else:  # nothing else has changed
                faults = page.evaluate(AXE_NEAR.replace("REPORT", browsing.REPORT))
            yield from (f"{state}: {fault}" for fault in faults)
        yield from complaints(visit)


@RUN(
    ("en/runtime/python.js", "worker.terminate()", "worker.valueOf()", "is left"),
    (
        "en/runtime/python.js",
        "if (current || !waiting.length) return;",
        "if (!waiting.length) return;",
        "does not wait",
    ),
    (
        "en/runtime/python.js",
        "worker = null;\n      ready = false;",
        "ready = false;",
        "does not run after that",
    ),
    ("en/runtime/block.js", "run.classList.toggle", "void", "no button that stops"),
)
def stopped(page: Page, root: str) -> Iterator[str]:
    """An endless loop: another block waits for it, the button ends it with its interpreter, then the other one runs."""
    visit = played(page, f"{root}{CHAPTER}")
    box, other = block(page), block(page, number=1)
    changed(box, "while True: pass")
    box.locator(".run-run").click()
    if not said(box, "Running"):
        yield f"it does not run: {saying(box)}"
    if not box.locator(".run-stop").count():
        yield "no button that stops"
        return
    other.locator(".run-run").click()
    if not said(other, "Waiting"):
        yield f"another block does not wait: {saying(other)}"
    workers = list(page.workers)
    box.locator(".run-stop").click()
    if not said(box, "Stopped"):
        yield f"it is not stopped: {saying(box)}"
    if not said(other, "Ran in"):
        yield f"another block does not run after that: {saying(other)}"
    yield from ("an interpreter is left" for worker in workers if worker in page.workers)
    yield from complaints(visit)


@RUN(
    ("en/runtime/block.js", "if (line) mark(owner, line)", "", "is not marked"),
    (
        "en/runtime/block.js",
        "const owner = blocks.get(error.name) ?? block",
        "const owner = block",
        "An error in line 1.",
    ),
    (
        "en/runtime/block.js",
        "words.line(line)}${source.trim()}",
        "words.line(line)}",
        "not said with its code",
    ),
    ("en/runtime/block.js", "colours.fault?.delete(each.fault)", "each.fault", "stays marked"),
)
def errors(page: Page, root: str) -> Iterator[str]:
    """An error is said with its line, which is marked: of the block itself, and of one that it continues."""
    visit = played(page, f"{root}{CHAPTER}")
    box = block(page)
    area = changed(box, "x = 1\n\nprint(1 / 0)")
    area.press("Control+Enter")
    marked = "[...CSS.highlights.get('run-fault')].map(String)"
    if not said(box, r"An error in line 3\."):
        yield f"an error is not said: {saying(box)}"
    if (text := shown(box)) != "Line 3: print(1 / 0)\nZeroDivisionError: division by zero":
        yield f"an error is not said with its code: {text}"
    if page.evaluate(marked) != ["print(1 / 0)"]:
        yield f"the line is not marked, but {page.evaluate(marked)}"
    area.fill("print(1)")
    if page.evaluate(marked):
        yield f"{page.evaluate(marked)} stays marked"
    yield from complaints(visit)

    visit = played(page, f"{root}{LAB}")
    first, last = block(page, "matplotlib"), block(page, "matplotlib", 2)
    changed(first, "1 / 0")
    last.locator(".run-run").click()
    if not said(last, "line 1 of an earlier block") or "Line 1: 1 / 0" not in shown(last):
        yield f"an error of an earlier block is not said: {saying(last)}"
    if page.evaluate(marked) != ["1 / 0"]:
        yield f"the line of an earlier block is not marked, but {page.evaluate(marked)}"
    yield from complaints(visit)


@RUN(
    ("en/runtime/block.js", "if (cut) block", "if (0) block", "is not said"),
    ("en/runtime/block.css", "max-height: 24rem", "min-height: 0", "px high"),
)
def much(page: Page, root: str) -> Iterator[str]:
    """Output without end is cut off, and the page does not grow by it."""
    visit = played(page, f"{root}{CHAPTER}")
    page.evaluate(browsing.MEASURE)
    box = block(page)
    changed(box, "print('x' * 10**7)").press("Control+Enter")
    said(box, "Ran in")
    if not below(box).get_by_text("The first 99 kB are shown; 2.3 MB more were printed.").count():
        yield "that output is cut off is not said"
    height = below(box).evaluate("node => node.offsetHeight")
    yield from [f"the output is {height} px high"] * (height > 800)
    yield from complaints(visit)


@RUN(
    ("en/runtime/run.js", "localStorage.setItem", "void", "is gone after a reload"),
    ("en/runtime/run.js", "of === block.original ? code : undefined", "code", "of another edition"),
    (
        "en/runtime/block.js",
        "block.code.replaceChildren(...block.nodes)",
        "block.nodes",
        "not the code of the book",
    ),
    (
        "en/runtime/block.js",
        "for (const each of printed(block)) each.hidden = false",
        "",
        "output of the book",
    ),
    ("en/runtime/block.js", "kept.set(block, undefined);", "", "comes back"),
    ("en/runtime/block.js", "block.buttons.run.focus({ preventScroll: true });", "", "focus"),
    ("en/runtime/block.js", "block.code.textContent = `${block.area.value}\\n`", "", "copied"),
    ("en/runtime/block.js", "chain(blocks.get(block.after)), block]", "block]", "does not continue"),
)
def changes(page: Page, root: str) -> Iterator[str]:
    """Changed code is copied, continued and kept over a reload, but not for other code of the book; and reset."""
    visit = played(page, f"{root}{LAB}")
    box, last = block(page, "matplotlib"), block(page, "matplotlib", 2)
    original = box.locator("code").inner_html()
    changed(box, "print('mine')")
    box.locator("[data-clipboard-target]").click()
    if (pasted := page.evaluate("navigator.clipboard.readText()")) != "print('mine')\n":
        yield f"copied: {pasted}"
    changed(last, "print(2)").press("Control+Enter")
    said(last, "Ran in")
    if "1: print('mine')" not in shown(last):
        yield "a block does not continue the changed one"
    page.reload()
    box = block(page, "matplotlib")
    if not said(box, "Changed, not run yet") or box.locator("textarea").input_value() != "print('mine')":
        yield "what was changed is gone after a reload"
        return
    box.locator("textarea").press("Control+Enter")
    said(box, "Ran in")
    box.locator(".run-reset").click()
    box.locator(".run-reset").wait_for(state="hidden")
    if box.locator("code").inner_html() != original:
        yield "after a reset it is not the code of the book"
    if not page.evaluate("document.activeElement.matches('.run-run')"):
        yield "the focus is lost by a reset"
    last = block(page, "matplotlib", 1)
    changed(last, "print(3)").press("Control+Enter")
    said(last, "Ran in")
    last.locator(".run-reset").click()
    last.locator(".run-reset").wait_for(state="hidden")
    if not last.locator("xpath=following-sibling::*[1]").is_visible():
        yield "after a reset the output of the book is not there"
    changed(block(page, "matplotlib", 3), "print(4)")
    address = re.compile(r"/waveforms\.html$")
    page.route(
        address,
        lambda route: route.fulfill(
            response=(answer := route.fetch()), body=answer.text().replace("pairs", "pears")
        ),
    )
    page.reload()
    block(page, "matplotlib")
    page.wait_for_load_state("networkidle")
    if (areas := page.locator("textarea").evaluate_all("all => all.map((area) => area.value)")) != [
        "print(4)"
    ]:
        yield "what was reset comes back" if "print('mine')" in areas else f"of another edition: {areas}"
    yield from complaints(visit)


@RUN(
    ("en/runtime/block.js", "progress(block, value);", "value;", "MB of"),
    ("en/runtime/python.js", '[ready ? "fatal" : "loading"]: true', "line, name", "could not be loaded"),
    ("en/runtime/block.js", "arrived(parts);", "parts;", "still says"),
)
def loading(page: Page, root: str) -> Iterator[str]:
    """How much is there of what is loaded is said; where it does not come, that, and the next click tries again."""
    visit = played(page, f"{root}{CHAPTER}", WORKER.replace("60)", "300)"))
    box = block(page)
    box.locator(".run-run").click()
    if not said(box, r"Loading Python and NumPy[^]*\d\.\d MB of 9\.0 MB".replace("[^]", r"[\s\S]"), 3000):
        yield f"how many MB of how many is not said: {saying(box)}"
    said(box, "Ran in")
    if "MB" in (text := box.locator(".run-run").get_attribute("title") or ""):
        yield f"what is there is {text}: the button still says how much it loads"
    yield from complaints(visit)

    page.unroute_all()
    page.route("**/runtime/worker.js", lambda route: route.fulfill(status=404, body=""))
    page.reload()
    box = block(page)
    box.locator(".run-run").click()
    if not said(box, "could not be loaded; you can try again"):
        yield f"that Python could not be loaded is not said: {saying(box)}"
    page.unroute_all()
    page.route(
        "**/runtime/worker.js", lambda route: route.fulfill(body=WORKER, content_type="text/javascript")
    )
    box.locator(".run-run").click()
    if not said(box, "Ran in"):
        yield f"it is not tried again: {saying(box)}"
