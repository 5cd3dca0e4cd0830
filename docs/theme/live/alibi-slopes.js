/* ALiBi: one far key, its content against the price of its distance, in every head at once. */
import { BLUE, GREY, LiveFigure, ORANGE, line, set, shown } from "./figure.js";
import { alibiSlopes } from "./posenc.js";

const MOST = 12; // heads
const [FAR, LOW, HIGH] = [10000, 0.1, 100]; // distance, and content
const [LEFT, RIGHT, TOP, BOTTOM] = [34, 314, 18, 128]; // of the map
const [FULL, EMPTY] = [190, 234]; // of the bars
const part = (value, low, high) => Math.log(value / low) / Math.log(high / low);
const x = (distance) => LEFT + part(distance, 1, FAR) * (RIGHT - LEFT);
const y = (content) => BOTTOM - part(content, LOW, HIGH) * (BOTTOM - TOP);
const slope = (m) => (Number.isInteger(1 / m) ? `1/${1 / m}` : shown(m, m < 0.1 ? 3 : 2));

/** The weight of a key that is so far back, the first of its text, when all others have the score 0. */
function farWeight(m, back, content) {
  const others = Math.expm1(-m * back) / Math.expm1(-m);
  return 1 / (1 + others * Math.exp(m * back - content));
}

class AlibiSlopes extends LiveFigure {
  static box = [346, 278];
  static rows = 3;
  static controls = [
    { name: "back", min: 1, max: FAR, log: true, value: 39 },
    { name: "content", min: LOW, max: HIGH, step: 0.01, log: true, value: 5 },
    { name: "heads", options: ["1", "2", "4", "6", "8", "12"], value: "8" },
  ];
  static words = {
    en: {
      drawing: "A far key: its content against the price of its distance, and its weight in each head",
      caption: "Above, what distance costs in each head, and the far key; below, the weight that this key gets in each head.",
      back: "steps back",
      content: "content score",
      heads: "heads",
      map: "score of the far key; a line: its price in one head (dashed: too dear)",
      distance: "distance t − u",
      weight: "weight of the far key, all other keys having the score 0",
      slopes: "slope",
      said: ({ back, content, heads }, wins, price, flat) =>
        `${back === 1 ? "1 step" : `${back} steps`} back with a score of ${content}, the key outbids the query’s own in ${wins} of ${heads} heads. ` +
        `In the flattest it pays ${price} and gets ${flat} of the attention.`,
    },
    zh: {
      drawing: "远处的一个键：内容分数与距离的价钱，以及它在每个头里的权重",
      caption: "上图：每个头里距离的价钱，和远处的键。下图：这个键在每个头里的权重。",
      back: "往回几步",
      content: "内容分数",
      heads: "头数",
      map: "远处那个键的内容分数；斜线：它在一个头里的价钱（虚线：太贵）",
      distance: "距离 t − u",
      weight: "远处那个键的权重（其余键的分数都是 0）",
      slopes: "斜率",
      said: ({ back, content, heads }, wins, price, flat) =>
        `${back} 步之前的键，分数 ${content}，在 ${heads} 个头中的 ${wins} 个里胜过查询自己的键。` +
        `在最平的头里，它付出 ${price}，得到 ${flat} 的注意力。`,
    },
  };

