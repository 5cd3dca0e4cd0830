/* What a block that runs shows: its code to be changed, what it prints and draws, how far it is. Its buttons come from
   run.js, a click fetches this, which has code run by python.js, and Python itself is fetched when it is first needed.

   The build marks each block: data-run is what it takes, "numpy", or "matplotlib" and "scipy" beside it; data-block
   its number on the page and data-after the number of the one that it continues; data-needs what a browser lacks. */
import { blocks, chinese, kept, key, loaded, megabytes, name } from "./run.js";
import { runBlock } from "./python.js";

await new Promise((loaded) => {
  const link = document.createElement("link");
  const href = new URL("block.css", import.meta.url);
  document.head.append(Object.assign(link, { rel: "stylesheet", href, onload: loaded, onerror: loaded }));
});

const kB = (count) => (count < 1e6 ? `${Math.ceil(count / 1000)} kB` : megabytes(count));
const took = (ms) =>
  ms < 1000 ? `${Math.round(ms)} ${chinese ? "毫秒" : "ms"}` : `${(ms / 1000).toFixed(1)} ${chinese ? "秒" : "s"}`;
const words = chinese
  ? {
      run: "运行",
      stop: "停止",
      code: "代码，Ctrl+Enter 运行",
      figure: "这段代码画出的图",
      waiting: "等另一段代码运行完……",
      busy: "Python 还在忙，可能在运行另一页的代码……",
      alone: "Python 一直在忙，为这一页另外启动一个……",
      again: "Python 先前因一段停不下来的代码被关掉，现在重新启动……",
      restarted: "Python 先前因一段停不下来的代码被关掉，这次重新启动过。",
      asked: "正在找 Python……",
      steps: {
        numpy: { load: "加载 Python", start: "启动 Python", numpy: "导入 NumPy", posenc: "导入 posenc" },
        matplotlib: { load: "加载 Matplotlib", import: "导入 Matplotlib" },
        scipy: { load: "加载 SciPy", import: "导入 SciPy" },
      },
      bytes: (loaded, total) => `${megabytes(loaded)}，共 ${megabytes(total)}`,
      seconds: (count) => `${count} 秒`,
      running: "正在运行……",
      changed: "已修改，尚未运行。",
      stopped: "已停止。",
      done: (ms) => `用时 ${took(ms)}。`,
      same: (ms) => `用时 ${took(ms)}，输出与书中一致。`,
      other: (ms) => `用时 ${took(ms)}，输出与书中不同。`,
      silent: (ms) => `用时 ${took(ms)}，没有输出。`,
      error: (line) => (line ? `第 ${line} 行出错。` : "出错了。"),
      before: (line) => `本段接续前文，前文代码第 ${line} 行出错。`,
      line: (line) => `第 ${line} 行：`,
      loading: "Python 没有加载成功，可以再试一次。",
      fatal: "Python 崩溃了，可以再试一次。",
      table: "打印出的表",
      cut: (shown, more) => `只显示前 ${kB(shown)} 输出，其余 ${kB(more)} 略去。`,
    }
  : {
      run: "Run",
      stop: "Stop",
      code: "Code, Ctrl+Enter runs it",
      figure: "The figure that this code draws",
      waiting: "Waiting for another block …",
      busy: "Python is busy, maybe with a block on another page …",
      alone: "Python stays busy: this page starts one of its own …",
      again: "Python was ended by a block that would not stop, and starts again …",
      restarted: " Python had been ended by a block that would not stop, and was started again.",
      asked: "Asking for Python …",
      steps: {
        numpy: { load: "Loading Python", start: "Starting Python", numpy: "Importing NumPy", posenc: "Importing posenc" },
        matplotlib: { load: "Loading Matplotlib", import: "Importing Matplotlib" },
        scipy: { load: "Loading SciPy", import: "Importing SciPy" },
      },
      bytes: (loaded, total) => `${megabytes(loaded)} of ${megabytes(total)}`,
      seconds: (count) => `${count} s`,
      running: "Running …",
      changed: "Changed, not run yet.",
      stopped: "Stopped.",
      done: (ms) => `Ran in ${took(ms)}.`,
      same: (ms) => `Ran in ${took(ms)}, with the output of the book.`,
      other: (ms) => `Ran in ${took(ms)}, with another output than the book's.`,
      silent: (ms) => `Ran in ${took(ms)}, without output.`,
      error: (line) => (line ? `An error in line ${line}.` : "An error."),
      before: (line) => `An error in line ${line} of an earlier block, which this one continues.`,
      line: (line) => `Line ${line}: `,
      loading: "Python could not be loaded; you can try again.",
      fatal: "Python has broken down; you can try again.",
      table: "The table that it printed",
      cut: (shown, more) => `The first ${kB(shown)} are shown; ${kB(more)} more were printed.`,
    };

