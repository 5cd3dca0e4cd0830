/* The shift by k positions as one turn of each hand, from any start: the turned code is the code further on. */
import { BLUE, GREEN, GREY, LiveFigure, ORANGE, line, set, shown } from "./figure.js";
import { shift, sinusoidalEncoding, sinusoidalFrequencies } from "./posenc.js";

const DIALS = 4;
const RADIUS = 34;
const [LEFT, TOP, HEIGHT] = [28, 142, 62]; // of the strip of numbers

class ShiftRotation extends LiveFigure {
  static box = [346, 230];
  static rows = 3;
  static stretches = true;
  static controls = [
    { name: "t", min: 0, max: 100, value: 2 },
    { name: "k", min: -30, max: 30, value: 3, steps: "k" },
    { name: "transposed", value: false },
  ];
  static words = {
    en: {
      drawing: "Four hands of a code and all its numbers, shifted by k",
      caption: "Mₖ turns each solid hand into the dashed one, by the same angle from every start. The slower the hand, the smaller its turn.",
      t: "start t",
      k: "offset k",
      transposed: "transpose Mₖ",
      pair: (i) => `pair ${i}`,
      column: "column of the code",
      legend: ["code of t", "turned by Mₖ", "code of t + k"],
      said: ({ t, k, transposed }, turns, most) =>
        `From t = ${t}, as from anywhere, the hands turn by ${turns.join(", ")} rad. ` +
        (most < 1e-12
          ? `The turned code is that of ${shown(t + k, 0)}.`
          : `The turned code misses that of ${shown(t + k, 0)} by up to ${shown(most)}` +
            (transposed ? `: it is that of ${shown(t - k, 0)}.` : ".")),
    },
    zh: {
      drawing: "编码的四根指针和全部数字，平移 k",
      caption: "Mₖ 把实线指针转到虚线处。从哪个起点出发，转过的角度都一样；指针越慢，转得越少。",
      t: "起点 t",
      k: "偏移 k",
      transposed: "转置 Mₖ",
      pair: (i) => `第 ${i} 对`,
      column: "编码的列",
      legend: ["t 的编码", "用 Mₖ 转过", "t + k 的编码"],
      said: ({ t, k, transposed }, turns, most) =>
        `从 t = ${t} 出发，和从别处出发一样，指针转过 ${turns.join("、")} rad。` +
        (most < 1e-12
          ? `转过的编码正是位置 ${shown(t + k, 0)} 的编码。`
          : `转过的编码与位置 ${shown(t + k, 0)} 的最多相差 ${shown(most)}` +
            (transposed ? `：它是位置 ${shown(t - k, 0)} 的编码。` : "。")),
    },
  };

  setup() {
    const { words } = this;
    const RIGHT = this.width - 4;
    this.dim = this.number("dim", 16);
    this.omega = sinusoidalFrequencies(this.dim).slice(0, DIALS);
    this.dials = Array.from({ length: DIALS }, (_, i) => this.dial(i, ((i + 0.5) * this.width) / DIALS, 54, words.pair(i)));
    const y = (value) => TOP + HEIGHT / 2 - (value * HEIGHT) / 2;
    const x = (column) => LEFT + ((column + 0.5) * (RIGHT - LEFT)) / this.dim;
    for (const value of [-1, 0, 1]) {
      this.add("path", { d: line([[LEFT, y(value)], [RIGHT, y(value)]]), stroke: GREY, "stroke-width": value ? 0.3 : 0.8 });
      this.label(LEFT - 4, y(value) + 3.5, shown(value, 0), { "text-anchor": "end" });
    }
    this.label((LEFT + RIGHT) / 2, TOP + HEIGHT + 18, words.column);
    for (const column of [0, this.dim - 1]) this.label(x(column), TOP + HEIGHT + 18, column);
    this.numbers = Array.from({ length: this.dim }, (_, column) => ({
      start: this.add("path", { d: `M${x(column) - 6} 0h12`, stroke: BLUE, "stroke-width": 1.6 }),
      turned: this.add("circle", { cx: x(column), r: 2.4, fill: ORANGE }),
      further: this.square({ x: x(column) - 4.5 }),
    }));
    this.y = y;
    const marks = [
      (entry) => this.add("path", { d: "M0 -3.5H18", stroke: BLUE, "stroke-width": 2 }, entry),
      (entry) => {
        this.add("path", { d: "M0 -3.5H14", stroke: ORANGE, "stroke-width": 2, "stroke-dasharray": "5 3" }, entry);
        this.add("circle", { cx: 18, cy: -3.5, r: 2.4, fill: ORANGE }, entry);
      },
      (entry) => this.square({ x: 8, y: -8 }, entry),
    ];
    words.legend.forEach((text, n) => {
      const entry = this.add("g", { transform: `translate(${[LEFT, 118, 236][n]} 128)` });
      marks[n](entry);
      set(this.add("text", { x: 24 }, entry), { text });
    });
  }

