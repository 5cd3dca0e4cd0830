/* Two schemes of the sweep of lengths beside each other, seed by seed. The scores come with the page, from the package's
   results (press/live.py), in thousandths: one list of lengths for each seed. */
import { BLUE, GREY, LiveFigure, ORANGE, line, set, shown } from "./figure.js";

// As the table of the page calls them.
const SCHEMES = {
  none: ["no position", "无位置"],
  none_logn: ["no position, log-n", "无位置，log-n"],
  sinusoidal: ["sinusoidal", "正弦"],
  sinusoidal_offset: ["sinusoidal, random start", "正弦，随机起点"],
  learned: ["table", "表"],
  learned_offset: ["table, random start", "表，随机起点"],
  rotary: ["RoPE", "RoPE"],
  rotary_linear: ["RoPE, linear", "RoPE，线性"],
  rotary_ntk: ["RoPE, NTK", "RoPE，NTK"],
  rotary_yarn: ["RoPE, YaRN", "RoPE，YaRN"],
  rotary_window: ["RoPE, far keys hidden", "RoPE，遮住远处"],
  rotary_share_base: ["RoPE, base 13", "RoPE，底数 13"],
  rotary_small_base: ["RoPE, base 6", "RoPE，底数 6"],
  xpos: ["xPos", "xPos"],
  hybrid: ["hybrid", "混合层"],
  alibi: ["ALiBi", "ALiBi"],
  alibi_short: ["ALiBi, steep", "ALiBi，陡"],
  t5: ["T5", "T5"],
};
const named = (n) => Object.fromEntries(Object.entries(SCHEMES).map(([scheme, names]) => [scheme, names[n]]));
const TASKS = ["back", "copy", "sort", "recall", "language"];
const LENGTHS = ["32", "40", "64", "128", "256"];
const [LEFT, TOP, BOTTOM] = [34, 58, 198];
/** A score as Python prints it: a half goes to the even digit. */
const printed = (x) => shown((x * 8) % 4 === 1 ? x - 1e-9 : x);
const LOOKS = [
  { colour: BLUE, dashes: "none", aside: -5 },
  { colour: ORANGE, dashes: "5 3", aside: 5 },
];

class LengthSweep extends LiveFigure {
  static box = [346, 230];
  static rows = 3;
  static stretches = true;
  static controls = [
    { name: "task", value: "back", options: TASKS },
    { name: "length", value: "256", options: LENGTHS },
    { name: "scheme", value: "sinusoidal_offset", options: Object.keys(SCHEMES) },
    { name: "beside", value: "learned_offset", options: Object.keys(SCHEMES) },
  ];
  static words = {
    en: {
      ...named(0),
      drawing: "How two schemes do a task as texts get longer than in training, with the spread of their seeds",
      task: "task",
      length: "tokens",
      scheme: "scheme",
      beside: "beside it",
      accuracy: "share of right answers",
      perplexity: "perplexity: lower is better",
      axis: "tokens in the text",
      trained: "trained",
      guess: "guess",
      reader: "best reader",
      star: (steps) => `* not finished after ${steps} steps`,
      range: (mean, low, high) => `${mean}, seeds ${low} to ${high}`,
      both: (length, one, a, other, b) => `At ${length}: ${one} ${a}; ${other} ${b}. `,
      same: "This is the same scheme twice. Choose another one beside it.",
      guessed: (chance) => `Neither is right twice as often as a guess (${chance}), so there is nothing to compare.`,
      overlap: "Their seeds overlap, so five seeds do not settle which one is better.",
      paired: (a, b) => `Their seeds overlap. Both use the same weights: the first is better with ${a} of 5, the second with ${b}.`,
      equal: "Both use the same weights, and they have the same scores here.",
      apart: (n) => `The difference is larger than the spread: all five seeds of the ${["first", "second"][n]} are better.`,
      little: (n) => `All five seeds of the ${["first", "second"][n]} are better, but by less than 0.01 on average.`,
      unfinished: "Their seeds do not overlap, but * had not finished learning, so more steps may change this.",
    },
    zh: {
      ...named(1),
      drawing: "文本比训练时长，两种方法完成任务的情况，以及种子之间的差别",
      task: "任务",
      length: "词元数",
      scheme: "方法",
      beside: "对照",
      accuracy: "答对的比例",
      perplexity: "困惑度：越低越好",
      axis: "文本的词元数",
      trained: "训练长度",
      guess: "瞎猜",
      reader: "最佳读者",
      star: (steps) => `* ${steps} 步还没学完`,
      range: (mean, low, high) => `${mean}，种子 ${low} 到 ${high}`,
      both: (length, one, a, other, b) => `${length} 处：“${one}”${a}，“${other}”${b}。`,
      same: "两边选了同一种方法。请换一种来对照。",
      guessed: (chance) => `两种方法答对的比例都不到瞎猜（${chance}）的两倍，没有什么可比。`,
      overlap: "两边的种子有重叠：五个种子定不下哪一种更好。",
      paired: (a, b) => `两边的种子有重叠。不过用的是同样五组权重：${a} 组是前一种更好，${b} 组是后一种更好。`,
      equal: "两种方法用的是同样五组权重，在这里得分也完全一样。",
      apart: (n) => `差别超出了种子的范围：${"前后"[n]}一种的五个种子都更好。`,
      little: (n) => `${"前后"[n]}一种的五个种子都更好，只是平均好得不到 0.01。`,
      unfinished: "两边的种子没有重叠，可是带 * 的还没学完，多训练几步，结论也许会变。",
    },
  };

