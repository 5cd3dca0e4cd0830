"""A reader's browser: what it fetches, shows and hears of a page, and what is wrong with that.

`visit` loads a page once, as a first-time reader on a phone would, and measures everything; each check of VISIT
takes what was measured and gives a list of faults. A check's examples are parts of one bad page (`BAD`), and are
found in one visit.
"""

import contextlib
import functools
import gzip
import http.server
import importlib.resources
import json
import os
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Response, sync_playwright
from press.offline.archive import chromium

from tests import missing
from tests.planted import Checks

NONE = "no browser: `apt-get install chromium fonts-noto-cjk`, or any Chrome or Chromium on the PATH"
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
Look = tuple[str, tuple[int, int]]
PHONE, DESKTOP, NARROW = (390, 844), (1280, 800), (320, 640)
LOOKS: tuple[Look, ...] = (("light", PHONE), ("dark", PHONE), ("dark", DESKTOP), ("light", DESKTOP))

FIRST_VISIT = 170 * 1024  # bytes, compressed, with all figures that move
HTML = 50_000  # the longest chapters, which teach more than one page should, have 47_000
SHIFT = 0.05
NODES = 10_000
LABEL = 11  # px
TEXT = 12  # px


@contextlib.contextmanager
def launched() -> Iterator[Browser]:
    """A browser of the machine's; without one the tests are skipped."""
    path = chromium()
    if path is None:
        missing.skip_or_fail("browser", NONE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(path), args=list(FLAGS))
        yield browser
        browser.close()


FONT = 0.3  # s


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.endswith(".woff2"):  # last, as over a slow line: the page has been shown by then
            time.sleep(FONT)
        super().do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        pass


BELOW = os.environ.get("POSENC_BELOW", "")  # the site is visited in this folder, as at the Pages of a project


@contextlib.contextmanager
def served(folder: Path, below: str = "") -> Iterator[str]:
    """The address at which `folder` is served, with a slash at its end: at the root, or below it and nothing beside."""
    with contextlib.ExitStack() as stack:
        if below:
            above = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            (above / below).symlink_to(folder)
        handler = functools.partial(_Quiet, directory=str(above if below else folder))
        server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler))
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/{below}{'/' * bool(below)}"
        finally:
            server.shutdown()
            thread.join()


@dataclass(frozen=True)
class Harm:
    """What goes wrong for a reader: scripts or styles of others, addresses that do not come, other contents."""

    says: str  # by the test that notices it
    script: str = ""
    style: str = ""
    gone: str = ""
    other: tuple[str, str, str] = ("", "", "")  # the address, what it has, what comes instead

    def works_in(self, context: BrowserContext) -> None:
        sheet = f"(sheet = new CSSStyleSheet()).replaceSync({json.dumps(self.style)})"
        context.add_init_script(f"let sheet; {sheet}; document.adoptedStyleSheets = [sheet];")
        context.add_init_script(self.script)
        if self.gone:
            context.route(self.gone, lambda route: route.abort())
        address, has, comes = self.other
        if address:
            context.route(address, lambda route: route.fulfill(body=route.fetch().text().replace(has, comes)))


# --- Measuring ----------------------------------------------------------------------------------------------


@dataclass
class Visit:
    """What a browser makes of a page."""

    url: str
    elsewhere: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)  # bytes over the wire, by address
    shift: float = 0.0
    nodes: int = 0
    labels: list[float] = field(default_factory=list)  # px of the labels in figures, on a phone
    small: list[str] = field(default_factory=list)  # texts that are hard to read
    wide: list[str] = field(default_factory=list)  # what sticks out of a narrow screen
    towers: list[str] = field(default_factory=list)  # cells of a table there, of a word or two a line
    axe: list[str] = field(default_factory=list)
    copied: list[str | None] = field(default_factory=list)  # what the button of each Python block gives

    @property
    def complaints(self) -> list[str]:
        return self.elsewhere + self.failed + self.console

    @property
    def html(self) -> int:
        return self.sizes.get(self.url, 0)

    @property
    def weight(self) -> int:
        return sum(self.sizes.values())


