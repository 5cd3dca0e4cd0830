/* One head over a padded sentence: its weights, and how much of each query's attention goes to pads. */
import { BLUE, GREY, LiveFigure, ORANGE, line, set, shown } from "./figure.js";
import { attentionWeights, leakIn, leakOut, sinusoidalEncoding } from "./posenc.js";

const PLACES = 9;
const DIM = 16;
const CELL = 17;
const SIDE = PLACES * CELL;
const [LEFT, TOP] = [28, 34];
const [BARS, WIDTH] = [204, 128]; // of the shares, beside the map

/** Numbers of a normal distribution, the same at each visit. */
function* normal(seed) {
  const uniform = () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return (seed + 0.5) / 2 ** 32;
  };
  for (;;) yield Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

class PaddingLeak extends LiveFigure {
  static box = [346, 222];
  static rows = 4;
  static controls = [
    { name: "tokens", min: 0, max: PLACES, value: 5 },
    { name: "pads", options: ["codes", "zeros"], value: "codes" },
    { name: "mask", options: ["none", "key", "after"], value: "none" },
    { name: "causal", value: false },
    { name: "left", value: false },
    { name: "query", min: 0, max: PLACES - 1, value: 0 },
  ];
  static words = {
    en: {
      drawing: "The attention weights of a padded sentence, and what each query spends on pads",
      caption: "Nine places, some of them pads: the weights of each query, and what real tokens and pads get of them (pale: the query is a pad).",
      tokens: "real tokens",
      pads: "pads hold",
      codes: "codes",
      zeros: "zeros",
      mask: "mask",
      none: "none",
      key: "keys",
      after: "after softmax",
      causal: "causal",
      left: "pads on the left",
      query: "query",
      axes: ["key position", "query position"],
      leak: (share) => `real queries, on pads: ${share}`,
      nobody: "no real query",
      shares: ["real", "pads"],
      sentence: "shares of each query",
      said({ tokens, mask, query }, into, out, empty, one) {
        const pads = PLACES - tokens;
        if (!tokens) return empty ? `All pads: ${empty} queries have no key at all.` : "All pads: nothing real to lose.";
        if (!pads) return "No pads: there is nothing to leak.";
        const parts = [`On average a real query spends ${into} of its attention on ${pads === 1 ? "1 pad" : `${pads} pads`}, a pad ${out} on real tokens.`];
        if (empty) parts.push(`Queries without any key: ${empty}.`);
        if (mask === "after") parts.push(`The weights of query ${query} sum to ${one.sum}.`);
        else parts.push(`Query ${query}, a ${one.pad ? "pad" : "real token"}: ${one.share} on pads.`);
        return parts.join(" ");
      },
      percent: (share) => `${shown(100 * share, 0)}\u00a0%`,
    },
    zh: {
      drawing: "补了填充的一句话的注意力权重，以及每个查询花在填充上的份额",
      caption: "左边是每个查询的权重，右边是其中真实词元和填充各得多少（浅色的条：查询是填充）。",
      tokens: "真实词元",
      pads: "填充是",
      codes: "编码",
      zeros: "零",
      mask: "掩码",
      none: "没有",
      key: "遮住键",
      after: "softmax 之后",
      causal: "因果",
      left: "填充在左",
      query: "查询",
      axes: ["键的位置", "查询的位置"],
      leak: (share) => `真实查询花在填充上 ${share}`,
      nobody: "没有真实查询",
      shares: ["真实", "填充"],
      sentence: "各查询的份额",
      said({ tokens, mask, query }, into, out, empty, one) {
        const pads = PLACES - tokens;
        if (!tokens) return empty ? `全是填充：${empty} 个查询一个键也没有。` : "全是填充：没有真实词元可以受害。";
        if (!pads) return "没有填充，也就没有泄漏。";
        const parts = [`真实查询平均把 ${into} 的注意力花在 ${pads} 个填充上，填充平均把 ${out} 花在真实词元上。`];
        if (empty) parts.push(`一个键也没有的查询：${empty} 个。`);
        if (mask === "after") parts.push(`第 ${query} 个查询的权重之和为 ${one.sum}。`);
        else parts.push(`第 ${query} 个查询（${one.pad ? "填充" : "真实词元"}）：${one.share} 花在填充上。`);
        return parts.join("");
      },
      percent: (share) => `${shown(100 * share, 0)}%`,
    },
  };

