/* Longer contexts: how far round each pair goes, against how far it went in training, and what its steps lose. */
import { BLUE, GREY, LiveFigure, ORANGE, line, set, shown } from "./figure.js";
import {
  linearFrequencies, ntkFrequencies, sinusoidalFrequencies, yarnAttentionFactor, yarnFrequencies,
} from "./posenc.js";

const [LEFT, RIGHT] = [36, 342];
const PANELS = [[34, 144], [186, 256]]; // top and bottom
const y = ([top, bottom], value) => bottom - value * (bottom - top);
const METHODS = {
  none: (dim, factor, trained, base) => sinusoidalFrequencies(dim, base),
  base: (dim, factor, trained, base) => sinusoidalFrequencies(dim, 10 * base),
  linear: (dim, factor, trained, base) => linearFrequencies(dim, factor, base),
  ntk: (dim, factor, trained, base) => ntkFrequencies(dim, factor, base),
  yarn: yarnFrequencies,
};

class RotaryContexts extends LiveFigure {
  static box = [346, 290];
  static rows = 3;
  static controls = [
    { name: "length", min: 512, max: 131072, log: true, twos: true, value: 32768 },
    { name: "factor", min: 1, max: 32, step: 0.01, log: true, value: 8 },
    { name: "method", options: Object.keys(METHODS), value: "ntk" },
  ];
  static words = {
    en: {
      drawing: "How far each pair turns in a longer context, and how its steps shrink",
      length: "tokens",
      factor: "factor r",
      method: "method",
      none: "unchanged",
      base: "base × 10",
      linear: "linear",
      ntk: "NTK",
      yarn: "YaRN",
      turned: (n) => `turned after ${n} tokens, as a share of a full turn`,
      legend: ["seen in training", "reached, seen", "reached, not seen"],
      ratio: "new step over old one",
      pair: "pair",
      said: ({ length }, pairs, left, most, first, last) =>
        `At ${length} tokens ` +
        (left ? `${left} of ${pairs} pairs reach angles never seen, by up to ${most} of a turn. ` : "no pair leaves what training saw. ") +
        `The fastest pair keeps ${first} of its step, the slowest ${last}.`,
      yarnSaid: (scale) => ` Queries and keys are multiplied by ${scale}.`,
    },
    zh: {
      drawing: "上下文变长后每一对转了多远，每步又缩了多少",
      length: "词元数",
      factor: "倍数 r",
      method: "方法",
      none: "不改",
      base: "底数 × 10",
      linear: "线性插值",
      ntk: "NTK",
      yarn: "YaRN",
      turned: (n) => `${n} 个词元之内转过的角度（1 是一整圈）`,
      legend: ["训练中见过", "转到，见过", "转到，没见过"],
      ratio: "新步长与旧步长之比",
      pair: "频率对",
      said: ({ length }, pairs, left, most, first, last) =>
        `到 ${length} 个词元，` +
        (left ? `${pairs} 对里有 ${left} 对转到没见过的角度，最多超出 ${most} 圈。` : "没有一对转出训练见过的范围。") +
        `每步的转角是原来的几倍：最快的一对 ${first}，最慢的一对 ${last}。`,
      yarnSaid: (scale) => `查询和键都要乘 ${scale}。`,
    },
  };

  setup() {
    const { words } = this;
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
    this.within = this.add("path", { fill: BLUE });
    this.beyond = this.add("path", { fill: ORANGE });
    const steps = [...this.seen].flatMap((turns, i) => [i, i + 1].map((edge) => [this.x(edge), y(top, turns)]));
    this.add("path", { d: line(steps), fill: "none", stroke: "currentColor", "stroke-width": 1.4 });
    words.legend.forEach((text, n) => {
      const entry = this.add("g", { transform: `translate(${[LEFT, 138, 236][n]} 25)` });
      if (n) this.add("rect", { y: -7, width: 8, height: 7, fill: n > 1 ? ORANGE : BLUE }, entry);
      else this.add("path", { d: "M0 -3.5H14", stroke: "currentColor", "stroke-width": 1.4 }, entry);
      set(this.add("text", { x: n ? 12 : 18 }, entry), { text });
    });
    this.label(LEFT, bottom[0] - 8, words.ratio, { "text-anchor": "start" });
    this.ratio = this.add("path", { fill: BLUE });
    for (let i = 0; i < pairs; i += pairs / 4) {
      for (const [, under] of PANELS) this.label(this.x(i + 0.5), under + 13, i);
    }
    for (const [, under] of PANELS) this.label(this.x(pairs - 0.5), under + 13, pairs - 1);
    this.label((LEFT + RIGHT) / 2, bottom[1] + 27, words.pair);
  }

  /** The share of a full turn that a pair has been through in so many tokens. */
  turns(omega, tokens) {
    return Math.min((omega * tokens) / (2 * Math.PI), 1);
  }

  /** Bars from one list of values to another, in one path. */
  bars(panel, from, to) {
    const bar = (a, i) =>
      to[i] > a ? `M${line([[this.x(i + 0.1), y(panel, a)], [this.x(i + 0.1), y(panel, to[i])]]).slice(1)}` : "";
    const width = this.x(0.8) - LEFT;
    return from.map((a, i) => bar(a, i) && `${bar(a, i)}h${width.toFixed(2)}V${y(panel, a).toFixed(2)}z`).join("");
  }

  draw({ length, factor, method }) {
    const omega = METHODS[method](this.dim, factor, this.trained, this.base);
    const reached = [...omega].map((w) => this.turns(w, length));
    // What is turned exactly as far, by another way, is not further.
    const left = reached.map((turns, i) => (turns > this.seen[i] * (1 + 1e-9) ? turns - this.seen[i] : 0));
    const none = reached.map(() => 0);
    const inside = reached.map((turns, i) => Math.min(turns, this.seen[i]));
    const [top, bottom] = PANELS;
    set(this.heading, { text: this.words.turned(length) });
    set(this.within, { d: this.bars(top, none, inside) });
    set(this.beyond, { d: this.bars(top, inside, inside.map((turns, i) => turns + left[i])) });
    this.ratios = [...omega].map((w, i) => w / this.usual[i]);
    set(this.ratio, { d: this.bars(bottom, none, this.ratios) });
    this.left = left;
    for (const input of this.inputs.factor) input.disabled = method === "none" || method === "base";
  }

  say(state) {
    const { left, ratios, words } = this;
    const said = words.said(
      state, left.length, left.filter((turns) => turns).length, shown(Math.max(...left)),
      shown(ratios[0], 3), shown(ratios.at(-1), 3),
    );
    return state.method === "yarn" ? said + words.yarnSaid(shown(yarnAttentionFactor(state.factor), 3)) : said;
  }
}
customElements.define("live-rotary-contexts", RotaryContexts);