  setup() {
    const { words } = this;
    const RIGHT = this.width - 40;
    const sweep = JSON.parse(this.getAttribute("sweep"));
    this.sweep = sweep;
    // Three rows in both languages: the first scheme has its own.
    const [task, , scheme, beside] = this.form.lastChild.children;
    scheme.style.flexBasis = "100%";
    for (const row of [task, scheme, beside]) row.firstChild.style.minWidth = "4.4em";
    this.x = (i) => LEFT + 10 + (Math.log2(sweep.lengths[i] / sweep.lengths[0]) * (RIGHT - LEFT - 20)) / 3;
    const all = sweep.lengths.map((_, i) => i);
    // Two scales, of which one is shown: of right answers, and of perplexity.
    this.scales = [[[0, 0.5, 1], 0, 1.02], [[3, 3.5, 4], 2.85, 4.05]].map(([ticks, least, most], k) => {
      const y = (value) => BOTTOM - ((value - least) / (most - least)) * (BOTTOM - TOP);
      const scale = this.add("g");
      for (const value of ticks) {
        this.add("path", { d: line([[LEFT, y(value)], [RIGHT, y(value)]]), stroke: GREY, "stroke-width": 0.3 }, scale);
        scale.append(this.label(LEFT - 5, y(value) + 3.5, value, { "text-anchor": "end" }));
      }
      scale.append(this.label(LEFT - 28, TOP - 10, words[["accuracy", "perplexity"][k]], { "text-anchor": "start" }));
      const guess = y(sweep.chance[TASKS[k && 4]]);
      const dotted = { fill: "none", stroke: GREY, "stroke-dasharray": "1.5 2.5" };
      this.add("path", { d: line([[LEFT, guess], [RIGHT, guess]]), ...dotted }, scale);
      scale.append(this.label(RIGHT + 4, guess + 3.5, words.guess, { "text-anchor": "start" }));
      if (k) {
        const floor = line(all.map((i) => [this.x(i), y(sweep.floor[i])]));
        this.add("path", { d: floor, fill: "none", stroke: GREY }, scale);
        scale.append(this.label(this.x(2), y(sweep.floor[2]) + 14, words.reader));
      }
      return { scale, y };
    });
    this.add("path", { d: `M${this.x(0)} ${TOP}V${BOTTOM}`, stroke: GREY, "stroke-width": 5, "stroke-opacity": 0.4 });
    sweep.lengths.forEach((length, i) => this.label(this.x(i), BOTTOM + 13, length));
    this.label(this.x(0), BOTTOM + 27, words.trained);
    this.label((this.x(0) + RIGHT) / 2 + 30, BOTTOM + 27, words.axis);
    this.star = this.label(RIGHT, TOP - 10, words.star(sweep.steps), { "text-anchor": "end" });
    this.chosen = this.add("path", { d: `M0 ${TOP}V${BOTTOM}`, stroke: "currentColor", "stroke-width": 0.8 });
    this.shapes = LOOKS.map(({ colour }) => this.add("path", { fill: colour, "fill-opacity": 0.16 }));
    this.curves = LOOKS.map(({ colour, dashes }, k) => {
      const stroke = { fill: "none", stroke: colour, "stroke-width": 1.8, "stroke-dasharray": dashes };
      this.add("path", { d: `M${LEFT - 28} ${11 + 15 * k}h22`, transform: "translate(0 -3.5)", ...stroke });
      return {
        name: this.label(LEFT, 11 + 15 * k, "", { "text-anchor": "start" }),
        range: this.label(this.width - 4, 11 + 15 * k, "", { "text-anchor": "end" }),
        curve: this.add("path", stroke),
        means: all.map((i) => {
          const place = k ? { x: this.x(i) - 2.6, width: 5.2, height: 5.2 } : { cx: this.x(i), r: 3 };
          return this.add(k ? "rect" : "circle", { fill: colour, ...place });
        }),
        seeds: all.map(() => this.add("circle", { r: 2.4, fill: "none", stroke: colour, "stroke-width": 1.1 })),
      };
    });
    const touched = this.add("rect", { x: LEFT, y: TOP, width: RIGHT - LEFT, height: BOTTOM + 18 - TOP, fill: "transparent" });
    const near = (px) => all.reduce((best, i) => (Math.abs(this.x(i) - px) < Math.abs(this.x(best) - px) ? i : best));
    this.onpick(touched, (px) => this.pick({ length: LENGTHS[near(px)] }), { cursor: "ew-resize" });
    this.mark = this.grip();
  }

