/* One step of attention, number by number: each says what it is made of, and lights that up. */
import { BLUE, GREY, LiveFigure, ORANGE, set, shown } from "./figure.js";
import { attentionOutputs, attentionWeights, dot } from "./posenc.js";

// The numbers of the block on the page; a test reads them there.
const QUERIES = [[0, -2, -1, 0], [1, 1, 1, 1], [1, 1, -1, 1]];
const KEYS = [[2, 0, 0, 0], [1, -1, 0, 0], [2, 0, 2, 0]];
const VALUES = [[10, 0, 0, 0], [0, 10, 0, 0], [0, 0, 10, 0]];
const [TOKENS, PLACES] = [[0, 1, 2], [0, 1, 2, 3]];
const HAND = "k20"; // the number of a key that can be dragged
const PER_STEP = 12; // units of the drawing that it is dragged for one more

const [LEFT, COLUMN, CELL, HEIGHT] = [51.5, 98, 24, 20];
const TOP = { q: 21, k: 54, s: 87, e: 120, w: 153, v: 186, o: 219 };
/* A number's name has its row, then its token, then its place in a vector: k20, s2. Query and output are those of the
   chosen token and name none: q3, o0. */
const isAlone = (row) => "sew".includes(row);
const isOfQuery = (row) => "qo".includes(row);
const ROWS = Object.keys(TOP);
const NAMES = ROWS.flatMap((row) =>
  (isOfQuery(row) ? [""] : TOKENS).flatMap((u) => (isAlone(row) ? [""] : PLACES).map((j) => row + u + j)),
);

/** Row, token and place of a named number. */
function parts([row, ...rest], query) {
  const [u, j] = isOfQuery(row) ? [query, rest[0]] : rest;
  return [row, Number(u), Number(j ?? 0)];
}

/** As the page prints them: whole numbers without decimals, and a negative factor in brackets. */
const brief = (x, digits) => shown(x, Number.isInteger(x) ? 0 : digits);
const factor = (x, digits = 0) => (x < 0 ? `(${shown(x, digits)})` : shown(x, digits));

