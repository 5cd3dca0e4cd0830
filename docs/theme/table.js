/* Tables of answers (figure.table): sorted by their heads, filtered where a column has few answers. They are
   complete without this.

   What is chosen stands in the address, in both languages alike: ?shift=yes&back=64#table, the rows whose column
   #column-shift says yes and whose #column-back is at least 64. A link with such an address on the same page chooses it.
   A head that is a link to the row of a question, or to where that row leads, has that question as its tooltip. On a phone each row is a card, and the
   name of each answer leads there. */
const words = document.documentElement.lang.startsWith("zh")
  ? {
      all: "不限",
      reset: "全部显示",
      sort: (head) => `按“${head}”排序`,
      least: (number) => `至少 ${number}`,
      count: (shown, all) => `显示 ${shown} 行，共 ${all} 行`,
      answers: {
        "是": "yes", "否": "no", "按偏移": "offsets", "输入": "code", "查询和键": "turn", "分数": "score", "掩码": "mask",
        "线": "line", "网格": "grid", "时间": "time", "图": "graph", "对": "true", "有条件": "only if", "错": "false",
        "公式": "formula", "代码": "code", "精度": "precision", "顺序": "order", "输入的数": "input", "远近": "reach",
        "注意力": "attention", "长度": "length", "填充": "padding", "运行": "running",
      },
    }
  : {
      all: "all",
      reset: "Show all",
      sort: (head) => `sort by ${head}`,
      least: (number) => `at least ${number}`,
      count: (shown, all) => `${shown} of ${all} rows shown`,
      answers: { "by offset": "offsets", "q and k": "turn" },
    };
const FEW = { numbers: 8, words: 10 };
const make = (name, properties, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
const text = (row, column) => row.cells[column].textContent.trim();
// "12,345", "< 0.01 %", "−98 %", and "40 → 256" by its 40
const number = (answer) => parseFloat(answer.replace(/[,<]/g, "").replace("−", "-"));
// numbers, then words; whatever the direction, last what has no answer
const compare = (a, b, sign) => {
  if (a === "–" || b === "–") return (a === "–") - (b === "–");
  const [x, y] = [number(a), number(b)];
  if (isNaN(x) && isNaN(y)) return sign * a.localeCompare(b);
  return sign * (isNaN(x) - isNaN(y) || x - y);
};

// The row of a question: what a link leads to stands in it, or it is explained elsewhere and leads there, too.
const rowOf = (hash) =>
  document.querySelector(hash)?.closest("tr") ??
  document.querySelector(`td:first-child > a[href$="${hash}"]:not(figure.table *)`)?.closest("tr");

for (const figure of document.querySelectorAll("figure.table")) {
  const [heads, body] = [[...figure.querySelectorAll("thead th")], figure.querySelector("tbody")];
  const rows = [...body.rows];

  const named = heads.map((head) => head.textContent.trim());
  heads.forEach((head, column) => {
    const link = head.querySelector("a");
    const asked = link && rowOf(link.hash)?.cells[1];
    if (asked) link.title = asked.textContent.trim();
    for (const { cells } of rows) {
      // By keyboard the heads lead there: a card's links would be hundreds of stops.
      const label = link && make("a", { href: link.href, title: link.title, ariaLabel: named[column], tabIndex: -1 });
      if (label) cells[column].prepend(label);
      (label ?? cells[column]).dataset.head = named[column];
    }
    const button = make("button", { type: "button", title: words.sort(named[column]) }, ...(link ? [] : head.childNodes));
    button.setAttribute("aria-label", words.sort(named[column]));
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows.toSorted((a, b) => compare(text(a, column), text(b, column), down ? -1 : 1)));
    });
    head.append(button);
  });

  const count = make("output");
  const filters = heads.flatMap((head, column) => {
    const answers = [...new Set(rows.map((row) => text(row, column)))];
    const numbers = [...new Set(answers.map(number).filter((found) => !isNaN(found)))].sort((a, b) => a - b);
    const counts = answers.every((answer) => answer === "–" || !isNaN(number(answer))) && !answers.join().includes("%");
    if (!column || answers.length < 2 || (counts ? numbers.length > FEW.numbers : numbers.length || answers.length > FEW.words))
      return [];
    const options = counts
      ? numbers.slice(1).map((least) => new Option(words.least(least), least))
      : answers.map((answer) => new Option(answer, words.answers[answer] ?? answer));
    const select = make("select", {}, new Option(words.all, ""), ...options);
    const fits = (answer) => (counts ? number(answer) >= select.value : (words.answers[answer] ?? answer) === select.value);
    const key = head.querySelector("[id^=column-]")?.id.slice("column-".length);
    return [{ column, select, fits, key, label: make("label", {}, named[column], select) }];
  });
  const form = make("form", {}, ...filters.map(({ label }) => label));
  form.append(make("button", { type: "reset" }, words.reset), count);
  const filter = () => {
    for (const row of rows) {
      row.hidden = filters.some(({ column, select, fits }) => select.value && !fits(text(row, column)));
    }
    count.value = words.count(rows.filter((row) => !row.hidden).length, rows.length);
  };
  const chosen = (search) => {
    const address = new URLSearchParams(search);
    for (const { key, select } of filters) {
      select.value = address.get(key) ?? "";
      if (select.selectedIndex < 0) select.value = ""; // it is no answer of this table
    }
    filter();
  };
  const remember = () => {
    filter();
    const taken = filters.filter(({ key, select }) => key && select.value).map(({ key, select }) => [key, select.value]);
    const search = String(new URLSearchParams(taken));
    history.replaceState(history.state, "", (search ? `?${search}` : location.pathname) + location.hash);
  };
  form.addEventListener("change", remember);
  form.addEventListener("reset", () => setTimeout(remember));
  chosen(location.search);
  addEventListener("popstate", () => chosen(location.search));
  addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("a[href*='?']");
    if (!link || link.pathname !== location.pathname || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    history.pushState(null, "", link.search + link.hash);
    chosen(link.search);
    figure.scrollIntoView();
  });
  figure.prepend(form);
  figure.classList.add("on");

  // A link to a row that is hidden shows it.
  addEventListener("hashchange", () => {
    const row = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest("tr");
    if (!row?.hidden || !figure.contains(row)) return;
    chosen("");
    row.scrollIntoView({ block: "center" });
  });
}
