/* The dot product of two codes by their offset, for two widths and bases. */
import { BLUE, GREY, LiveFigure, ORANGE, line, set, shown } from "./figure.js";
import { relativeKernel } from "./posenc.js";

const REACH = 100;
const [LEFT, TOP, HEIGHT] = [30, 24, 140];
const OFFSETS = Array.from({ length: REACH + 1 }, (_, k) => k);
const STYLES = [
  { stroke: BLUE, "stroke-width": 1.4 },
  { stroke: ORANGE, "stroke-width": 1.4, "stroke-dasharray": "5 3" },
];
const width = (name, value) => ({ name, min: 2, max: 512, step: 2, log: true, twos: true, value });
const base = (name, value) => ({ name, min: 1.5, max: 1e6, step: 0.1, log: true, value });

class Kernel extends LiveFigure {
  static box = [346, 200];
  static rows = 6;
  static stretches = true;
  static controls = [
    { name: "k", min: 0, max: REACH, value: 6, steps: "k" },
    width("dimA", 64),
    base("baseA", 10000),
    width("dimB", 512),
    base("baseB", 10000),
  ];
  static words = {
    en: {
      drawing: "K(k) / K(0) of two codes for offsets 0 to 100",
      caption: "The kernel as a share of its largest value, for two codes A and B of any width and base. A mark stands where each rises for the first time.",
      k: "offset k",
      dimA: "A, width",
      baseA: "A, base",
      dimB: "B, width",
      baseB: "B, base",
      rise: "first rise",
      at: (k, a, b) => `At k = ${k} A has ${a} and B ${b}.`,
      said: (code, rise, least) =>
        `${code} ${rise === undefined ? "falls all the way" : `rises after k = ${rise} for the first time`}; its least is ${least}.`,
    },
    zh: {
      drawing: "两套编码在偏移 0 到 100 上的 K(k) / K(0)",
      caption: "核与其最大值之比，A、B 两套编码，宽度和底数任选。记号标出各自第一次回升的地方。",
      k: "偏移 k",
      dimA: "A 的宽度",
      baseA: "A 的底数",
      dimB: "B 的宽度",
      baseB: "B 的底数",
      rise: "首次回升",
      at: (k, a, b) => `k = ${k} 时，A 是 ${a}，B 是 ${b}。`,
      said: (code, rise, least) =>
        `${code} ${rise === undefined ? "一路下降" : `在 k = ${rise} 之后首次回升`}，最小值 ${least}。`,
    },
  };

  setup() {
    const RIGHT = this.width - 12;
    const x = (this.x = (k) => LEFT + (k * (RIGHT - LEFT)) / REACH);
    this.kept = {};
    for (const value of [-1, -0.5, 0, 0.5, 1]) {
      const stroke = { stroke: GREY, "stroke-width": value ? 0.3 : 0.8 };
      this.add("path", { d: line([[LEFT, y(value)], [RIGHT, y(value)]]), ...stroke });
      this.label(LEFT - 4, y(value) + 3.5, shown(value, 1), { "text-anchor": "end" });
    }
    for (const k of [0, 20, 40, 60, 80, 100]) this.label(x(k), y(-1) + 14, String(k));
    this.label((LEFT + RIGHT) / 2, y(-1) + 29, this.words.k);
    this.label(LEFT, 12, "K(k) / K(0)", { "text-anchor": "start" });
    this.add("circle", { cx: 116, cy: 8.5, r: 4, fill: BLUE });
    this.add("rect", { x: 124, y: 5, width: 7, height: 7, fill: ORANGE });
    this.label(136, 12, this.words.rise, { "text-anchor": "start" });
    this.at = this.add("path", { d: `M0 ${TOP}v${HEIGHT}`, stroke: "currentColor", "stroke-width": 0.8 });
    this.mark = this.grip();
    this.codes = ["A", "B"].map((name, n) => {
      this.add("path", { d: `M${this.width - 126 + 60 * n} 8.5h22`, fill: "none", ...STYLES[n] });
      this.label(this.width - 100 + 60 * n, 12, name, { "text-anchor": "start" });
      return {
        name,
        curve: this.add("path", { fill: "none", ...STYLES[n] }),
        rise: n
          ? this.add("rect", { width: 7, height: 7, fill: ORANGE })
          : this.add("circle", { r: 4, fill: BLUE }),
        at: this.add("circle", { r: 3, fill: "none", "stroke-width": 1.6, stroke: STYLES[n].stroke }),
      };
    });
    const touched = this.add("rect", { x: LEFT - 6, y: TOP, width: RIGHT - LEFT + 12, height: HEIGHT, fill: "transparent" });
    const picked = (place) => this.pick({ k: this.within("k", ((place - LEFT) * REACH) / (RIGHT - LEFT)) });
    this.onpick(touched, picked, { cursor: "ew-resize" });
  }

  draw(state) {
    const { x } = this;
    const sentences = this.codes.map(({ name, curve, rise, at }) => {
      const [dim, base] = [state[`dim${name}`], state[`base${name}`]];
      const asked = `${dim} ${base}`;
      if (this.kept[name]?.asked !== asked) {
        const shares = relativeKernel(OFFSETS, dim, base).map((dot) => dot / (dim / 2));
        const up = shares.findIndex((share, k) => shares[k + 1] > share);
        this.kept[name] = { asked, shares, sentence: this.words.said(name, up < 0 ? undefined : up, shown(Math.min(...shares))) };
        set(curve, { d: line(shares.map((share, k) => [x(k), y(share)])) });
        const [cx, cy] = [x(up), y(shares[up] ?? 0)];
        set(rise, { opacity: up < 0 ? 0 : 1, ...(name === "A" ? { cx, cy } : { x: cx - 3.5, y: cy - 3.5 }) });
      }
      for (const input of this.inputs[`base${name}`]) input.disabled = dim === 2; // one pair, at ω = 1 with any base
      set(at, { cx: x(state.k), cy: y(this.kept[name].shares[state.k]) });
      return this.kept[name].sentence;
    });
    for (const part of [this.at, this.mark]) set(part, { transform: `translate(${x(state.k)} ${part === this.mark ? y(-0.75) : 0})` });
    const shares = this.codes.map(({ name }) => shown(this.kept[name].shares[state.k]));
    this.sentences = [...sentences, this.words.at(state.k, ...shares)];
  }

  say() {
    return this.sentences.join(document.documentElement.lang.startsWith("zh") ? "" : " ");
  }
}

const y = (share) => TOP + ((1 - share) * HEIGHT) / 2;

customElements.define("live-kernel", Kernel);