class AttentionStep extends LiveFigure {
  static box = [346, 246];
  static rows = 3;
  static controls = [
    { name: "key", min: -6, max: 6, value: 2 },
    { name: "at", value: "w2", options: NAMES },
    { name: "query", value: "1", options: TOKENS.map(String) },
  ];
  static words = {
    en: {
      drawing: "One step of attention: choose a number, and what it is made of lights up",
      caption: "One step of attention: what the chosen query takes from each token.",
      tokens: ["dog", "bites", "man"],
      key: "first number of man’s key",
      query: "query of",
      at: "look at",
      sum: "e^s / sum",
      rows: { q: "queries", k: "keys", s: "scores", e: "e^score", w: "weights", v: "values", o: "output" },
      named: {
        q: (_, j) => `query [${j}]`,
        k: (token, j) => `${token}: key [${j}]`,
        s: (token) => `${token}: score`,
        e: (token) => `${token}: e^score`,
        w: (token) => `${token}: weight`,
        v: (token, j) => `${token}: value [${j}]`,
        o: (_, j) => `output [${j}]`,
      },
      and: ", ",
      said: {
        q: (token, { own, keys }) => `A number of the query of “${token}”: ${own}. In each dot product it is multiplied by what the key has in the same place: ${keys}.`,
        k: (token, { own, times, query, product }) => `A number of the key of “${token}”: ${own}. The query has ${query} in the same place; together they add ${query}\u00a0×\u00a0${times} = ${product} to the dot product.`,
        s: (token, { sum, product, score }) => `Score of “${token}” = q · k / √d. Here q · k = ${sum} = ${product}, and ${product} / √4 = ${score}.`,
        e: (token, { score, power }) => `e to the score of “${token}”: e^${score} = ${power}. It is positive for every score, also for a negative one.`,
        w: (token, { power, powers, weight }) => `Weight of “${token}” = its e^score as a share of all three = ${power} / (${powers}) = ${weight}.`,
        v: (token, { own, weight, part }) => `A number of the value of “${token}”: ${own}. Times the weight of “${token}” it adds ${weight}\u00a0×\u00a0${own} = ${part} to the output.`,
        o: (token, { sum, output }) => `A number of the output of “${token}” = the sum of weights times values = ${sum} = ${output}.`,
      },
    },
    zh: {
      drawing: "一步注意力：选一个数，算它用到的数就亮起来",
      caption: "一步注意力：选中的查询从每个词元取多少。",
      tokens: ["狗", "咬", "人"],
      key: "“人”的键的第一个数",
      query: "谁的查询",
      at: "看哪个数",
      sum: "e^s / 总和",
      rows: { q: "查询", k: "键", s: "分数", e: "e^分数", w: "权重", v: "值", o: "输出" },
      named: {
        q: (_, j) => `查询 [${j}]`,
        k: (token, j) => `${token}：键 [${j}]`,
        s: (token) => `${token}：分数`,
        e: (token) => `${token}：e^分数`,
        w: (token) => `${token}：权重`,
        v: (token, j) => `${token}：值 [${j}]`,
        o: (_, j) => `输出 [${j}]`,
      },
      and: "、",
      said: {
        q: (token, { own, keys }) => `“${token}”的查询里的一个数：${own}。算点积时，它要和每个键同一位置上的数相乘，三个键在这里是 ${keys}。`,
        k: (token, { own, times, query, product }) => `“${token}”的键里的一个数：${own}。查询在同一位置上是 ${query}，给点积添上 ${query}\u00a0×\u00a0${times} = ${product}。`,
        s: (token, { sum, product, score }) => `“${token}”的分数 = q·k / √d。这里 q·k = ${sum} = ${product}，而 ${product} / √4 = ${score}。`,
        e: (token, { score, power }) => `“${token}”的分数取指数：e^${score} = ${power}。分数哪怕是负的，取指数以后也是正数。`,
        w: (token, { power, powers, weight }) => `“${token}”的权重 = 它取指数后的数在总和里占的比例 = ${power} / (${powers}) = ${weight}。`,
        v: (token, { own, weight, part }) => `“${token}”的值里的一个数：${own}。乘上“${token}”的权重，给输出添上 ${weight}\u00a0×\u00a0${own} = ${part}。`,
        o: (token, { sum, output }) => `“${token}”的输出里的一个数 = 各个权重乘以值，再加起来 = ${sum} = ${output}。`,
      },
    },
  };

  constructor() {
    super();
    for (const named of Object.values(this.constructor.words)) {
      for (const u of TOKENS) named[u] = named.tokens[u];
      for (const name of NAMES) {
        const [row, u, j] = parts(name);
        named[name] = named.named[row](named.tokens[u], j);
      }
    }
  }

  setup() {
    const { words } = this;
    const [menu] = this.inputs.at;
    for (const row of ROWS) {
      const group = Object.assign(document.createElement("optgroup"), { label: words.rows[row] });
      group.append(...[...menu.options].filter(({ value }) => value[0] === row));
      menu.append(group);
    }
    menu.parentElement.style.flexBasis = "100%"; // in every language the other choice goes with Reset
    this.heads = words.tokens.map((token, u) => this.label(LEFT + COLUMN * u + 2 * CELL, 13, token, { "font-size": 12 }));
    const formulas = { s: "q·k / √d", w: words.sum, o: "Σ w v" };
    this.cells = {};
    for (const row of ROWS) {
      const middle = TOP[row] + HEIGHT / 2 + 3.5;
      const side = { "text-anchor": "end" };
      this.raised(this.label(LEFT - 4, middle - (row in formulas ? 6 : 0), words.rows[row], { ...side, "font-weight": 600 }));
      if (row in formulas) this.raised(this.label(LEFT - 4, middle + 6, formulas[row], side));
      for (const u of row === "o" ? [0] : TOKENS) for (const j of isAlone(row) ? [0] : PLACES) this.cells[row + u + j] = this.cell(row, j);
    }
    this.hand = this.add("g", { transform: `translate(${LEFT + 2 * COLUMN + CELL / 2} ${TOP.k + HEIGHT / 2})` });
    this.grip(0, this.hand);
    const touched = this.add("rect", { x: LEFT, width: 3 * COLUMN - 2, height: 246, fill: "transparent" });
    this.onpick(touched, (x, y, from) => this.pressed(x, y, from));
    touched.addEventListener("pointermove", (event) => event.pointerType === "mouse" && !event.buttons && this.hover(event));
    touched.addEventListener("pointerleave", () => this.hover());
  }