SHIFTS = """
window.shift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""

MEASURE = """async () => {
  for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight) {
    scrollTo(0, y);
    await new Promise(requestAnimationFrame);
  }
  scrollTo(0, 0);
  const px = (text) => {
    const matrix = text.getScreenCTM();
    return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(matrix.a, matrix.b);
  };
  const labels = [...document.querySelectorAll("figure svg text")];
  const open = labels.filter((text) => text.textContent.trim() && text.getClientRects().length);
  return {
    nodes: document.querySelectorAll("*").length,
    labels: open.map(px),
  };
}"""

WIDE = """() => {
  const width = document.documentElement.clientWidth;
  const scrolls = (node) => {
    for (let box = node.parentElement; box && box !== document.body; box = box.parentElement)
      if (!["visible", "clip"].includes(getComputedStyle(box).overflowX)) return true;
    return false;
  };
  const seen = { opacityProperty: true, visibilityProperty: true };
  const out = [...document.querySelectorAll("body *")].filter(
    (node) => node.getBoundingClientRect().right > width + 1 && node.checkVisibility(seen) && !scrolls(node));
  if (!out.length && document.scrollingElement.scrollWidth > width) out.push(document.body);
  return out.slice(0, 3).map((node) => node.outerHTML.slice(0, 100));
}"""

SMALL = """(least) => {
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { data, parentElement: node } = texts.currentNode;
    if (!data.trim() || node.closest("math, svg, sub, sup") || !node.checkVisibility()) continue;
    const size = parseFloat(getComputedStyle(node).fontSize);
    if (size && size < least - 0.05) found.push(`${size.toFixed(1)} px: ${data.trim().slice(0, 40)}`);
  }
  return found.slice(0, 3);
}"""

TOWERS = """() => [...document.querySelectorAll("td")].filter((cell) => {
  const text = document.createRange();
  text.selectNodeContents(cell);
  const { width, height } = text.getBoundingClientRect();
  return height > 5 * width;
}).map((cell) => cell.textContent.trim().slice(0, 60)).slice(0, 3)"""

# Texts with the same colours, size and weight on the same grounds have the same contrast: one of each is looked at, and
# of formulas, drawings and code what brings a new kind of element. What is passed over stands there empty meanwhile:
# axe takes its time by the element. In the dark nothing but colours can be wrong.
AXE = """async (dark) => {
  const all = (names) => document.body.querySelectorAll(names);
  const known = new Set(), kinds = new Map(), grounds = new Map([[null, ""]]), around = new Set(), faults = [];
  const looked = async (away, options) => {
    away.forEach(([part, stand]) => part.replaceWith(stand));
    const { violations } = await axe.run({ exclude: ["svg:empty"] }, { resultTypes: ["violations"], ...options });
    faults.push(...violations.map(REPORT));
    away.forEach(([part, stand]) => stand.replaceWith(part));
  };
  const colours = { "color-contrast": "[data-kind]", "link-in-text-block": "a[href][data-kind]" };
  if (!dark) {
    const away = [...all("math, figure svg, pre")].filter((part) => {
      const before = known.size;
      for (const { localName, className, attributes } of part.querySelectorAll("*"))
        known.add([localName, className.baseVal ?? className, ...[...attributes].map(({ name }) => name)].join());
      return known.size === before && !part.contains(document.activeElement);
    }).map((part) => [part, part.cloneNode(), part.getBoundingClientRect()]);
    for (const [part, stand, { width, height }] of away) {
      stand.style = `display: inline-block; width: ${width}px; height: ${height}px; overflow: clip`;
      if (part.localName !== "svg") stand.textContent = part.textContent;
    }
    await looked(away, { rules: Object.fromEntries(Object.keys(colours).map((id) => [id, { enabled: false }])) });
  }
  const ground = (node) => {
    if (!grounds.has(node)) {
      const { backgroundColor, backgroundImage, opacity, position } = getComputedStyle(node);
      const own = [backgroundColor, backgroundImage, opacity, position].join(), below = ground(node.parentElement);
      grounds.set(node, own === "rgba(0, 0, 0, 0),none,1,static" ? below : below + own);
    }
    return grounds.get(node);
  };
  for (const node of all("*")) {
    const speaks = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!speaks || !node.checkVisibility({ visibilityProperty: true })) continue;
    const { color, fontSize, fontWeight, textDecorationLine: line } = getComputedStyle(node);
    const above = node.localName === "a" && getComputedStyle(node.parentElement).color;
    const kind = [color, fontSize, fontWeight, line, above, ground(node)].join();
    if (!kinds.has(kind)) kinds.set(kind, node);
  }
  kinds.forEach((node) => (node.dataset.kind = ""));
  for (const kept of [...kinds.values(), document.activeElement])
    for (let node = kept; node; node = node.parentElement) around.add(node);
  // A copy of a figure that moves would begin to move, and miss what stands in it.
  const stay = "[data-kind], [data-kind] *, script, style, link, .live, .live *, :has(.live)";
  const away = [...all(`:not(${stay})`)].filter((node) =>
    !around.has(node) && around.has(node.parentElement) &&
    !(node.checkVisibility() && /absolute|fixed|sticky/.test(getComputedStyle(node).position)));
  axe.configure({ rules: Object.entries(colours).map(([id, selector]) => ({ id, selector })) });
  await looked(away.map((part) => [part, part.cloneNode()]), { runOnly: Object.keys(colours) });
  kinds.forEach((node) => delete node.dataset.kind);
  axe.reset();
  return faults;
}"""

REPORT = """(fault) => {
  const [first] = fault.nodes;
  return `${fault.id} (${fault.nodes.length}): ${first.html.slice(0, 120)}: ${first.failureSummary}`;
}"""

# What the buttons of the blocks of code put into the clipboard.
COPIED = """() => [...document.querySelectorAll(".language-python.highlight pre")].map((block) => {
  const button = block.querySelector("[data-clipboard-target]");
  if (!button) return null;
  button.click();
  return button.dataset.clipboardText;
})"""


@functools.cache
def axe_script() -> str:
    """axe-core, from the package that carries it."""
    file = importlib.resources.files("axe_playwright_python") / "axe.min.js"
    return file.read_text(encoding="utf-8")


def axe(page: Page, dark: bool = False) -> list[str]:
    """What axe-core finds on a page as it stands."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe_script())
    found: list[str] = page.evaluate(AXE.replace("REPORT", REPORT), dark)
    return found