  setup() {
    const { words } = this;
    this.label(LEFT - 26, 11, words.map, { "text-anchor": "start" });
    for (const distance of [1, 10, 100, 1000, 10000]) {
      this.add("path", { d: line([[x(distance), TOP], [x(distance), BOTTOM]]), stroke: GREY, "stroke-width": 0.3 });
      this.label(x(distance), BOTTOM + 13, distance);
    }
    for (const content of [0.1, 1, 10, 100]) {
      this.add("path", { d: line([[LEFT, y(content)], [RIGHT, y(content)]]), stroke: GREY, "stroke-width": 0.3 });
      this.label(LEFT - 4, y(content) + 3.5, content, { "text-anchor": "end" });
    }
    this.label((LEFT + RIGHT) / 2, BOTTOM + 27, words.distance);
    this.lines = Array.from({ length: MOST }, () => this.add("path", {}));
    const field = this.add("rect", { x: LEFT, y: TOP, width: RIGHT - LEFT, height: BOTTOM - TOP, fill: "none" });
    this.onpick(set(field, { "pointer-events": "all" }), (left, top) => {
      const [across, up] = [(left - LEFT) / (RIGHT - LEFT), (BOTTOM - top) / (BOTTOM - TOP)].map((share) =>
        Math.min(Math.max(share, 0), 1),
      );
      this.pick({ back: Math.round(FAR ** across), content: Number((LOW * (HIGH / LOW) ** up).toPrecision(3)) });
    }, { holds: (place) => Math.hypot(place.x - x(this.state.back), place.y - y(this.state.content)) < 24 });
    this.steepest = this.label(0, TOP + 11, "", { "text-anchor": "end" });
    this.flattest = this.label(RIGHT + 4, 0, "", { "text-anchor": "start" });
    this.key = this.add("circle", { r: 5, fill: ORANGE, "pointer-events": "none" });
    this.marks = [0, 90].map((angle) => this.grip(angle));
    this.label(LEFT - 26, FULL - 20, words.weight, { "text-anchor": "start" });
    for (const weight of [0, 0.5, 1]) {
      const height = EMPTY - weight * (EMPTY - FULL);
      this.add("path", { d: line([[LEFT, height], [342, height]]), stroke: GREY, "stroke-width": 0.3 });
      this.label(LEFT - 4, height + 3.5, weight, { "text-anchor": "end" });
    }
    this.bars = Array.from({ length: MOST }, () => ({
      bar: this.add("rect", {}),
      weight: this.label(0, 0),
      slope: this.label(0, 0),
    }));
    this.axis = this.label((LEFT + 342) / 2, 0, words.slopes);
  }

  draw({ back, content, heads }) {
    this.slopes = [...alibiSlopes(Number(heads))];
    const wins = this.slopes.map((m) => content > m * back);
    this.weights = this.slopes.map((m) => farWeight(m, back, content));
    this.wins = wins.filter(Boolean).length;
    this.flat = Math.min(...this.slopes);
    const steep = Math.max(...this.slopes);
    set(this.steepest, { x: x(HIGH / steep) - 24, text: steep > this.flat ? slope(steep) : "" });
    set(this.flattest, { y: y(this.flat * FAR) + 3.5, text: slope(this.flat) });
    set(this.axis, { y: EMPTY + (heads > 8 ? 40 : 28) });
    set(this.key, { cx: x(back), cy: y(content) });
    for (const mark of this.marks) set(mark, { transform: `translate(${x(back)} ${y(content)})` });
    const width = (342 - LEFT) / heads;
    for (let h = 0; h < MOST; h++) {
      const [m, { bar, weight, slope: name }] = [this.slopes[h], this.bars[h]];
      for (const shape of [this.lines[h], bar, weight, name]) set(shape, { display: h < heads ? "inline" : "none" });
      if (h >= heads) continue;
      const from = Math.max(1, LOW / m);
      const to = Math.min(FAR, HIGH / m);
      const look = wins[h] ? { stroke: BLUE, "stroke-width": 1.6, "stroke-dasharray": "none" }
        : { stroke: GREY, "stroke-width": 1.2, "stroke-dasharray": "4 3" };
      set(this.lines[h], { d: line([[x(from), y(m * from)], [x(to), y(m * to)]]), ...look });
      const [middle, height] = [LEFT + (h + 0.5) * width, this.weights[h] * (EMPTY - FULL)];
      const broad = Math.min(0.7 * width, 26);
      set(bar, { x: middle - broad / 2, y: EMPTY - height, width: broad, height, fill: wins[h] ? BLUE : GREY });
      set(weight, { x: middle, y: EMPTY - height - 4, text: shown(this.weights[h]) });
      // Many heads: every other name stands lower.
      set(name, { x: middle, y: EMPTY + (heads > 8 && h % 2 ? 26 : 14), text: slope(m) });
    }
  }

  say(state) {
    const [price, weight] = [this.flat * state.back, this.weights[this.slopes.indexOf(this.flat)]];
    return this.words.said(state, this.wins, shown(price, price < 1 ? 3 : 2), shown(weight));
  }
}
customElements.define("live-alibi-slopes", AlibiSlopes);
