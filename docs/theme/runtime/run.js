/* The buttons of the blocks that run in the page: all that a first visit reads. See block.js. */
if (!document.querySelector(".md-code__nav")) {
  await new Promise((there) => addEventListener("DOMContentLoaded", there)); // then book.js has made them
}

export const chinese = document.documentElement.lang.startsWith("zh");
export const config = JSON.parse(document.querySelector("#run-config").textContent);
const words = chinese
  ? { run: "运行", edit: "修改", reset: "还原", once: "首次要加载", needs: "浏览器里没有 PyTorch，", home: "可在自己的电脑上运行" }
  : { run: "Run", edit: "Change", reset: "Reset", once: "loads once:", needs: "No browser has PyTorch: ", home: "run it at home" };

export const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/* Each block by its number. */
export const blocks = new Map();

/* What the reader has made of a block: kept for as long as the book has the same code there. */
export const key = (block) => `posenc${location.pathname}#${block.number}`;
export function kept(block) {
  try {
    const { of, code } = JSON.parse(localStorage.getItem(key(block)) ?? "{}");
    return of === block.original ? code : undefined;
  } catch {
    return undefined; // a reader who lets nothing be stored
  }
}

const act = (block, action) => import("./block.js").then((module) => module[action](block));

function button(block, action) {
  const it = document.createElement("button");
  it.className = `md-code__button run-${action}`;
  it.type = "button";
  it.title = words[action];
  it.append(Object.assign(document.createElement("span"), { textContent: words[action] }));
  it.addEventListener("click", () => act(block, action));
  return it;
}

/* What there is: a Python that another page has started holds locks (worker.js). */
export const loaded = new Set();
const worker = `${new URL("worker.js", import.meta.url)} `;
for (const { name } of (await navigator.locks?.query().catch(() => {}))?.held ?? []) {
  if (name.startsWith(worker)) loaded.add(name.slice(worker.length));
}
if (loaded.size) import("./python.js").then(({ connect }) => connect());

/* The button says how much a click will load, until that is there. */
export function name(block) {
  const { run } = block.buttons;
  const parts = ["numpy", ...block.needs.split(" ")].filter((part) => !loaded.has(part));
  const loads = [...new Set(parts)].reduce((sum, part) => sum + config.bytes[part], 0);
  run.title = loads ? `${words.run}${chinese ? "，" : ", "}${words.once} ${megabytes(loads)}` : words.run;
  run.firstChild.textContent = loads ? `${words.run} · ${megabytes(loads)}` : words.run;
}

for (const box of document.querySelectorAll(".highlight[data-needs]")) {
  const said = Object.assign(document.createElement("span"), { className: "run-needs", textContent: words.needs });
  const href = new URL("../index.html#at-home", import.meta.url);
  said.append(Object.assign(document.createElement("a"), { href, textContent: words.home }));
  box.querySelector("nav").prepend(said);
}
for (const box of document.querySelectorAll(".highlight[data-run]")) {
  const code = box.querySelector("pre > code");
  const { run: needs, block: number, after } = box.dataset;
  const block = { box, code, number, after, needs, original: code.textContent.replace(/\n$/, "") };
  block.buttons = Object.fromEntries(["run", "edit", "reset"].map((action) => [action, button(block, action)]));
  block.buttons.reset.hidden = true;
  box.querySelector("nav").prepend(...Object.values(block.buttons));
  blocks.set(number, block);
  name(block);
}
for (const block of blocks.values()) if (kept(block) !== undefined) act(block, "restore");