  /** What a scheme has on a task: its mean, least and largest score at each length, and each seed's. */
  found(scheme, task) {
    const seeds = this.sweep.scores[scheme][TASKS.indexOf(task)].map((row) => row.map((score) => score / 1000));
    const at = seeds[0].map((_, i) => seeds.map((row) => row[i]));
    const means = at.map((scores) => scores.reduce((a, b) => a + b) / scores.length);
    return { at, means, low: at.map((scores) => Math.min(...scores)), high: at.map((scores) => Math.max(...scores)) };
  }

  draw({ task, length, scheme, beside }) {
    const i = LENGTHS.indexOf(length);
    const k = Number(task === "language");
    this.scales.forEach(({ scale }, other) => set(scale, { display: other === k ? "inline" : "none" }));
    const { y } = this.scales[k];
    this.pair = [scheme, beside].map((name) => ({
      ...this.found(name, task),
      star: this.sweep.unfinished[task].includes(name) ? "*" : "",
    }));
    this.pair.forEach(({ at, means, low, high, star }, n) => {
      const { name, range, curve, means: marks, seeds } = this.curves[n];
      const edge = (values) => values.map((value, j) => [this.x(j), y(value)]);
      set(this.shapes[n], { d: line([...edge(high), ...edge(low).reverse()]) + "z" });
      set(curve, { d: line(edge(means)) });
      marks.forEach((mark, j) => set(mark, n ? { y: y(means[j]) - 2.6 } : { cy: y(means[j]) }));
      seeds.forEach((seed, j) => set(seed, { cx: this.x(i) + LOOKS[n].aside, cy: y(at[i][j]) }));
      set(name, { text: this.words[[scheme, beside][n]] + star });
      set(range, { text: this.words.range(...[means, low, high].map((values) => printed(values[i]))) });
    });
    set(this.chosen, { transform: `translate(${this.x(i)} 0)` });
    set(this.mark, { transform: `translate(${this.x(i)} ${BOTTOM})` });
    set(this.star, { display: this.pair.some(({ star }) => star) ? "inline" : "none" });
  }

  say({ task, length, scheme, beside }) {
    const { words, sweep } = this;
    if (scheme === beside) return words.same;
    const i = LENGTHS.indexOf(length);
    const [a, b] = this.pair;
    const chance = sweep.chance[task];
    const lower = task === "language";
    const better = (one, other) => (lower ? one < other : one > other);
    const begins = (name) => sweep.begins[name] ?? name;
    const verdict = () => {
      if (!lower && Math.max(a.means[i], b.means[i]) < 2 * chance) return words.guessed(printed(chance));
      if (a.low[i] <= b.high[i] && b.low[i] <= a.high[i]) {
        if (begins(scheme) !== begins(beside)) return words.overlap;
        const wins = (one, other) => one.at[i].filter((score, j) => better(score, other.at[i][j])).length;
        const counts = [wins(a, b), wins(b, a)];
        return counts[0] + counts[1] ? words.paired(...counts) : words.equal;
      }
      if (a.star || b.star) return words.unfinished;
      const clear = Math.abs(a.means[i] - b.means[i]) >= 0.01;
      return words[clear ? "apart" : "little"](Number(better(b.means[i], a.means[i])));
    };
    const [one, other] = [scheme, beside].map((name, n) => words[name] + this.pair[n].star);
    return words.both(length, one, printed(a.means[i]), other, printed(b.means[i])) + verdict();
  }
}
customElements.define("live-length-sweep", LengthSweep);
