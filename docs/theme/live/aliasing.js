/* Two waves with the same values at all whole positions, and what becomes of these in eight binary digits. */
import { BLUE, GREY, LiveFigure, ORANGE, line, set, shown } from "./figure.js";
import { slowestAlias, toBfloat16 } from "./posenc.js";

const STEPS = 12;
const POINTS = 480;
const [LEFT, TOP, HEIGHT] = [28, 26, 92];

class Aliasing extends LiveFigure {
  static box = [346, 154];
  static rows = 3;
  static stretches = true;
  static controls = [
    { name: "omega", min: 0.1, max: 12.5, step: 0.01, value: 5.3, marks: [Math.PI] },
    { name: "start", min: 0, max: 4096, value: 250, steps: "t" },
    { name: "bfloat16", value: false },
  ];
  static words = {
    en: {
      drawing: "A wave, the slowest one with the same samples, and the samples",
      caption: "A wave, and the slowest with the same values at whole positions. Up to ω = π there is none slower.",
      omega: "frequency ω",
      start: "first position t",
      bfloat16: "t in bfloat16",
      waves: ["wave of ω", "slowest with the same samples"],
      position: "position",
      same: (omega, alias) => `ω = ${omega} has the samples of ω = ${alias}${alias.startsWith("−") ? ", the other way" : ""}: they cannot be told apart.`,
      own: (omega) => `At ω = ${omega} no slower wave has the same samples.`,
      kept: (all, kept, most) => ` bfloat16 keeps ${kept} of ${all} positions; samples are off by up to ${most}.`,
    },
    zh: {
      drawing: "一条波、采样值与它相同的最慢的波，以及这些采样值",
      caption: "这条波，和整数位置上同值的最慢的波；ω ≤ π 时就是它自己。",
      omega: "频率 ω",
      start: "起始位置 t",
      bfloat16: "t 存成 bfloat16",
      waves: ["频率 ω 的波", "采样相同的最慢的波"],
      position: "位置",
      same: (omega, alias) => `ω = ${omega} 的采样值和 ω = ${alias}${alias.startsWith("−") ? "（反着转）" : " "}的一样：一步只看一眼，分不出是哪一条。`,
      own: (omega) => `ω = ${omega} 时，没有更慢的波有同样的采样值。`,
      kept: (all, kept, most) => `${all} 个位置存成 bfloat16 只剩 ${kept} 个，采样值最多差 ${most}。`,
    },
  };

  setup() {
    const { words } = this;
    const RIGHT = this.width - 10;
    const x = (this.x = (step) => LEFT + (step * (RIGHT - LEFT)) / STEPS);
    for (const value of [-1, 0, 1]) {
      const stroke = { stroke: GREY, "stroke-width": value ? 0.3 : 0.8 };
      this.add("path", { d: line([[LEFT, y(value)], [RIGHT, y(value)]]), ...stroke });
      this.label(LEFT - 4, y(value) + 3.5, shown(value, 0), { "text-anchor": "end" });
    }
    const styles = [
      { fill: "none", stroke: BLUE, "stroke-width": 1.2 },
      { fill: "none", stroke: ORANGE, "stroke-width": 1.8, "stroke-dasharray": "5 3" },
    ];
    this.waves = styles.map((style, n) => {
      this.add("path", { d: `M${[LEFT, 140][n]} 8.5h22`, ...style });
      this.label([LEFT, 140][n] + 26, 12, words.waves[n], { "text-anchor": "start" });
      return this.add("path", style);
    });
    this.samples = Array.from({ length: STEPS + 1 }, () => this.add("circle", { r: 3.2, fill: "currentColor" }));
    // The wave is stretched like an accordion: what a finger holds stays under it.
    const touched = this.add("rect", { x: LEFT, y: TOP - 6, width: RIGHT - LEFT, height: HEIGHT + 12, fill: "transparent" });
    const away = (place) => Math.max(place - LEFT, 12);
    const picked = (place, _, from) => this.pick({ omega: this.within("omega", (from.state.omega * away(from.x)) / away(place)) });
    this.onpick(touched, picked, { cursor: "ew-resize" });
    set(this.grip(), { transform: `translate(${x(STEPS / 2)} ${y(0)})` });
    this.from = this.label(LEFT, y(-1) + 18);
    this.to = this.label(RIGHT, y(-1) + 18, "", { "text-anchor": "end" });
    this.label((LEFT + RIGHT) / 2, y(-1) + 18, words.position);
  }

  draw({ omega, start, bfloat16 }) {
    const { words, x } = this;
    const alias = slowestAlias(omega);
    const places = Array.from({ length: POINTS + 1 }, (_, n) => (n * STEPS) / POINTS);
    [omega, alias].forEach((speed, n) => {
      const wave = (place) => Math.sin(omega * start + speed * place); // one phase at the first position
      set(this.waves[n], { d: line(places.map((place) => [x(place), y(wave(place))])) });
    });
    const positions = this.samples.map((_, step) => start + step);
    const kept = bfloat16 ? positions.map(toBfloat16) : positions;
    const values = kept.map((t) => Math.sin(omega * t));
    this.samples.forEach((sample, step) => set(sample, { cx: x(step), cy: y(values[step]) }));
    set(this.from, { text: String(start) });
    set(this.to, { text: String(start + STEPS) });
    const most = Math.max(...values.map((value, step) => Math.abs(value - Math.sin(omega * positions[step]))));
    const asked = Number(omega.toFixed(4));
    const digits = asked === Number(omega.toFixed(2)) && Math.abs(alias) >= 0.005 ? 2 : 4;
    this.sentence =
      (Math.abs(alias - omega) < 1e-9 ? words.own(asked) : words.same(asked, shown(alias, digits))) +
      (bfloat16 ? words.kept(positions.length, new Set(kept).size, shown(most)) : "");
  }

  say() {
    return this.sentence;
  }
}

const y = (value) => TOP + ((1 - value) * HEIGHT) / 2;

customElements.define("live-aliasing", Aliasing);