  square(place, parent) {
    return this.add("rect", { width: 9, height: 9, fill: "none", stroke: GREEN, "stroke-width": 1.4, ...place }, parent);
  }

  dial(i, x, y, name) {
    this.label(x, y - RADIUS - 8, name);
    const dial = this.add("g", { transform: `translate(${x} ${y})`, fill: "none", stroke: GREY });
    this.add("circle", { r: RADIUS }, dial);
    this.add("path", { d: `M0 ${-RADIUS - 3}v6` }, dial);
    const found = {
      arc: this.add("path", { "stroke-width": 1.2 }, dial),
      head: this.add("path", { d: "M0 0L-6 -2.5V2.5z", fill: GREY, stroke: "none" }, dial),
      start: this.hand(dial, BLUE, {}),
      end: this.hand(dial, ORANGE, { "stroke-dasharray": "5 3" }),
      further: this.square({}, dial),
      turn: this.label(x, y + RADIUS + 16),
    };
    if (i === 1) this.grip(0, this.add("g", { transform: `translate(0 ${-RADIUS})` }, found.end));
    // A hand is dragged: that of t, or the turned one, whichever is nearer where the drag begins.
    const touched = this.add("circle", { r: RADIUS + 8, fill: "transparent", stroke: "none" }, dial);
    this.onturn(touched, [x, y], (angle, from) => {
      const { t, k, transposed } = from.state;
      const away = (turn) => Math.cos(turn * this.omega[i] - Math.atan2(from.x - x, y - from.y));
      const steps = angle / this.omega[i];
      if (away(t) > away(transposed ? t - k : t + k)) this.pick({ t: this.within("t", t + steps) });
      else this.pick({ k: this.within("k", transposed ? k - steps : k + steps) });
    });
    return found;
  }

  hand(dial, stroke, style) {
    const hand = this.add("g", { stroke, "stroke-width": 2 }, dial);
    this.add("path", { d: `M0 0V${-RADIUS}`, ...style }, hand);
    this.add("circle", { cy: -RADIUS, r: 3.2, fill: stroke, stroke: "none" }, hand);
    return hand;
  }

  draw({ t, k, transposed }) {
    const further = sinusoidalEncoding(t + k, this.dim);
    const start = sinusoidalEncoding(t, this.dim);
    const turned = shift(start, transposed ? -k : k);
    this.most = Math.max(...turned.map((value, column) => Math.abs(value - further[column])));
    this.dials.forEach((dial, i) => {
      const [from, angle] = [this.omega[i] * t, this.omega[i] * (transposed ? -k : k)];
      const degrees = (radians) => (radians * 180) / Math.PI;
      set(dial.start, { transform: `rotate(${degrees(from)})` });
      set(dial.end, { transform: `rotate(${degrees(from + angle)})` });
      set(dial.further, { x: RADIUS * further[2 * i] - 4.5, y: -RADIUS * further[2 * i + 1] - 4.5 });
      // Rounds lie beside each other, within the dial.
      const steps = 2 + Math.ceil(8 * Math.abs(angle));
      const points = Array.from({ length: steps }, (_, n) => {
        const [part, way] = [n / (steps - 1), from + (angle * n) / (steps - 1)];
        const radius = RADIUS * (0.5 + 0.06 * Math.min(Math.abs(angle) / 6.283, 5) * (part - 0.5));
        return [radius * Math.sin(way), -radius * Math.cos(way)];
      });
      set(dial.arc, { d: line(points) });
      const [x, y] = points.at(-1);
      const ahead = degrees(from + angle) + (angle < 0 ? 180 : 0);
      set(dial.head, { transform: `translate(${x} ${y}) rotate(${ahead})`, opacity: Math.abs(angle) > 0.3 ? 1 : 0 });
      set(dial.turn, { text: `${shown(angle)} rad` });
    });
    this.numbers.forEach((number, column) => {
      set(number.start, { transform: `translate(0 ${this.y(start[column])})` });
      set(number.turned, { cy: this.y(turned[column]) });
      set(number.further, { y: this.y(further[column]) - 4.5 });
    });
  }

  say(state) {
    const turns = [...this.omega].map((omega) => shown(omega * (state.transposed ? -state.k : state.k)));
    return this.words.said(state, turns, this.most);
  }
}
customElements.define("live-shift-rotation", ShiftRotation);
