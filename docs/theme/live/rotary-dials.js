/* RoPE: query and key turned by their positions, and what each pair adds to the score; only the offset counts. */
import { BLUE, GOLD, GREEN, GREY, LiveFigure, ORANGE, PURPLE, line, set, shown } from "./figure.js";
import { applyRotary, rotaryScores, sinusoidalFrequencies } from "./posenc.js";

const PAIRS = 3;
const COLOURS = [GREEN, PURPLE, GOLD]; // of the pairs
const RADIUS = 36;
const FAR = 40; // offsets in the curve, to both sides
const [LEFT, TOP, BOTTOM] = [28, 158, 246]; // of the curve
const y = (score) => BOTTOM - ((score + PAIRS) * (BOTTOM - TOP)) / (2 * PAIRS);
const OFFSETS = Array.from({ length: 2 * FAR + 1 }, (_, n) => n - FAR);
const POINTS = Array.from({ length: 8 * FAR + 1 }, (_, n) => n / 4 - FAR);
const named = (name) => Object.fromEntries(Array.from({ length: PAIRS }, (_, i) => [`pair${i}`, name(i)]));
const signed = (value) => shown(value).replace(/^(?=\d)/, "+");

class RotaryDials extends LiveFigure {
  static box = [346, 278];
  static rows = 5;
  static wide = 4;
  static stretches = true;
  static controls = [
    { name: "t", min: 0, max: 2000, value: 2 },
    { name: "k", min: -FAR, max: FAR, value: 3, steps: "k" },
    { name: "sought", min: -30, max: 30, value: 0 },
    ...Array.from({ length: PAIRS }, (_, i) => ({ name: `pair${i}`, value: true })),
  ];
  static words = {
    en: {
      drawing: "Query and key on three dials, and their score by offset",
      caption: "A query and a key, three pairs of numbers each: the turn between them in each pair; below, what the pairs add to the score at each offset.",
      t: "query at t",
      k: "offset k",
      sought: "offset sought",
      ...named((i) => `pair ${i}`),
      legend: ["query at t", "key at t + k"],
      curves: "score of a key by its offset; thin: what each pair adds",
      axis: "offset k of the key (▲ sought)",
      wave: (length) => `λ = ${length}`,
      said: ({ t, k }, sum, best) => `Query at ${t}, key at ${shown(t + k, 0)}: ${sum}, as from any t. ${best}`,
      none: "Without a pair all keys have the same score.",
      best: (best, margin, next) => `Offset ${best} has the highest score, ${margin} above the next, ${next.length > 1 ? "offsets" : "offset"} ${next.join(" and ")}.`,
    },
    zh: {
      drawing: "三个表盘上的查询和键，以及分数随偏移的变化",
      caption: "查询和键，各有三对数：上面是每一对的夹角，下面是各对给每个偏移的分数加了多少。",
      t: "查询在 t",
      k: "偏移 k",
      sought: "要找的偏移",
      ...named((i) => `第 ${i} 对`),
      legend: ["t 处的查询", "t + k 处的键"],
      curves: "各个偏移上的键的分数；细线是每一对各自的贡献",
      axis: "键的偏移 k（▲ 要找的偏移）",
      wave: (length) => `λ = ${length}`,
      said: ({ t, k }, sum, best) => `查询在 ${t}，键在 ${shown(t + k, 0)}：${sum}，t 换成多少都一样。${best}`,
      none: "一对也不留，所有键的分数都相同。",
      best: (best, margin, next) => `偏移 ${best} 的分数最高，比第二名（偏移 ${next.join(" 和 ")}）高 ${margin}。`,
    },
  };

  setup() {
    const { words } = this;
    const RIGHT = this.width - 6;
    const x = (this.x = (k) => LEFT + ((k + FAR) * (RIGHT - LEFT)) / (2 * FAR));
    this.omega = sinusoidalFrequencies(2 * PAIRS, this.number("base", 100));
    this.key = Float64Array.from({ length: 2 * PAIRS }, (_, j) => 1 - (j % 2)); // each pair at three o'clock
    this.dials = Array.from(this.omega, (omega, i) => this.dial(i, shown((2 * Math.PI) / omega, 1)));
    words.legend.forEach((text, n) => {
      const entry = this.add("g", { transform: `translate(${this.width / 2 + (n ? 17 : -113)} 124)` });
      this.hand(entry, n);
      set(this.add("text", { x: 34, y: 3.5 }, entry), { text });
    });
    for (const score of [-PAIRS, 0, PAIRS]) {
      this.add("path", { d: line([[LEFT, y(score)], [RIGHT, y(score)]]), stroke: GREY, "stroke-width": score ? 0.3 : 0.8 });
      this.label(LEFT - 4, y(score) + 3.5, shown(score, 0), { "text-anchor": "end" });
    }
    for (const k of [-40, -20, 0, 20, 40]) this.label(x(k), BOTTOM + 16, shown(k, 0));
    this.label((LEFT + RIGHT) / 2, BOTTOM + 29, words.axis);
    this.label(LEFT, TOP - 8, words.curves, { "text-anchor": "start" });
    this.parts = COLOURS.map((stroke) => this.add("path", { fill: "none", stroke, "stroke-width": 1 }));
    this.sought = this.add("path", { d: `M0 ${BOTTOM - 1}l-4 7h8z`, fill: GREY });
    this.at = this.add("path", { d: `M0 ${TOP}V${BOTTOM}`, stroke: ORANGE, "stroke-dasharray": "4 3" });
    this.curve = this.add("path", { fill: "none", stroke: "currentColor", "stroke-width": 1.6 });
    this.dot = this.add("rect", { width: 7, height: 7, fill: ORANGE });
    const field = this.add("rect", { x: LEFT, y: TOP, width: RIGHT - LEFT, height: BOTTOM - TOP, fill: "none" });
    set(field, { "pointer-events": "all" });
    this.onpick(field, (place) => {
      this.pick({ k: this.within("k", ((place - LEFT) / (RIGHT - LEFT)) * 2 * FAR - FAR) });
    }, { cursor: "ew-resize" });
    this.mark = this.grip();
  }