  setup() {
    const { words } = this;
    const numbers = normal(5);
    const matrix = (rows, size) =>
      Array.from({ length: rows }, () => Array.from({ length: DIM }, () => size * numbers.next().value));
    this.embeddings = matrix(PLACES, 1);
    [this.wq, this.wk] = [matrix(DIM, 0.1), matrix(DIM, 0.1)];
    const map = this.add("g", { transform: `translate(${LEFT} ${TOP})` });
    const place = (n) => CELL * n;
    const range = Array.from({ length: PLACES }, (_, n) => n);
    this.cells = range.map((t) =>
      range.map((u) => ({
        weight: this.add("rect", { x: place(u), y: place(t), width: CELL, height: CELL, fill: BLUE }, map),
        cross: this.add("path", { d: `M${place(u) + 5} ${place(t) + 5}l7 7m0 -7l-7 7`, stroke: GREY, "stroke-width": 1.2 }, map),
      })),
    );
    this.add("rect", { width: SIDE, height: SIDE, fill: "none", stroke: GREY, "stroke-width": 0.8 }, map);
    this.edges = this.add("path", { fill: "none", stroke: ORANGE, "stroke-width": 1.4, "stroke-dasharray": "5 3" }, map);
    for (const n of range) {
      this.label(LEFT + place(n + 0.5), TOP + SIDE + 12, String(n));
      this.label(LEFT - 5, TOP + place(n + 0.5) + 3.5, String(n), { "text-anchor": "end" });
    }
    this.label(LEFT + SIDE / 2, TOP + SIDE + 27, words.axes[0]);
    this.label(0, 0, words.axes[1], { transform: `translate(12 ${TOP + SIDE / 2}) rotate(-90)` });
    this.heading = this.label(LEFT + SIDE / 2, TOP - 8);
    this.mark = this.grip();
    const touched = this.add("rect", { width: SIDE, height: SIDE, fill: "transparent", cursor: "ew-resize" }, map);
    // A dashed line is dragged, across or downwards; elsewhere a row is a query.
    const edge = ({ tokens, left }) => CELL * (left ? PLACES - tokens : tokens);
    const isOn = (along, state) => Math.abs(along - edge(state)) < 8;
    const picked = (x, y, from) => {
      const along = isOn(from.x - LEFT, from.state) ? x - LEFT : isOn(from.y - TOP, from.state) ? y - TOP : undefined;
      if (along === undefined) return this.pickedQuery(y);
      const at = Math.min(Math.max(Math.round(along / CELL), 0), PLACES);
      this.pick({ tokens: this.state.left ? PLACES - at : at });
    };
    const holds = ({ x, y }) => !isOn(x - LEFT, this.state) && isOn(y - TOP, this.state);
    this.onpick(touched, picked, { cursor: "pointer", holds });
    this.rows = range.map((t) => ({
      real: this.add("rect", { x: BARS, y: TOP + place(t) + 3, height: CELL - 6, fill: BLUE }),
      pads: this.add("rect", { y: TOP + place(t) + 3, height: CELL - 6, fill: ORANGE }),
      none: this.add("path", { d: `M${BARS} ${TOP + place(t + 0.5)}h${WIDTH}`, stroke: GREY, "stroke-dasharray": "1 4" }),
    }));
    for (const share of [0, 0.5, 1]) {
      const x = BARS + share * WIDTH;
      this.add("path", { d: line([[x, TOP], [x, TOP + SIDE]]), stroke: GREY, "stroke-width": share ? 0.4 : 0.8 });
      this.label(x, TOP + SIDE + 12, shown(share, share === 0.5 ? 1 : 0));
    }
    this.label(BARS + WIDTH / 2, TOP + SIDE + 27, words.sentence);
    this.frames = [[LEFT, SIDE], [BARS, WIDTH]].map(([x, width]) =>
      this.add("rect", { x, width, height: CELL, fill: "none", stroke: "currentColor", "stroke-width": 1.2, "pointer-events": "none" }),
    );
    const bars = this.add("rect", { x: BARS, y: TOP, width: WIDTH, height: SIDE, fill: "transparent" });
    this.onpick(bars, (x, y) => this.pickedQuery(y));
    [BLUE, ORANGE].forEach((fill, n) => {
      this.add("rect", { x: BARS + 8 + 62 * n, y: TOP - 17, width: 10, height: 10, fill });
      this.label(BARS + 22 + 62 * n, TOP - 8, words.shares[n], { "text-anchor": "start" });
    });
  }

