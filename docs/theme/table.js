/* Tables of answers (figure.table): sorted by their heads, filtered where a column has few answers. They are
   complete without this. */
const words = document.documentElement.lang.startsWith("zh")
  ? { all: "不限", reset: "全部显示", count: (shown, all) => `显示 ${shown} 行，共 ${all} 行` }
  : { all: "all", reset: "Show all", count: (shown, all) => `${shown} of ${all} rows shown` };
const FEW = 6;
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

for (const figure of document.querySelectorAll("figure.table")) {
  const [heads, body] = [[...figure.querySelectorAll("thead th")], figure.querySelector("tbody")];
  const rows = [...body.rows];

  heads.forEach((head, column) => {
    const button = make("button", { type: "button" }, ...head.childNodes);
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
    if (!column || answers.length < 2 || answers.length > FEW || answers.some((answer) => !isNaN(number(answer)))) return [];
    const select = make("select", {}, new Option(words.all, ""), ...answers.map((answer) => new Option(answer)));
    return [{ column, select, label: make("label", {}, head.textContent, select) }];
  });
  const form = make("form", {}, ...filters.map(({ label }) => label));
  form.append(make("button", { type: "reset" }, words.reset), count);
  const filter = () => {
    for (const row of rows) {
      row.hidden = filters.some(({ column, select }) => select.value && select.value !== text(row, column));
    }
    count.value = words.count(rows.filter((row) => !row.hidden).length, rows.length);
  };
  form.addEventListener("change", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  filter();
  figure.prepend(form);

  // A link to a row that is hidden shows it.
  addEventListener("hashchange", () => {
    const row = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest("tr");
    if (!row?.hidden || !figure.contains(row)) return;
    form.reset();
    filter();
    row.scrollIntoView({ block: "center" });
  });
}
