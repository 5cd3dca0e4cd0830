/* Longer contexts: how far round each pair goes, against how far it went in training, and what its steps lose. */
import { BLUE, GREEN, GREY, LiveFigure, ORANGE, line, set, shown } from "./figure.js";
import {
  linearFrequencies, llama3Frequencies, ntkFrequencies, sinusoidalFrequencies, yarnAttentionFactor, yarnFrequencies,
} from "./posenc.js";

const LEFT = 36;
const PANELS = [[34, 144], [186, 256]]; // top and bottom
const PALE = 0.5; // of bars in front of which a dashed line is to be seen
const y = ([top, bottom], value) => bottom - value * (bottom - top);
const METHODS = {
  none: (dim, factor, trained, base) => sinusoidalFrequencies(dim, base),
  base: (dim, factor, trained, base) => sinusoidalFrequencies(dim, 10 * base),
  linear: (dim, factor, trained, base) => linearFrequencies(dim, factor, base),
  ntk: (dim, factor, trained, base) => ntkFrequencies(dim, factor, base),
  yarn: yarnFrequencies,
  llama3: llama3Frequencies,
};

class RotaryContexts extends LiveFigure {
  static box = [346, 302];
  static rows = 5;
  static stretches = true;
  static controls = [
    { name: "length", min: 512, max: 131072, log: true, twos: true, value: 32768, marks: [4096, 8192, 32768, 131072] },
    { name: "factor", min: 1, max: 32, step: 0.01, log: true, value: 8 },
    { name: "pair", min: 0, max: 63, value: 45, steps: "i" },
    { name: "method", options: Object.keys(METHODS), value: "ntk" },
    { name: "beside", options: Object.keys(METHODS), value: "yarn" },
  ];
  static words = {
    en: {
      drawing: "How far each pair turns in a longer context, and how its steps shrink",
      caption: "The 64 pairs of Qwen2.5. Above, how far each turns in the longer context, against what it did in training; below, how much smaller its steps have become with one method, and dashed with another.",
      length: "tokens",
      factor: "factor r",
      method: "method",
      beside: "beside it, dashed",
      none: "unchanged",
      base: "base × 10",
      linear: "linear",
      ntk: "NTK",
      yarn: "YaRN",
      llama3: "Llama 3",
      turned: (n) => `turned after ${n} tokens, as a share of a full turn`,
      legend: ["seen in training", "reached, seen", "reached, not seen"],
      ratio: "new step over old one",
      pair: "pair i",
      one: (i, wavelength, turns) => `pair ${i}: wavelength ${wavelength}, ${turns} turns in training`,
      said: ({ length, pair }, pairs, left, most, first, own, last) =>
        `At ${length} tokens ` +
        (left ? `${left} of ${pairs} pairs reach new angles, by up to ${most} of a turn. ` : "no pair leaves what training saw. ") +
        `Steps kept: fastest ${first}, pair ${pair}: ${own}, slowest ${last}.`,
      yarnSaid: (scale) => ` Queries and keys: × ${scale}.`,
    },
    zh: {
      drawing: "上下文变长后每一对转了多远，每步又缩了多少",
      caption: "Qwen2.5 的 64 个频率对。上图：在更长的上下文里各转多远，与训练时相比。下图：用一种方法（虚线是另一种）以后，每步的转角还剩几成。",
      length: "词元数",
      factor: "倍数 r",
      method: "方法",
      beside: "对照（虚线）",
      none: "不改",
      base: "底数 × 10",
      linear: "线性插值",
      ntk: "NTK",
      yarn: "YaRN",
      llama3: "Llama 3",
      turned: (n) => `${n} 个词元之内转过的角度（1 是一整圈）`,
      legend: ["训练中见过", "转到，见过", "转到，没见过"],
      ratio: "新步长与旧步长之比",
      pair: "频率对 i",
      one: (i, wavelength, turns) => `第 ${i} 对：波长 ${wavelength}，训练中转了 ${turns} 圈`,
      said: ({ length, pair }, pairs, left, most, first, own, last) =>
        `到 ${length} 个词元，` +
        (left ? `${pairs} 对里有 ${left} 对转到没见过的角度，最多超出 ${most} 圈。` : "没有一对转出训练见过的范围。") +
        `每步的转角是原来的几倍：最快的一对 ${first}，第 ${pair} 对为 ${own}，最慢的一对 ${last}。`,
      yarnSaid: (scale) => `查询和键都要乘 ${scale}。`,
    },
  };