const made = (kind, className, more = {}) => Object.assign(document.createElement(kind), { className, ...more });
const codeOf = (block) => (block.area ? block.area.value : block.original);
const changed = (block) => codeOf(block) !== block.original;

/* --- Changing ---------------------------------------------------------------------------------------------
   A text area lies over the code and shows nothing but the caret; what is typed is shown by the code beneath,
   in its colours. So it looks as it did, and is as wide and as high as it has to be. */
const KINDS = {
  comment: /#.*/,
  string: /[rbfuRBFU]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)/,
  keyword: RegExp(`\\b(?:${
    "False None True and as assert async await break class continue def del elif else except finally for from " +
    "global if import in is lambda nonlocal not or pass raise return try while with yield"
  })\\b`.replaceAll(" ", "|")),
  number: /\b\d[\w.]*/,
};
const named = Object.entries(KINDS).map(([kind, { source }]) => `(?<${kind}>${source})`);
const TOKEN = RegExp(named.join("|"), "g");
const colours = {};
for (const kind of window.Highlight ? [...Object.keys(KINDS), "fault"] : []) {
  CSS.highlights.set(`run-${kind}`, (colours[kind] = new Highlight()));
}

function coloured(block) {
  for (const [kind, range] of block.tokens ?? []) colours[kind].delete(range);
  block.tokens = [];
  const text = block.code.firstChild;
  if (!window.Highlight || !block.area) return;
  for (const { index, groups, 0: token } of text.data.matchAll(TOKEN)) {
    const kind = Object.keys(groups).find((each) => groups[each] !== undefined);
    block.tokens.push([kind, range(block.code, index, index + token.length)]);
  }
  for (const [kind, found] of block.tokens) colours[kind].add(found);
}

/* The characters from `start` to `end` of what an element holds. */
function range(element, start, end) {
  const found = new Range();
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let at = 0, node; (node = walker.nextNode()); at += node.length) {
    if (at <= start && start <= at + node.length) found.setStart(node, start - at);
    if (at < end && end <= at + node.length) found.setEnd(node, end - at);
  }
  return found;
}

function opened(block, code) {
  if (block.area) return;
  block.nodes = [...block.code.childNodes];
  block.area = made("textarea", "run-area", { value: code, wrap: "off", spellcheck: false, autocomplete: "off" });
  block.area.setAttribute("autocapitalize", "off");
  block.area.setAttribute("aria-label", words.code);
  block.area.addEventListener("input", () => typed(block));
  block.area.addEventListener("scroll", () => (block.code.scrollLeft = block.area.scrollLeft));
  block.area.addEventListener("beforeinput", indent);
  block.area.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey || event.shiftKey)) return;
    event.preventDefault();
    if (!block.running) run(block);
  });
  block.code.setAttribute("aria-hidden", "true");
  block.code.after(block.area);
  block.buttons.edit.hidden = true;
  block.buttons.reset.hidden = false;
  shown(block);
}