  dial(i, length) {
    const middle = this.width / 2 + (this.width / PAIRS - 3) * (i - 1);
    const dial = this.add("g", { transform: `translate(${middle} 56)` });
    this.add("circle", { r: RADIUS, fill: "none", stroke: GREY }, dial);
    set(this.add("text", { y: -RADIUS - 8, "text-anchor": "middle" }, dial), {
      text: `${this.words[`pair${i}`]}, ${this.words.wave(length)}`,
    });
    const moved = this.add("g", {}, dial);
    const found = {
      moved,
      arc: this.add("path", { fill: "none", stroke: COLOURS[i], "stroke-width": 3 }, moved),
      query: this.hand(moved, 0, RADIUS),
      key: this.hand(moved, 1, RADIUS),
      part: this.add("text", { y: RADIUS + 16, "text-anchor": "middle" }, dial),
    };
    if (i === 1) this.grip(90, this.add("g", { transform: `translate(${RADIUS} 0)` }, found.key));
    // A hand is dragged: the query's takes the key's along, the key's goes alone; it is the nearer one where the drag begins.
    const touched = this.add("circle", { r: RADIUS + 8, fill: "transparent" }, dial);
    this.onturn(touched, [middle, 56], (angle, from) => {
      const { t, k, sought } = from.state;
      const away = (turn) => Math.cos(turn * this.omega[i] - Math.atan2(56 - from.y, from.x - middle));
      const steps = -angle / this.omega[i];
      if (away(t + sought) > away(t + k)) this.pick({ t: this.within("t", t + steps) });
      else this.pick({ k: this.within("k", k + steps) });
    });
    return found;
  }

  /** A hand that points to the right: of a query or a key. */
  hand(parent, key, length = 26) {
    const hand = this.add("g", { stroke: key ? ORANGE : BLUE, fill: key ? ORANGE : BLUE, "stroke-width": 2 }, parent);
    this.add("path", { d: `M0 0H${length}`, ...(key && { "stroke-dasharray": "5 3" }) }, hand);
    if (key) this.add("rect", { x: length - 3, y: -3, width: 6, height: 6, stroke: "none" }, hand);
    else this.add("circle", { cx: length, r: 3, stroke: "none" }, hand);
    return hand;
  }

  draw(state) {
    const { x } = this;
    const { t, k, sought } = state;
    const on = this.dials.map((_, i) => state[`pair${i}`]);
    const query = applyRotary(this.key, sought, this.omega);
    const scores = (offset) => rotaryScores(query, this.key, offset, this.omega).map((score, i) => (on[i] ? score : 0));
    const total = (offset) => scores(offset).reduce((a, b) => a + b);
    const parts = scores(k);
    this.dials.forEach((dial, i) => {
      const [of, to] = [this.omega[i] * (t + sought), this.omega[i] * (t + k)];
      const between = Math.atan2(Math.sin(to - of), Math.cos(to - of));
      const arc = Array.from({ length: 25 }, (_, n) => of + (between * n) / 24);
      set(dial.arc, { d: line(arc.map((angle) => [RADIUS * 0.5 * Math.cos(angle), -RADIUS * 0.5 * Math.sin(angle)])) });
      set(dial.query, { transform: `rotate(${(-of * 180) / Math.PI})` });
      set(dial.key, { transform: `rotate(${(-to * 180) / Math.PI})` });
      set(dial.moved, { opacity: on[i] ? 1 : 0.2 });
      set(dial.part, { text: on[i] ? signed(parts[i]) : "0" });
    });
    const curves = POINTS.map(scores);
    this.parts.forEach((part, i) =>
      set(part, { d: on[i] ? line(POINTS.map((offset, n) => [x(offset), y(curves[n][i])])) : "" }),
    );
    set(this.curve, { d: line(POINTS.map((offset, n) => [x(offset), y(curves[n].reduce((a, b) => a + b))])) });
    set(this.sought, { transform: `translate(${x(sought)} 0)` });
    set(this.at, { transform: `translate(${x(k)} 0)` });
    set(this.mark, { transform: `translate(${x(k)} ${y(total(k))})` });
    set(this.dot, { x: x(k) - 3.5, y: y(total(k)) - 3.5 });
    const order = OFFSETS.map((offset) => [total(offset), offset]).sort(([a], [b]) => b - a);
    const [best, second] = order;
    const next = order.slice(1).filter(([score]) => score > second[0] - 1e-9).map(([, offset]) => offset); // both sides
    this.told = { on, parts, total: total(k), best, margin: best[0] - second[0], next: next.sort((a, b) => a - b) };
  }

  say(state) {
    const { words } = this;
    const { on, parts, total, best, margin, next } = this.told;
    if (!on.includes(true)) return words.none;
    const shownParts = [...parts].filter((_, i) => on[i]).map(signed);
    const sum = shownParts.length > 1 ? `${shownParts.join(" ")} = ${signed(total)}` : shownParts[0];
    return words.said(state, sum, words.best(shown(best[1], 0), margin.toPrecision(2), next.map((offset) => shown(offset, 0))));
  }
}
customElements.define("live-rotary-dials", RotaryDials);
