/* The buttons of the blocks of code that run in the page. This much is read at a first visit; what a click
   starts is in block.js, how code is run in python.js, and Python itself is fetched when it is first needed.

   The build marks each block: data-run is what it takes, "numpy" or "matplotlib"; data-block its number on the
   page and data-after the number of the one that it continues; data-needs what a browser does not have. */
if (!document.querySelector(".md-code__nav")) {
  await new Promise((there) => addEventListener("DOMContentLoaded", there)); // then book.js has made them
}

export const chinese = document.documentElement.lang.startsWith("zh");
export const config = JSON.parse(document.querySelector("#run-config").textContent);
const words = chinese
  ? { run: "运行", edit: "修改", reset: "还原", once: "首次要加载", needs: "需要" }
  : { run: "Run", edit: "Change", reset: "Reset", once: "loads once:", needs: "needs" };

export const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/* Each block by its number: its box, its code as the page has it, its buttons, its place in the reader's store. */
export const blocks = new Map();

/* What the reader has made of a block: kept for as long as the book has the same code there. */
export const kept = {
  key: (block) => `posenc${location.pathname}#${block.number}`,
  get(block) {
    try {
      const { of, code } = JSON.parse(localStorage.getItem(kept.key(block)) ?? "{}");
      return of === block.original ? code : undefined;
    } catch {
      return undefined; // a reader who lets nothing be stored
    }
  },
  set(block, code) {
    try {
      if (code === undefined) localStorage.removeItem(kept.key(block));
      else localStorage.setItem(kept.key(block), JSON.stringify({ of: block.original, code }));
    } catch {
      // as above, or the store is full
    }
  },
};

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

/* The button says how much a click will load, until that is there. */
export const loaded = new Set();
export function name(block) {
  const { run } = block.buttons;
  const parts = block.needs === "matplotlib" ? ["numpy", "matplotlib"] : ["numpy"];
  const loads = parts.filter((part) => !loaded.has(part)).reduce((sum, part) => sum + config.bytes[part], 0);
  run.title = loads ? `${words.run}${chinese ? "，" : ", "}${words.once} ${megabytes(loads)}` : words.run;
  run.firstChild.textContent = loads ? `${words.run} · ${megabytes(loads)}` : words.run;
}

for (const box of document.querySelectorAll(".highlight[data-needs]")) {
  const library = { torch: "PyTorch", scipy: "SciPy" }[box.dataset.needs];
  const said = document.createElement("span");
  said.className = "run-needs";
  said.textContent = `${words.needs} ${library}`;
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
for (const block of blocks.values()) if (kept.get(block) !== undefined) act(block, "restore");
