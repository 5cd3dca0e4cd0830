/* What the book adds to Material in the browser. It is loaded before Material's own script. */
(() => {
  "use strict";
  const fromDisk = location.protocol === "file:";
  const words = document.querySelector("#book-words").dataset;

  /* --- Search ---------------------------------------------------------------------------------------------
     The index is the heaviest file of the book, and most visits search nothing: it is fetched when the reader
     turns to the search. From disk Material takes it from a script instead. */
  const nearSearch = new Promise((turned) => {
    const look = (event) => {
      const target = event.target instanceof Element ? event.target : null;
      const key = event.type === "keydown" && ["f", "s", "/"].includes(event.key);
      if (key || target?.closest("[data-md-component=search], [for=__search], #__search")) turned();
    };
    for (const type of ["focusin", "pointerdown", "keydown", "change"]) addEventListener(type, look, true);
    if (new URLSearchParams(location.search).has("q")) turned();
  });
  const { open, send } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    this.waits = /\/search_index\.json$/.test(url);
    return open.call(this, method, url, ...rest);
  };
  XMLHttpRequest.prototype.send = function (...body) {
    if (this.waits) nearSearch.then(() => send.apply(this, body));
    else send.apply(this, body);
  };

  /* So is the worker that looks things up in it. */
  if (!fromDisk) {
    const { Worker } = window;
    window.Worker = function (url, options) {
      if (!/\/workers\/search\.[^/]*$/.test(url)) return new Worker(url, options);
      const search = new EventTarget();
      const started = nearSearch.then(() => {
        const worker = new Worker(url, options);
        worker.onmessage = ({ data }) => search.dispatchEvent(new MessageEvent("message", { data }));
        return worker;
      });
      search.postMessage = (data) => started.then((worker) => worker.postMessage(data));
      return search;
    };
  }

  /* Material listens to keys only: text that is pasted, dictated or filled in would find nothing. */
  addEventListener("input", (event) => {
    if (event.target.matches?.(".md-search__input")) event.target.dispatchEvent(new KeyboardEvent("keyup"));
  });

  /* Where this book has nothing, the other one may: pages that are looked up by that word, and its search. Material's
     Enter takes the first link that has a score. */
  nearSearch.then(() => {
    const root = new URL(`${JSON.parse(document.querySelector("#__config").textContent).base}/`, location);
    const box = document.querySelector(".md-search-result");
    const pointer = Object.assign(document.createElement("p"), { className: "book-elsewhere", hidden: true });
    const link = (address, text, lang = "") => {
      const made = Object.assign(document.createElement("a"), { href: address, lang });
      const shown = Object.assign(document.createElement("span"), { textContent: text });
      shown.dataset.mdScore = 0;
      made.append(shown);
      return made;
    };
    const point = ({ book, pages }) => {
      const asked = document.querySelector(".md-search__input").value.trim().toLowerCase();
      const other = new URL(`../${book}/`, root);
      const shared = (a, b) => (a.length > 1 && b.includes(a) ? a.length / b.length : 0);
      const near = (word) => Math.max(shared(word, asked), shared(asked, word));
      const found = pages
        .map(([page, ...names]) => [Math.max(...names.map((name) => near(name.toLowerCase()))), page, names[0]])
        .filter(([share]) => share)
        .sort(([a], [b]) => b - a)
        .slice(0, 2);
      const theirs = book === "zh" ? /[\u3400-\u9fff]/ : /[a-z]/;
      pointer.hidden = !asked || box.lastElementChild.childElementCount > 0 || !(found.length || theirs.test(asked));
      if (pointer.hidden) return;
      const all = link(new URL(`index.html?q=${encodeURIComponent(asked)}`, other), words.elsewhereAll.replace("{}", asked));
      pointer.replaceChildren(words.elsewhere, ...found.map(([, page, title]) => link(new URL(page, other), title, book)), all);
    };
    box.lastElementChild.before(pointer);
    const load = Object.assign(document.createElement("script"), { src: new URL("search/elsewhere.js", root) });
    load.addEventListener("load", () => {
      const look = () => point(window.__elsewhere);
      new MutationObserver(look).observe(box.firstElementChild, { childList: true, characterData: true, subtree: true });
      new MutationObserver(look).observe(box.lastElementChild, { childList: true });
      look();
    });
    document.head.append(load);
  });

  /* A page from disk may start no worker: the search runs in a frame of its own that stands in for one. */
  if (fromDisk) {
    window.IFrameWorker = window.Worker = class extends EventTarget {
      constructor(url) {
        super();
        const frame = document.body.appendChild(document.createElement("iframe"));
        frame.hidden = true;
        frame.title = "search";
        const scope = frame.contentWindow;
        scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        scope.importScripts = async (...urls) => {
          for (const each of urls) await load(each);
        };
        const load = (src) =>
          new Promise((resolve, reject) => {
            const script = scope.document.createElement("script");
            Object.assign(script, { src: new URL(src, location), onload: resolve, onerror: reject, async: false });
            scope.document.body.append(script);
          });
        this.scope = scope;
        this.ready = load(url);
      }

      postMessage(data) {
        this.ready.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
      }
    };
  }

  /* --- Copying --------------------------------------------------------------------------------------------
     A block that continues another is copied together with it, a command without its prompt and its output.
     All buttons come at once: Material would measure the page after each. */
  document.querySelectorAll(".highlight > pre:not(.no-copy *)").forEach((block, number) => {
    const nav = document.createElement("nav");
    const button = document.createElement("button");
    nav.className = "md-code__nav";
    button.className = "md-code__button";
    button.title = words.copy;
    button.dataset.mdType = "copy";
    button.dataset.clipboardTarget = `#__block_${number}`; // Material gives its own id to the block
    block.querySelector("code").id = `__block_${number}`;
    nav.append(button);
    block.prepend(nav);
  });
  const program = (code) => {
    const blocks = [...document.querySelectorAll(".language-python.highlight pre > code")];
    const parts = [];
    for (let at = blocks.indexOf(code); at >= 0; at--) {
      parts.unshift(blocks[at].textContent.trimEnd()); // also of a folded answer, which has no visible text
      if (!blocks[at].closest(".continued")) break;
    }
    return parts.join("\n\n") + "\n";
  };
  const command = (code) => {
    const copy = code.cloneNode(true);
    for (const silent of copy.querySelectorAll(".gp, .go")) silent.remove();
    return copy.textContent.trim() + "\n";
  };
  addEventListener(
    "click",
    (event) => {
      const button = event.target instanceof Element && event.target.closest("[data-clipboard-target]");
      const code = button && document.querySelector(button.dataset.clipboardTarget);
      if (!code) return;
      const text = code.closest(".language-python") ? program(code) : code.closest(".language-console") && command(code);
      if (text) button.dataset.clipboardText = text;
    },
    true,
  );

  /* A formula is copied as TeX: whoever selects some of it gets all of it, between dollar signs. */
  addEventListener("copy", (event) => {
    const selection = getSelection();
    if (selection.isCollapsed) return;
    const formula = (node) => (node instanceof Element ? node : node.parentElement)?.closest("math");
    const range = selection.getRangeAt(0).cloneRange();
    const [first, last] = [formula(range.startContainer), formula(range.endContainer)];
    if (first) range.setStartBefore(first);
    if (last) range.setEndAfter(last);
    const copied = range.cloneContents();
    const formulas = copied.querySelectorAll("math");
    if (!formulas.length) return;
    for (const each of formulas) {
      const mark = each.getAttribute("display") === "block" ? "$$" : "$";
      const lines = (mark + each.querySelector("annotation").textContent + mark).split("\n");
      each.replaceWith(...lines.flatMap((line, number) => (number ? [document.createElement("br"), line] : [line])));
    }
    const box = document.body.appendChild(document.createElement("div"));
    box.style.cssText = "position:fixed;left:-9999px;white-space:normal";
    box.append(copied);
    event.clipboardData.setData("text/plain", box.innerText);
    box.remove();
    event.preventDefault();
  });

  /* --- Tables of answers -----------------------------------------------------------------------------------
     From disk a browser fetches no modules: there they stay as they are. */
  if (!fromDisk && document.querySelector("figure.table")) import("./table.js");

  /* --- The same place in the other book: the heading, or the state of a figure --------------------------------*/
  const twin = document.querySelector(".book-language");
  twin?.addEventListener("click", () => {
    [twin.search, twin.hash] = [location.search, location.hash];
  });

  /* --- Figures that move ----------------------------------------------------------------------------------
     From disk a browser fetches no modules: there the drawings stay as they are. */
  if (!fromDisk && document.querySelector(".live")) import("./live/index.js");

  /* --- Back to top ----------------------------------------------------------------------------------------
     It stands in a corner of the screen, and gives way to what can be pressed beneath it. */
  const top = document.querySelector(".md-top");
  const yields = () => {
    const box = top.getBoundingClientRect();
    const thirds = (from, to) => [from + 1, (from + to) / 2, to - 1];
    const under = (x, y) => document.elementsFromPoint(x, y).some((part) => part !== top && part.matches("button, input, select"));
    const covers = thirds(box.left, box.right).some((x) => thirds(box.top, box.bottom).some((y) => under(x, y)));
    top.classList.toggle("covers", covers && !top.matches(":focus-visible"));
  };
  if (top) addEventListener("scroll", () => requestAnimationFrame(yields), { passive: true });

  /* --- By keyboard and for screen readers -----------------------------------------------------------------
     Material opens its menu and its search by labels of hidden boxes, which no key reaches: they become buttons.
     What scrolls sideways can be reached, too. */
  document.querySelector(".md-search")?.setAttribute("aria-label", words.search);
  for (const label of document.querySelectorAll("header label.md-header__button:is([for=__drawer], [for=__search])")) {
    const button = document.createElement("button");
    for (const { name, value } of label.attributes) button.setAttribute(name, value);
    const box = document.getElementById(label.htmlFor);
    button.setAttribute("aria-label", box.id === "__drawer" ? words.menu : words.search);
    button.append(...label.childNodes);
    button.addEventListener("click", () => box.click());
    label.replaceWith(button);
  }
  const scrolls = (box) => box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight + 1;
  const reach = (changes) => {
    const boxes = changes.map(({ target }) => [target, !target.ariaHidden && scrolls(target)]); // all looks first
    for (const [box, is] of boxes) {
      if (is === box.hasAttribute("tabindex")) continue;
      if (is) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  const reachable = new ResizeObserver(reach);
  const reached = new MutationObserver(reach); // Material takes it away again where there is no mouse
  const watched = new WeakSet();
  const look = () => {
    for (const nav of document.querySelectorAll(":is(.md-code__nav, .md-tags):not([role])")) nav.setAttribute("role", "none");
    for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .formula, pre > code")) {
      if (watched.has(box)) continue;
      watched.add(box);
      reachable.observe(box);
      reached.observe(box, { attributeFilter: ["tabindex", "aria-hidden"] });
    }
  };
  look();
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
})();
