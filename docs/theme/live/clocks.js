/* A position as the hands of clocks, and the wave of one of them around it. */
import { BLUE, GREY, LiveFigure, ORANGE, line, set, shown } from "./figure.js";
import { sinusoidalEncoding, sinusoidalWavelengths } from "./posenc.js";

const LAST = 4999; // door of the corridor
const RADIUS = 34;
const [LEFT, TOP, HEIGHT] = [28, 140, 62]; // of the wave
const POINTS = 240;
const PACE = 250; // milliseconds for a door, as one walks
const DOTS = 40; // positions that can be told apart on the wave

class Clocks extends LiveFigure {
  static box = [346, 236];
  static rows = 3;
  static stretches = true;
  static controls = [
    { name: "t", min: 0, max: LAST, value: 50, steps: "t" },
    { name: "pair", min: 0, max: 3, value: 0 },
  ];
  static words = {
    en: {
      drawing: "Four clocks at position t, and the wave of one pair around it",
      caption: "A position as the hands of four clocks, and the wave that one draws. The first hand moves at every step, the last hardly at all.",
      t: "position t",
      pair: "wave of hand",
      hand: (i) => `hand ${i}`,
      wavelength: "wavelength",
      legend: ["sine", "cosine", ""],
      walk: ["▶\ufe0e walk", "■ stop"],
      before: (t) => `hands at ${t}`,
      position: "position",
      said: (t, pair, turns, sine, cosine, wavelength) =>
        `At t = ${t} hand ${pair} has gone round ${turns} times. It shows sine ${sine} and cosine ${cosine}, ` +
        `and would show the same after ${wavelength} positions.`,
    },
    zh: {
      drawing: "位置 t 上的四个钟，以及其中一对在这附近的波形",
      caption: "一个位置就是四只钟的指针，下面是其中一根画的波。第一根步步都动，最后一根几乎不动。",
      t: "位置 t",
      pair: "哪根指针的波",
      hand: (i) => `指针 ${i}`,
      wavelength: "波长",
      legend: ["正弦", "余弦", ""],
      walk: ["▶\ufe0e 走", "■ 停"],
      before: (t) => `t = ${t} 的指针`,
      position: "位置",
      said: (t, pair, turns, sine, cosine, wavelength) =>
        `在 t = ${t}，指针 ${pair} 已经转了 ${turns} 圈，读数是正弦 ${sine}、余弦 ${cosine}；` +
        `再走 ${wavelength} 个位置，读数又会一样。`,
    },
  };

  setup() {
    const { words } = this;
    const RIGHT = (this.right = this.width - 6);
    this.walker ??= this.walks();
    this.dim = 8;
    this.wavelengths = sinusoidalWavelengths(this.dim);
    this.clocks = [...this.wavelengths].map((wavelength, i) => {
      const x = ((i + 0.5) * this.width) / 4;
      this.label(x, 12, words.wavelength);
      this.label(x, 24, grouped(wavelength));
      this.onpick(this.label(x, 113, words.hand(i)), () => this.pick({ pair: i }));
      const clock = this.add("g", { transform: `translate(${x} 66)`, fill: "none", stroke: GREY });
      const frame = this.add("circle", { r: RADIUS }, clock);
      this.add("path", { d: `M0 ${-RADIUS - 3}v6` }, clock);
      const ghost = this.add("path", { d: `M0 0V${-RADIUS}`, "stroke-width": 1.4 }, clock);
      const hand = this.add("g", { stroke: BLUE, "stroke-width": 2 }, clock);
      this.add("path", { d: `M0 0V${-RADIUS}` }, hand);
      this.add("circle", { cy: -RADIUS, r: 4, fill: BLUE, stroke: "none" }, hand);
      if (i === 1) this.grip(0, this.add("g", { transform: `translate(0 ${-RADIUS})` }, hand));
      const touched = this.add("circle", { r: RADIUS + 8, fill: "transparent", stroke: "none" }, clock);
      this.onturn(touched, [x, 66], (angle, { state }) =>
        this.pick({ t: this.within("t", state.t + (angle * wavelength) / (2 * Math.PI)), pair: i }),
      );
      return { frame, hand, ghost };
    });
    this.rest ??= this.before = this.initial.t; // where the hands last came to rest, and the time before
    for (const value of [-1, 0, 1]) {
      const stroke = { stroke: GREY, "stroke-width": value ? 0.3 : 0.8 };
      this.add("path", { d: line([[LEFT, this.y(value)], [RIGHT, this.y(value)]]), ...stroke });
      this.label(LEFT - 4, this.y(value) + 3.5, shown(value, 0), { "text-anchor": "end" });
    }
    this.legend = [BLUE, ORANGE, GREY].map((stroke, n) => {
      const entry = this.add("g", { transform: `translate(${[LEFT, 108, 238][n]} 127)` });
      const sign = n < 2 ? "M0 -3.5H20" : "M20 -3.5a5.5 5.5 0 1 0 -11 0a5.5 5.5 0 1 0 11 0M14.5 -3.5l3.5 -4"; // of the waves, of a clock
      this.add("path", { d: sign, fill: "none", stroke, "stroke-width": [2, 2, 1.4][n], "stroke-dasharray": n === 1 ? "5 3" : "none" }, entry);
      return { entry, name: set(this.add("text", { x: 25 }, entry), { text: words.legend[n] }) };
    });
    this.now = this.add("path", { stroke: "currentColor" });
    this.waves = [BLUE, ORANGE].map((stroke, n) => ({
      curve: this.add("path", { fill: "none", stroke, "stroke-width": 1.6, "stroke-dasharray": n ? "5 3" : "none" }),
      dots: this.add("path", { fill: "none", stroke, "stroke-width": 3.6, "stroke-linecap": "round" }),
      dot: this.add("circle", { r: 3.4, fill: stroke }),
    }));
    const touched = this.add("rect", { x: LEFT, y: TOP - 4, width: RIGHT - LEFT, height: HEIGHT + 8, fill: "transparent" });
    this.onpick(touched, (x, _, from) => this.pick({ t: this.within("t", from.state.t + (from.x - x) / this.scale) }), {
      cursor: "grab",
    });
    const below = TOP + HEIGHT + 16;
    this.from = this.label(LEFT, below);
    this.to = this.label(RIGHT, below, "", { "text-anchor": "end" });
    this.label((LEFT + RIGHT) / 2, below, words.position);
  }