# Scripts follow within two frames, and colours glide.
SETTLED = """async () => {
  const frames = async () => { for (let n = 0; n < 2; n += 1) await new Promise(requestAnimationFrame); };
  await frames();
  const gliding = document.getAnimations().filter(({ effect }) => effect.getComputedTiming().endTime < Infinity);
  await Promise.allSettled(gliding.map(({ finished }) => finished));
  if (gliding.length) await frames();
}"""


def resized(page: Page, size: tuple[int, int], scheme: str = "light") -> None:
    """Another screen or palette, and time to follow."""
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.evaluate(SETTLED)


def watch(page: Page, visit: Visit) -> list[Response]:
    """Write down what a page fetches and complains of from now on; gives the growing list of responses."""
    origin = "{0.scheme}://{0.netloc}".format(urlsplit(visit.url))
    responses: list[Response] = []

    def requested(url: str) -> None:
        if urlsplit(url).scheme not in ("data", "blob", "about") and not url.startswith(f"{origin}/"):
            visit.elsewhere.append(url)

    def answered(response: Response) -> None:
        responses.append(response)
        if response.status >= 400:
            visit.failed.append(f"{response.status} {response.url}")

    def unanswered(why: str, url: str) -> None:
        if why != "net::ERR_ABORTED":  # the reader has gone on meanwhile
            visit.failed.append(f"{why} {url}")

    def complained(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            visit.console.append(message.text)

    listen: Any = page.on
    forget: Any = page.remove_listener
    for event, heard in (
        ("request", lambda request: requested(request.url)),
        ("response", answered),
        ("requestfailed", lambda request: unanswered(str(request.failure), request.url)),
        ("pageerror", lambda error: visit.console.append(str(error))),
        ("console", complained),
    ):
        listen(event, heard)
        UNDO[page].append(functools.partial(forget, event, heard))
    return responses


UNDO: defaultdict[Page, list[Callable[[], object]]] = defaultdict(list)


def first(page: Page, script: str) -> None:
    """Run a script before those of each page, until `left`."""
    UNDO[page].append(page.add_init_script(script).close)


def left(page: Page) -> None:
    """Make a page as if it were new."""
    for undo in UNDO.pop(page, ()):
        undo()
    page.unroute_all()
    page.evaluate("localStorage.clear(); sessionStorage.clear()")
    page.mouse.move(-1, -1)
    page.goto("about:blank")


def opened(page: Page, url: str) -> Visit:
    """Open an address; what the page complains of from now on is written down."""
    visit = Visit(url)
    watch(page, visit)
    page.goto(url)
    return visit


def counted(response: Response) -> bool:
    return response.status == 200 and response.url.startswith("http")


def size(response: Response) -> int:
    """Bytes of a response over the wire, as a server that compresses sends it."""
    body = response.body()
    return len(compressed(body) if compressible(response.headers.get("content-type", "")) else body)


def compressible(kind: str) -> bool:
    """Whether servers compress this content type."""
    return kind.startswith("text/") or any(name in kind for name in ("javascript", "json", "xml"))


def compressed(body: bytes) -> bytes:
    return gzip.compress(body, 6, mtime=0)


@contextlib.contextmanager
def newcomer(browser: Browser) -> Iterator[Page]:
    """A page for visits, one after the other: a new browser for each costs a second more."""
    with browser.new_context(
        viewport={"width": PHONE[0], "height": PHONE[1]}, color_scheme="light", reduced_motion="reduce"
    ) as context:
        context.add_init_script(SHIFTS)
        yield context.new_page()


def visit(page: Page, url: str, looks: Sequence[Look] = LOOKS) -> Visit:
    """Load a page for the first time on a phone, then look at it on other screens and in the dark."""
    result = Visit(url)
    resized(page, PHONE)
    page.context.new_cdp_session(page).send("Network.clearBrowserCache")
    responses = watch(page, result)
    page.goto(url)
    measured = page.evaluate(MEASURE)
    result.nodes, result.labels = measured["nodes"], measured["labels"]
    page.wait_for_load_state("networkidle")
    result.shift = page.evaluate("window.shift")
    result.sizes = {answer.url: size(answer) for answer in responses if counted(answer)}
    for turn, (scheme, screen) in enumerate(looks):
        if turn or (scheme, screen) != ("light", PHONE):
            resized(page, screen, scheme)
        found = axe(page, scheme == "dark")
        result.axe += [f"{scheme}, {screen[0]} px: {fault}" for fault in found]
    resized(page, NARROW)
    page.evaluate("for (const folded of document.querySelectorAll('details')) folded.open = true")
    result.wide = page.evaluate(WIDE)
    result.small = page.evaluate(SMALL, TEXT)
    result.towers = page.evaluate(TOWERS)
    result.copied = page.evaluate(COPIED)
    left(page)
    return result


# --- Judging ------------------------------------------------------------------------------------------------

VISIT = Checks()  # of a Visit: a part of the bad page, and what is said of the page


@VISIT(('<img alt="" src="http://elsewhere.invalid/a.png">', "http://elsewhere.invalid/a.png"))
def nothing_from_elsewhere(page: Visit) -> list[str]:
    return page.elsewhere


@VISIT(('<img alt="" src="missing.png">', "missing.png"))
def nothing_missing(page: Visit) -> list[str]:
    return page.failed


@VISIT(
    ("<script>console.error('no')</script>", "no"),
    ("<script>nothing.there()</script>", "nothing is not defined"),
)
def no_complaint(page: Visit) -> list[str]:
    return page.console


@VISIT(
    ("<!--" + "".join(f"{n * 7919 % 65521:x}" for n in range(120_000)) + "-->", "the page has"),
    ("", "a first visit has"),
)
def light(page: Visit) -> list[str]:
    found = [f"the page has {page.html} bytes"] if page.html > HTML else []
    if page.weight > FIRST_VISIT:
        parts = ", ".join(f"{url.rsplit('/', 1)[-1]} {count}" for url, count in page.sizes.items())
        found.append(f"a first visit has {page.weight} bytes: {parts}")
    return found


# In frame after frame, however long each takes: what moves before the first is painted, or below what is scrolled to,
# shifts nothing.
SHIFTING = """<script>{
  let frame = 0;
  const shift = () => {
    document.querySelector("h1").style.marginTop = `${(frame % 2) * 300}px`;
    if (++frame < 60) requestAnimationFrame(shift);
  };
  requestAnimationFrame(shift);
}</script>"""


@VISIT((SHIFTING, "shifts by"))
def steady(page: Visit) -> list[str]:
    return [f"the layout shifts by {page.shift:.3f}"] if page.shift > SHIFT else []


@VISIT((f"<div hidden>{'<b></b>' * NODES}</div>", "nodes"))
def not_too_many_nodes(page: Visit) -> list[str]:
    return [f"{page.nodes} nodes"] if page.nodes > NODES else []


@VISIT(('<p style="width:330px">Text.</p>', "width:330px"))
def fits_a_narrow_screen(page: Visit) -> list[str]:
    return page.wide


@VISIT((f'<table><tr><td style="max-width:2em">{"word " * 50}</td></tr></table>', "word word"))
def tables_can_be_read_on_a_narrow_screen(page: Visit) -> list[str]:
    return page.towers


@VISIT(
    ('<figure><svg viewBox="0 0 800 99" width="100%" role="img"><text>a</text></svg></figure>', "a label has")
)
def labels_can_be_read(page: Visit) -> list[str]:
    smallest = min(page.labels, default=LABEL)
    return [f"a label has {smallest:.1f} px"] if smallest < LABEL - 0.05 else []


@VISIT(('<details><pre style="font-size:9px"><code>print</code></pre></details>', "px: print"))
def texts_can_be_read(page: Visit) -> list[str]:
    return page.small


DARK = "<style>@media (prefers-color-scheme: dark) and (width > 1000px) { .dark { color: #ddd } }</style>"


@VISIT(
    ('<p style="color:#aaa">Text.</p>', "light, 390 px: color-contrast (1)"),
    ('<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">', "light, 390 px: image-alt"),
    (f'{DARK}<p class="dark">Text.</p>', "dark, 1280 px: color-contrast (2)"),
    ("<table><tr><th></th><td>x</td></tr></table>", "empty-table-header"),
)
def accessible(page: Visit) -> list[str]:
    return page.axe


# The text lets the layout shift; parts that do not fit the narrow screen come before what is hidden.
BAD = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>T</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"></head>
<body style="font-size:16px"><main><h1>T</h1><p>{"Text. " * 200}</p>
{"".join(part for _, part, _ in VISIT.bad)}</main></body></html>"""