/* A new line begins where the one before it began, and further in after a colon. */
function indent(event) {
  if (event.inputType !== "insertLineBreak") return;
  const { value, selectionStart } = event.target;
  const line = value.slice(value.lastIndexOf("\n", selectionStart - 1) + 1, selectionStart);
  const blank = /^ */.exec(line)[0] + (/:\s*(#.*)?$/.test(line) ? "    " : "");
  if (!blank) return;
  event.preventDefault();
  document.execCommand("insertText", false, `\n${blank}`); // the one way that can be undone by the reader
}

function shown(block) {
  block.code.textContent = `${block.area.value}\n`;
  block.code.scrollLeft = block.area.scrollLeft;
  coloured(block);
}

function keep(block, code) {
  try {
    if (code === undefined) localStorage.removeItem(key(block));
    else localStorage.setItem(key(block), JSON.stringify({ of: block.original, code }));
  } catch {
    // a reader who lets nothing be stored, or the store is full
  }
}

function typed(block) {
  unmark(block);
  shown(block);
  keep(block, changed(block) ? block.area.value : undefined);
  if (!block.running) say(block, changed(block) || block.panel ? words.changed : "");
}

export function edit(block) {
  opened(block, block.original);
  block.area.setSelectionRange(0, 0);
  block.area.focus({ preventScroll: true });
}

/* What the reader had made of the block before the page was loaded anew. */
export function restore(block) {
  opened(block, kept(block));
  say(block, words.changed);
}

export function reset(block) {
  block.running?.abort("reset");
  unmark(block);
  keep(block, undefined);
  if (block.area) {
    block.area.remove();
    block.area = null;
    coloured(block);
    block.code.replaceChildren(...block.nodes);
    block.code.removeAttribute("aria-hidden");
  }
  block.panel?.remove();
  block.panel = null;
  for (const each of printed(block)) each.hidden = false;
  say(block, "");
  block.buttons.edit.hidden = false;
  block.buttons.run.focus({ preventScroll: true });
  block.buttons.reset.hidden = true;
}

/* --- Running ----------------------------------------------------------------------------------------------*/

/* What the page itself shows of a block: its output and its drawing. */
function printed(block) {
  const found = [];
  let next = block.box.nextElementSibling;
  for (; next?.matches(".output, figure, .live"); next = next.nextElementSibling) found.push(next);
  return found.filter((each) => each !== block.panel);
}

const chain = (block) => (block.after ? [...chain(blocks.get(block.after)), block] : [block]);

export async function run(block) {
  if (block.running) return block.running.abort();
  const pieces = chain(block).map((each) => ({ code: codeOf(each), name: each.number }));
  const plan = new Plan(block); // of what comes before it runs
  const { signal } = (block.running = new AbortController());
  const results = new Results(block, changed(block));
  unmark(block);
  busy(block, true);
  const result = await runBlock(pieces.at(-1).code, {
    name: block.number,
    before: pieces.slice(0, -1),
    needs: block.needs,
    signal,
    on(what, value) {
      if (what === "output") results.print(value);
      else if (what === "figure") results.draw(value);
      else if (what === "loading") plan.loads(value);
      else if (what === "step") plan.comes(value.what, value.step);
      else plan.says(what);
    },
  });
  block.running = null;
  plan.over();
  busy(block, false);
  if (!signal.aborted && !result.error?.loading) arrived(plan.parts);
  if (signal.reason === "reset") return;
  results.end(result);
  if (plan.note) block.bar.said.append(plan.note);
}

/* What is printed as a table of Markdown, as the book shows it; null where it is none. */
function tableOf(text) {
  const rows = text.trimEnd().split("\n");
  if (rows.length < 3 || !rows.every((row) => row.startsWith("| ") && row.endsWith(" |"))) return null;
  const table = made("table", "answers");
  for (const [at, row] of rows.entries()) {
    if (at === 1) continue; // the line under the head
    const line = (at ? (table.tBodies[0] ?? table.createTBody()) : table.createTHead()).insertRow();
    for (const [column, cell] of row.slice(2, -2).split(" | ").entries()) {
      const kind = at && column ? "td" : "th";
      line.append(made(kind, "", kind === "th" ? { scope: at ? "row" : "col" } : {}));
      line.lastChild.append(...cell.replace(/\{#[\w-]+\}/g, "").split(/(`[^`]+`|\[[^\]]+\]\([^)]*\))/).map(inlineOf));
    }
  }
  return table;
}

function inlineOf(text) {
  if (text.length > 2 && text.startsWith("`")) return made("code", "", { textContent: text.slice(1, -1) });
  const [, shown, to] = text.match(/^\[(.+)\]\((.*)\)$/) ?? [];
  return shown ? made("a", "", { href: to.replace(/\.md\b/, ".html"), textContent: shown }) : text;
}

/* What the rows of a table say, in whatever order they stand. */
const saysOf = (table) =>
  [...table.querySelectorAll("tbody tr")].map((row) => row.textContent.replace(/\s/g, "")).sort().join();

/* The panel under a block: it takes the place of what the page shows there, as soon as there is something new. A figure
   that moves stays, and the panel comes under it. */
class Results {
  constructor(block, edited) {
    Object.assign(this, { block, edited, fresh: false, figures: 0 });
  }

  begin() {
    if (this.fresh) return;
    this.fresh = true;
    const { block } = this;
    const theirs = printed(block);
    block.panel?.remove();
    block.panel = made("div", "output run-output");
    const moving = theirs.find((each) => each.matches(".live.on"));
    (moving ?? block.box).after(block.panel);
    this.table = theirs.find((each) => each.matches("figure.table"));
    this.code = theirs.find((each) => each.matches(".output"))?.querySelector("code");
    this.text = this.code?.textContent.trimEnd();
    this.plots = theirs.filter((each) => each.matches("figure.plot, .live"));
    for (const each of theirs) each.hidden = each !== moving;
    block.buttons.reset.hidden = false;
  }

  box(className = "") {
    this.begin();
    const box = made("div", `highlight ${className}`);
    const code = made("code", "");
    box.append(document.createElement("pre"));
    box.firstChild.append(code);
    this.block.panel.append(box);
    return code;
  }

  print(text) {
    this.output ??= this.box();
    this.output.append(text);
  }

  draw(svg) {
    this.begin();
    const figure = made("figure", "plot", { innerHTML: svg });
    const drawing = figure.querySelector("svg");
    drawing.setAttribute("role", "img");
    const caption = !this.edited && this.plots[this.figures++]?.querySelector("figcaption")?.cloneNode(true);
    if (caption) {
      caption.querySelector(".live-caption")?.remove(); // it is not of what the code draws
      figure.append(caption);
    }
    drawing.setAttribute("aria-label", caption ? caption.textContent : words.figure);
    this.block.panel.append(figure);
  }

  tabled(table) {
    const region = made("div", "", { role: "region", tabIndex: 0, ariaLabel: words.table });
    const figure = made("figure", "table");
    region.append(table);
    figure.append(region);
    this.output.closest(".highlight").replaceWith(figure);
  }

  end({ output, cut, error, ms, figures }) {
    const { block } = this;
    if (error?.stopped) return say(block, words.stopped);
    if (error?.loading || error?.fatal) return say(block, error.loading ? words.loading : words.fatal, error.text);
    this.begin();
    if (cut) block.panel.append(made("p", "run-cut", { textContent: words.cut(output.length, cut) }));
    if (error) {
      const { line, text } = error;
      const owner = blocks.get(error.name) ?? block;
      const source = line && codeOf(owner).split("\n")[line - 1];
      const place = source?.trim() ? `${words.line(line)}${source.trim()}\n` : "";
      this.box("run-error").append(place + text.trim());
      if (line) mark(owner, line);
      return say(block, (owner === block ? words.error : words.before)(line));
    }
    const table = this.table && tableOf(output);
    if (table) this.tabled(table);
    const held = (this.text !== undefined || this.table) && !this.edited;
    if (!block.panel.hasChildNodes()) block.panel.hidden = true;
    const same = table ? saysOf(table) === saysOf(this.table) : this.text?.endsWith(output.trimEnd());
    const padded = this.code?.querySelector(".wide") && this.text === output.trimEnd(); // press/columns.py
    if (padded) this.output.replaceChildren(...this.code.cloneNode(true).childNodes);
    if (held) say(block, (same && output ? words.same : words.other)(ms));
    else say(block, (output || figures.length ? words.done : words.silent)(ms));
  }
}

/* The line that has an error. */
function mark(block, line) {
  const lines = block.code.textContent.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1);
  block.fault = range(block.code, start, start + Math.max(lines[line - 1]?.length ?? 0, 1));
  colours.fault?.add(block.fault);
}

function unmark(block) {
  for (const each of chain(block)) if (each.fault) colours.fault?.delete(each.fault);
}

/* The line under the code: what is going on. A screen reader hears it; the bytes that come in it does not. */
function say(block, text, title = "") {
  if (!text) {
    block.bar?.remove();
    block.bar = null;
    return;
  }
  block.bar ??= block.box.appendChild(made("div", "run-bar"));
  block.bar.said ??= block.bar.appendChild(made("span", "", { role: "status" }));
  block.bar.title = title;
  if (block.bar.said.textContent !== text) block.bar.said.textContent = text;
}

/* What is done before a block runs, step by step, where its button was: which step of how many, what it is, and how
   much of it has come, or how long it has taken. Nothing of it stands still. */
class Plan {
  constructor(block) {
    this.block = block;
    this.parts = new Set(["numpy", ...block.needs.split(" ")]); // that are there, when it has run
    this.steps = [...this.parts].flatMap((part) => (loaded.has(part) ? [] : stepsOf(part)));
  }

  says(what) {
    if (what === "again") this.note = words.restarted;
    this.begin(words[what]);
  }

  comes(part, step) {
    const key = `${part} ${step}`;
    if (this.key === key) return;
    this.parts.add(part);
    if (!this.steps.includes(key)) this.steps.push(...stepsOf(part)); // the code takes what its block did not
    this.begin(`${this.steps.indexOf(key) + 1}/${this.steps.length} ${words.steps[part][step]}`);
    this.key = key;
  }

  loads({ what, loaded: bytes, total }) {
    this.comes(what, "load");
    clearInterval(this.clock); // the bytes are counted instead
    Object.assign(this.bar, { max: total, value: bytes });
    this.text.textContent = words.bytes(bytes, total);
  }

  begin(text) {
    const { block } = this;
    this.over();
    say(block, text);
    this.label = block.bar.appendChild(made("label", ""));
    [this.text, this.bar] = [made("span", ""), made("progress", "")];
    this.bar.setAttribute("aria-label", text);
    this.label.append(this.text, this.bar);
    const began = performance.now();
    const shown = () => (this.text.textContent = words.seconds(Math.round((performance.now() - began) / 1000)));
    this.clock = setInterval(shown, 1000);
  }

  over() {
    clearInterval(this.clock);
    this.label?.remove();
    this.key = "";
  }
}

const stepsOf = (part) => Object.keys(words.steps[part]).map((step) => `${part} ${step}`);

function busy(block, is) {
  const { run } = block.buttons;
  run.classList.toggle("run-stop", is);
  block.box.classList.toggle("run-busy", is);
  if (!is) return name(block);
  run.title = run.firstChild.textContent = words.stop;
  say(block, words.asked);
}

function arrived(parts) {
  for (const part of parts) loaded.add(part);
  for (const block of blocks.values()) if (!block.running) name(block);
}