  /** A button with which t walks on, door by door, until it or anything else is pressed, or the figure is out of sight. */
  walks() {
    const walker = document.createElement("button");
    const go = (on) => {
      if (!on && !this.walking) return;
      clearInterval(this.walking);
      this.walking = on && setInterval(() => (this.state.t < LAST ? this.pick({ t: this.state.t + 1 }) : go(false)), PACE);
      walker.textContent = this.words.walk[Number(on)];
      if (!on) this.settled();
    };
    Object.assign(walker, { type: "button", textContent: this.words.walk[0] });
    walker.addEventListener("click", () => go(!this.walking));
    for (const other of [this.svg, this.form])
      for (const type of ["pointerdown", "input", "click"]) other.addEventListener(type, ({ target }) => target !== walker && go(false));
    new IntersectionObserver(([{ isIntersecting }]) => isIntersecting || go(false)).observe(this);
    this.form.lastChild.lastChild.lastChild.before(walker);
    return walker;
  }

  y(value) {
    return TOP + HEIGHT / 2 - (value * HEIGHT) / 2;
  }

  draw({ t, pair }) {
    const code = sinusoidalEncoding(t, this.dim);
    const before = t === this.rest ? this.before : this.rest;
    const stood = sinusoidalEncoding(before, this.dim);
    set(this.legend[2].entry, { opacity: before === t ? 0 : 1 });
    set(this.legend[2].name, { text: this.words.before(before) });
    const turn = (from, i) => `rotate(${(Math.atan2(from[2 * i], from[2 * i + 1]) * 180) / Math.PI})`;
    this.clocks.forEach(({ frame, hand, ghost }, i) => {
      set(hand, { transform: turn(code, i) });
      set(ghost, { transform: turn(stood, i) });
      set(frame, { "stroke-width": i === pair ? 2.5 : 1 });
    });
    // As many positions as make four waves, with t among them.
    const width = Math.min(Math.round(4 * this.wavelengths[pair]), LAST);
    const from = Math.max(0, Math.min(t - (width >> 1), LAST - width));
    this.scale = (this.right - LEFT) / width;
    const x = (place) => LEFT + (place - from) * this.scale;
    const places = Array.from({ length: POINTS + 1 }, (_, n) => from + (n * width) / POINTS);
    const whole = width > DOTS ? [] : Array.from({ length: width + 1 }, (_, n) => from + n);
    const read = (all) => all.map((place) => sinusoidalEncoding(place, this.dim));
    const [curve, dots] = [read(places), read(whole)];
    this.waves.forEach((wave, n) => {
      const point = (place, code) => [x(place), this.y(code[2 * pair + n])];
      set(wave.curve, { d: line(places.map((place, k) => point(place, curve[k]))) });
      set(wave.dots, { d: whole.map((place, k) => `M${point(place, dots[k]).map((v) => v.toFixed(2)).join(" ")}h0`).join("") });
      const [cx, cy] = point(t, code);
      set(wave.dot, { cx, cy });
    });
    set(this.now, { d: line([[x(t), TOP], [x(t), TOP + HEIGHT]]) });
    set(this.from, { text: String(from) });
    set(this.to, { text: String(from + width) });
    const turns = shown(t / this.wavelengths[pair]);
    const [sine, cosine] = [shown(code[2 * pair]), shown(code[2 * pair + 1])];
    this.sentence = this.words.said(t, pair, turns, sine, cosine, grouped(this.wavelengths[pair]));
  }

  settled() {
    if (this.state.t !== this.rest) [this.before, this.rest] = [this.rest, this.state.t];
    super.settled();
  }

  say() {
    return this.sentence;
  }
}

/** 6.28, 62.8, 628, 6 283. */
const grouped = (x) => String(x < 1000 ? Number(x.toPrecision(3)) : Math.round(x)).replace(/(\d)(?=\d{3}$)/, "$1 ");

customElements.define("live-clocks", Clocks);