  /** Raises what follows a ^, up to a space. */
  raised(label) {
    const [, base, power, rest] = label.textContent.match(/^(.*)\^(\S+)(.*)$/) ?? [];
    if (!base) return;
    set(label, { text: base });
    set(this.add("tspan", { dy: -3.5, "font-size": 8.5 }, label), { text: power });
    set(this.add("tspan", { dy: 3.5 }, label), { text: rest });
  }

  /** A number in its box; `draw` says what and where. */
  cell(row, j) {
    const group = this.add("g");
    const width = isAlone(row) ? 4 * CELL : CELL;
    const box = this.add("rect", { x: isAlone(row) ? 0 : CELL * j, width, height: HEIGHT }, group);
    const x = isAlone(row) ? 2 * CELL : CELL * (j + 0.5);
    const number = this.add("text", { x, y: HEIGHT / 2 + 3.5, "text-anchor": "middle" }, group);
    return { group, box, number };
  }

  /* --- What is pointed at --- */

  /** Row, token and place of what is drawn at a point. */
  found(x, y) {
    const row = ROWS.findLast((name) => y >= TOP[name] - 7);
    const u = Math.min(Math.max(Math.floor((x - LEFT) / COLUMN), 0), 2);
    const j = Math.min(Math.max(Math.floor((x - LEFT - COLUMN * u) / CELL), 0), 3);
    return row && (row !== "o" || u === Number(this.state.query)) ? [row, u, j] : undefined;
  }

  named([row, u, j]) {
    return `${row}${isOfQuery(row) ? "" : u}${isAlone(row) ? "" : j}`;
  }

  pressed(x, y, from) {
    const found = this.found(x, y);
    from.first ??= found ?? [];
    const isHand = from.first.length && this.named(from.first) === HAND;
    if (isHand && from.x !== x) {
      const key = this.within("key", from.state.key + (x - from.x) / PER_STEP);
      if (key !== this.state.key) this.pick({ key, at: from.state.at });
    } else if (found && !(isHand && this.state.key !== from.state.key)) {
      const query = found[0] === "q" ? String(found[1]) : this.state.query;
      this.state = { ...this.state, query, at: this.named(found) };
      this.show();
      this.frame ??= requestAnimationFrame(() => this.drawn());
    }
  }

  /** A mouse that rests on a number shows it without choosing it. */
  hover(event) {
    let over;
    if (event) {
      const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
      const found = this.found(x, y);
      if (found && (found[0] !== "q" || found[1] === Number(this.state.query))) over = this.named(found);
    }
    if (over === this.over) return;
    this.over = over;
    this.hovered = this.state;
    this.frame ??= requestAnimationFrame(() => this.drawn());
  }

  /** The names of the cells that a number is made of, or, of a given one, of those that it meets. */
  lit(row, u, j, query) {
    const vector = (of, v) => PLACES.map((i) => `${of}${v}${i}`);
    const all = (of, place = 0) => TOKENS.map((v) => `${of}${v}${place}`);
    return {
      q: () => all("k", j),
      k: () => [`q${query}${j}`],
      s: () => [...vector("q", query), ...vector("k", u)],
      e: () => [`s${u}0`],
      w: () => all("e"),
      v: () => [`w${u}0`],
      o: () => [...all("w"), ...all("v", j)],
    }[row]();
  }