  setup() {
    const { words } = this;
    const RIGHT = this.width - 4;
    for (const [name, share] of [["method", 36], ["beside", 50]]) this.inputs[name][0].parentElement.style.flexBasis = `${share}%`; // a row of their own
    this.dim = this.number("dim", 128);
    this.trained = this.number("trained", 4096);
    this.base = this.number("base", 1e4);
    this.usual = sinusoidalFrequencies(this.dim, this.base);
    this.seen = this.usual.map((omega) => this.turns(omega, this.trained));
    const pairs = this.dim / 2;
    this.x = (i) => LEFT + (i * (RIGHT - LEFT)) / pairs;
    for (const panel of PANELS) {
      for (const value of [0, 0.5, 1]) {
        this.add("path", { d: line([[LEFT, y(panel, value)], [RIGHT, y(panel, value)]]), stroke: GREY, "stroke-width": 0.3 });
        this.label(LEFT - 4, y(panel, value) + 3.5, String(value), { "text-anchor": "end" });
      }
    }
    const [top, bottom] = PANELS;
    this.heading = this.label(LEFT, 11, "", { "text-anchor": "start" });
    this.known = this.add("path", { fill: BLUE, "fill-opacity": PALE });
    this.beyond = this.add("path", { fill: ORANGE });
    const other = { fill: "none", stroke: GREEN, "stroke-width": 1.4, "stroke-dasharray": "4 2" };
    this.others = PANELS.map(() => this.add("path", other));
    this.chosen = PANELS.map(([above, below]) => this.add("path", { d: `M0 ${above}V${below}`, stroke: "currentColor", "stroke-width": 0.8 }));
    this.add("path", { d: this.stairs(top, this.seen), fill: "none", stroke: "currentColor", "stroke-width": 1.4 });
    words.legend.forEach((text, n) => {
      const entry = this.add("g", { transform: `translate(${[LEFT, 138, 236][n]} 25)` });
      if (n) this.add("rect", { y: -7, width: 8, height: 7, ...(n > 1 ? { fill: ORANGE } : { fill: BLUE, "fill-opacity": PALE }) }, entry);
      else this.add("path", { d: "M0 -3.5H14", stroke: "currentColor", "stroke-width": 1.4 }, entry);
      set(this.add("text", { x: n ? 12 : 18 }, entry), { text });
    });
    this.label(LEFT, bottom[0] - 8, words.ratio, { "text-anchor": "start" });
    this.ratio = this.add("path", { fill: BLUE, "fill-opacity": PALE });
    for (let i = 0; i < pairs; i += pairs / 4) {
      for (const [, under] of PANELS) this.label(this.x(i + 0.5), under + 13, i);
    }
    for (const [, under] of PANELS) this.label(this.x(pairs - 0.5), under + 13, pairs - 1);
    this.label((LEFT + RIGHT) / 2, bottom[1] + 27, words.pair);
    this.one = this.label(RIGHT, bottom[1] + 41, "", { "text-anchor": "end" });
    const touched = this.add("rect", { x: LEFT, y: top[0], width: RIGHT - LEFT, height: bottom[1] - top[0], fill: "transparent" });
    this.onpick(touched, (px) => this.pick({ pair: this.within("pair", ((px - LEFT) * pairs) / (RIGHT - LEFT) - 0.5) }), {
      cursor: "ew-resize",
    });
    this.mark = this.grip();
  }

  /** The share of a full turn that a pair has been through in so many tokens. */
  turns(omega, tokens) {
    return Math.min((omega * tokens) / (2 * Math.PI), 1);
  }

  /** An outline of bars. */
  stairs(panel, values) {
    return line([...values].flatMap((value, i) => [i, i + 1].map((edge) => [this.x(edge), y(panel, value)])));
  }

  /** Bars from one list of values to another, in one path. */
  bars(panel, from, to) {
    const bar = (a, i) =>
      to[i] > a ? `M${line([[this.x(i + 0.1), y(panel, a)], [this.x(i + 0.1), y(panel, to[i])]]).slice(1)}` : "";
    const width = this.x(0.8) - LEFT;
    return from.map((a, i) => bar(a, i) && `${bar(a, i)}h${width.toFixed(2)}V${y(panel, a).toFixed(2)}z`).join("");
  }

  draw({ length, factor, pair, method, beside }) {
    const [omega, other] = [method, beside].map((name) => METHODS[name](this.dim, factor, this.trained, this.base));
    const reached = [...omega].map((w) => this.turns(w, length));
    // What is turned exactly as far, by another way, is not further.
    const left = reached.map((turns, i) => (turns > this.seen[i] * (1 + 1e-9) ? turns - this.seen[i] : 0));
    const none = reached.map(() => 0);
    const inside = reached.map((turns, i) => Math.min(turns, this.seen[i]));
    const [top, bottom] = PANELS;
    set(this.heading, { text: this.words.turned(length) });
    set(this.known, { d: this.bars(top, none, inside) });
    set(this.beyond, { d: this.bars(top, inside, inside.map((turns, i) => turns + left[i])) });
    this.ratios = [...omega].map((w, i) => w / this.usual[i]);
    set(this.ratio, { d: this.bars(bottom, none, this.ratios) });
    set(this.others[0], { d: this.stairs(top, other.map((w) => this.turns(w, length))) });
    set(this.others[1], { d: this.stairs(bottom, other.map((w, i) => w / this.usual[i])) });
    for (const part of [...this.chosen, this.mark])
      set(part, { transform: `translate(${this.x(pair + 0.45)} ${part === this.mark ? y(bottom, 0.75) : 0})` });
    const turns = (this.usual[pair] * this.trained) / (2 * Math.PI);
    const number = (value) => (value < 100 ? Number(value.toPrecision(3)) : Math.round(value));
    set(this.one, { text: this.words.one(pair, number(this.trained / turns), number(turns)) });
    this.left = left;
    for (const input of this.inputs.factor)
      input.disabled = [method, beside].every((name) => name === "none" || name === "base");
  }

  say(state) {
    const { left, ratios, words } = this;
    const said = words.said(
      state, left.length, left.filter((turns) => turns).length, shown(Math.max(...left)),
      ...[0, state.pair, left.length - 1].map((i) => shown(ratios[i], 3)),
    );
    const scale = state.method === "yarn" ? words.yarnSaid(shown(yarnAttentionFactor(state.factor), 3)) : "";
    return said + scale;
  }
}
customElements.define("live-rotary-contexts", RotaryContexts);