  pickedQuery(y) {
    this.pick({ query: this.within("query", (y - TOP) / CELL - 0.5) });
  }

  draw({ tokens, pads, mask, causal, left, query }) {
    const first = left ? PLACES - tokens : 0;
    const isPad = this.embeddings.map((_, n) => n < first || n >= first + tokens);
    const inputs = isPad.map((pad, n) => {
      if (pad && pads === "zeros") return new Array(DIM).fill(0);
      const code = sinusoidalEncoding(n, DIM);
      return Array.from(code, (x, j) => (pad ? x : x + this.embeddings[n - first][j]));
    });
    const times = (matrix) =>
      inputs.map((x) => matrix[0].map((_, j) => x.reduce((total, value, i) => total + value * matrix[i][j], 0)));
    const hidden = (t, u) => (causal && u > t) || (mask === "key" && isPad[u]);
    const weights = attentionWeights(times(this.wq), times(this.wk), { hidden });
    if (mask === "after") for (const row of weights) isPad.forEach((pad, u) => pad && (row[u] = 0));
    const most = Math.max(...weights.flat());
    const own = (row, which) => row.reduce((total, weight, u) => total + (isPad[u] === which ? weight : 0), 0);
    let empty = 0;
    weights.forEach((row, t) => {
      const [real, toPads] = [own(row, false), own(row, true)];
      const none = row.every((_, u) => hidden(t, u));
      empty += none;
      row.forEach((weight, u) => {
        set(this.cells[t][u].weight, { "fill-opacity": most ? weight / most : 0 });
        set(this.cells[t][u].cross, { opacity: hidden(t, u) || (mask === "after" && isPad[u]) ? 1 : 0 });
      });
      const shares = this.rows[t];
      set(shares.real, { width: WIDTH * real, opacity: isPad[t] ? 0.45 : 1 });
      set(shares.pads, { x: BARS + WIDTH * real, width: WIDTH * toPads, opacity: isPad[t] ? 0.45 : 1 });
      set(shares.none, { opacity: none ? 1 : 0 });
    });
    const edge = CELL * (left ? first : tokens);
    set(this.edges, { d: `M${edge} 0V${SIDE}M0 ${edge}H${SIDE}`, opacity: tokens % PLACES ? 1 : 0 });
    set(this.mark, { transform: `translate(${LEFT + edge} ${TOP + SIDE / 2})` });
    this.into = leakIn(weights, isPad);
    this.out = leakOut(weights, isPad);
    this.empty = empty;
    const [real, toPads] = [own(weights[query], false), own(weights[query], true)];
    this.one = { pad: isPad[query], share: this.words.percent(toPads), sum: shown(real + toPads) };
    for (const frame of this.frames) set(frame, { y: TOP + CELL * query });
    set(this.heading, { text: tokens ? this.words.leak(this.words.percent(this.into)) : this.words.nobody });
  }

  say(state) {
    const { percent, said } = this.words;
    return said(state, percent(this.into), percent(this.out), this.empty, this.one);
  }
}
customElements.define("live-padding-leak", PaddingLeak);