  /* --- Drawing --- */

  draw({ key, query, at }) {
    if (this.hovered !== this.state) this.over = undefined; // something was chosen since
    const own = Number(query);
    const [row, u, j] = parts(this.over ?? at, own);
    const k = KEYS.map((numbers, token) => numbers.map((x, i) => (`k${token}${i}` === HAND ? key : x)));
    const [weights] = attentionWeights([QUERIES[own]], k);
    const products = k.map((numbers) => dot(QUERIES[own], numbers));
    const scores = products.map((product) => product / 2);
    const e = scores.map(Math.exp);
    const [output] = attentionOutputs([weights], VALUES);
    const lit = this.lit(row, u, j, own);
    const chosen = `${row}${row === "o" ? 0 : u}${j}`;
    this.heads.forEach((head, token) => set(head, { "font-weight": token === own ? 700 : 400 }));
    set(this.hand, { opacity: key < 0 ? 0 : 1 }); // no room beside a minus
    const value = {
      q: (token, i) => shown(QUERIES[token][i], 0),
      k: (token, i) => shown(k[token][i], 0),
      s: (token) => brief(scores[token], 1),
      e: (token) => brief(e[token], 3),
      w: (token) => shown(weights[token], 3),
      v: (token, i) => shown(VALUES[token][i], 0),
      o: (_, i) => brief(output[i], 2),
    };
    for (const [name, cell] of Object.entries(this.cells)) {
      const [of, token, place] = [name[0], Number(name[1]), Number(name[2])];
      const [isChosen, isLit] = [name === chosen, lit.includes(name)];
      const column = of === "o" ? own : token;
      const asked = of !== "q" || token === own;
      const text = value[of](token, place);
      const shade = isChosen ? 0.3 : isLit ? 0.14 : of === "w" ? 0.04 + 0.46 * weights[token] : 0;
      const looks = [text, shade, isChosen, isLit, column, asked].join();
      if (looks === cell.looks) continue; // most numbers stay as they are
      cell.looks = looks;
      const { group, box, number } = cell;
      set(group, { transform: `translate(${LEFT + COLUMN * column} ${TOP[of]})`, opacity: asked ? 1 : 0.55 });
      set(box, {
        fill: isChosen || isLit ? ORANGE : BLUE,
        "fill-opacity": shade,
        stroke: isChosen || isLit ? ORANGE : GREY,
        "stroke-width": isChosen ? 2.6 : isLit ? 1.6 : 0.5,
      });
      set(number, { text, "font-weight": isChosen && isAlone(of) ? 700 : 400 });
      if (isChosen || isLit) this.svg.insertBefore(group, this.hand);
    }
    const { words } = this;
    const sums = (a, b, digits) => a.map((x, i) => `${factor(x, digits)}\u00a0×\u00a0${factor(b[i])}`).join(" + ");
    const said = {
      q: () => ({ own: value.q(own, j), keys: k.map((numbers) => shown(numbers[j], 0)).join(words.and) }),
      k: () => ({ own: value.k(u, j), times: factor(k[u][j]), query: value.q(own, j), product: shown(QUERIES[own][j] * k[u][j], 0) }),
      s: () => ({ sum: sums(QUERIES[own], k[u]), product: shown(products[u], 0), score: value.s(u) }),
      e: () => ({ score: value.s(u), power: value.e(u) }),
      w: () => ({ power: value.e(u), powers: TOKENS.map(value.e).join(" + "), weight: value.w(u) }),
      v: () => ({ own: value.v(u, j), weight: value.w(u), part: shown(weights[u] * VALUES[u][j]) }),
      o: () => ({ sum: sums([...weights], VALUES.map((numbers) => numbers[j]), 3), output: value.o(0, j) }),
    };
    this.sentence = words.said[row](words.tokens[u], said[row]());
  }

  say() {
    return this.sentence;
  }
}
customElements.define("live-attention-step", AttentionStep);
