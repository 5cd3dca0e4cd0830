/* Two flashes a fixed time apart, on a ruler of seconds and on one that counts frames, which the frame rate stretches. */
import { BLUE, GOLD, GREY, LiveFigure, ORANGE, line, set, shown } from "./figure.js";
import { nearestIndex, rotaryScores, timeFrequencies } from "./posenc.js";

const CLIP = 4; // seconds
const LEARNED = 10; // frames a second
const [OMEGA] = timeFrequencies(4, 4, 32); // of the pair whose period is the clip
const LEFT = 71;
const [TICKS, SECONDS, FRAMES] = [34, 72, 112]; // of the clip's frames, and of the rulers
const [DIALS, RADIUS] = [186, 27];
const EVENTS = ["first", "second"];

class FrameRate extends LiveFigure {
  static box = [346, 232];
  static rows = 4;
  static stretches = true;
  static controls = [
    { name: "fps", min: 5, max: 30, value: 30, steps: "fps" },
    ...[1, 1.5].map((value, n) => ({ name: EVENTS[n], min: 0, max: CLIP, step: 0.1, value })),
  ];
  static words = {
    en: {
      drawing: "Two flashes in a clip, with a ruler of seconds and a ruler that counts frames",
      fps: "frames a second",
      first: "flash A, seconds",
      second: "flash B, seconds",
      names: ["frames", "seconds", "frames / 10"],
      turned: "Turned from A to B: a pair of columns with a period of 4",
      dials: ["seconds", "frames / 10"],
      turns: (turns) => `${turns} turns`,
      score: (score) => `score ${score}`,
      counted: (frames, gap) => `${frames === 1 ? "1 frame" : `${frames} frames`} = ${gap}`,
      judged: (more) => (more ? "more than one" : "not more than one"),
      said: (gap, more, fps, frames, counted, other, right) =>
        `By seconds: ${gap}, ${more} second. By frames, at ${fps} a second: ${frames === 1 ? "1 frame" : `${frames} frames`}, taken for ${counted}, ${other} second: ${right ? "right" : "wrong"}.`,
    },
    zh: {
      drawing: "一段视频里的两次闪光，一把以秒为单位的尺，一把数帧的尺",
      fps: "每秒帧数",
      first: "闪光 A（秒）",
      second: "闪光 B（秒）",
      names: ["帧", "秒", "帧数 / 10"],
      turned: "从 A 到 B，周期为 4 的一对列转过多少",
      dials: ["秒", "帧数 / 10"],
      turns: (turns) => `${turns} 圈`,
      score: (score) => `分数 ${score}`,
      counted: (frames, gap) => `${frames} 帧 = ${gap}`,
      judged: (more) => (more ? "超过一秒" : "不超过一秒"),
      said: (gap, more, fps, frames, counted, other, right) =>
        `按秒：${gap}，${more}。按帧，每秒 ${fps} 帧时：${frames} 帧，当作 ${counted}，${other}，${right ? "判断对了" : "判断错了"}。`,
    },
  };

  setup() {
    const { words } = this;
    const RIGHT = (this.right = this.width - 12);
    const x = (this.x = (t) => LEFT + (t * (RIGHT - LEFT)) / CLIP);
    [TICKS, SECONDS, FRAMES].forEach((y, n) => {
      this.label(LEFT - 8, y + 3.5, words.names[n], { "text-anchor": "end" });
      if (n) this.add("path", { d: `M${LEFT} ${y}H${RIGHT}`, stroke: "currentColor", "stroke-width": 0.8 });
    });
    this.ticks = this.add("path", { stroke: GREY, "stroke-width": 0.8 });
    this.marks = this.add("path", { stroke: "currentColor", "stroke-width": 0.8 });
    const marks = Array.from({ length: CLIP + 1 }, (_, t) => `M${x(t)} ${SECONDS}v4`);
    this.add("path", { d: marks.join(""), stroke: "currentColor", "stroke-width": 0.8 });
    marks.forEach((_, t) => this.label(x(t), SECONDS + 14, String(t)));
    this.counts = Array.from({ length: 13 }, () => this.label(0, FRAMES + 14));
    this.gaps = [[SECONDS, BLUE], [FRAMES, ORANGE]].map(([y, stroke]) => ({
      bar: this.add("path", { stroke, "stroke-width": 5 }),
      label: this.label(0, y - 7, "", { "font-weight": 600 }),
    }));
    this.hand("fps", this.add("rect", { x: LEFT - 6, y: 90, width: RIGHT - LEFT + 12, height: 40, fill: "transparent" }));
    this.hand("fps", this.add("rect", { x: LEFT - 6, y: 26, width: RIGHT - LEFT + 12, height: 24, fill: "transparent" }));
    this.events = EVENTS.map((name, n) => {
      const group = this.add("g");
      const stroke = { stroke: GOLD, "stroke-width": 1.2, "stroke-dasharray": "3 2" };
      this.add("path", { d: `M0 18V${FRAMES}`, "pointer-events": "none", ...stroke }, group);
      this.add("circle", { cy: 11, r: 9, fill: GOLD }, group);
      set(this.add("text", { y: 14.5, "text-anchor": "middle", "font-weight": 600, fill: "#fff" }, group), { text: "AB"[n] });
      this.hand(name, this.add("rect", { x: -12, width: 24, height: 26, fill: "transparent" }, group));
      return group;
    });
    this.mark = this.grip();
    this.label(this.width / 2, 147, words.turned);
    this.dials = [BLUE, ORANGE].map((stroke, n) => {
      const dial = this.add("g", { transform: `translate(${this.width / 2 + [-113, 49][n]} ${DIALS})` });
      this.add("circle", { r: RADIUS, fill: "none", stroke: GREY, "stroke-width": 0.8 }, dial);
      this.add("path", { d: `M0 0V${-RADIUS}`, stroke: GREY, "stroke-width": 1.2 }, dial);
      const hand = this.add("path", { d: `M0 0V${-RADIUS}`, stroke, "stroke-width": 2.4 }, dial);
      const texts = [-10, 4, 18].map((y) => this.add("text", { x: RADIUS + 9, y }, dial));
      set(texts[0], { text: words.dials[n], "font-weight": 600 });
      return { hand, texts };
    });
  }

  /** What is dragged: a flash goes along, and so does the frame that is taken in the hand, which changes the rate. */
  hand(name, element) {
    const time = (px) => ((px - LEFT) * CLIP) / (this.right - LEFT);
    const picked = (px, _, from) => {
      const start = from.state[name];
      const moved = time(px) - time(from.x);
      if (name !== "fps") return this.pick({ [name]: this.within(name, start + moved) });
      const held = Math.max(time(from.x), 0.2);
      this.pick({ fps: this.within("fps", (start * held) / Math.max(held + moved, 0.05)) });
    };
    this.onpick(element, picked, { cursor: "ew-resize" });
  }

  draw({ fps, first, second }) {
    const { x, right: RIGHT } = this;
    const frames = Array.from({ length: CLIP * fps + 1 }, (_, j) => j / fps);
    set(this.ticks, { d: frames.map((t) => `M${x(t).toFixed(2)} ${TICKS - 5}v10`).join("") });
    const marks = this.counts.map((_, n) => (LEARNED * n) / fps).filter((t) => t <= CLIP);
    set(this.marks, { d: marks.map((t) => `M${x(t).toFixed(2)} ${FRAMES}v4`).join("") });
    this.counts.forEach((label, n) => set(label, { x: x(marks[n] ?? 0), text: n in marks ? String(n) : "" }));
    const times = [first, second];
    const index = times.map((t) => nearestIndex(t, frames));
    const offsets = [second - first, (index[1] - index[0]) / LEARNED].map((gap) => Number(gap.toFixed(9)));
    const places = [times, index.map((j) => frames[j])];
    this.events.forEach((group, n) => set(group, { transform: `translate(${x(times[n]).toFixed(2)} 0)` }));
    this.count = Math.abs(index[1] - index[0]);
    this.found = offsets.map(Math.abs);
    const texts = [shown(this.found[0]), this.words.counted(this.count, shown(this.found[1]))];
    this.gaps.forEach(({ bar, label }, n) => {
      const [from, to] = places[n].map(x);
      const [left, right, room] = [Math.min(from, to), Math.max(from, to), n ? 98 : 32];
      const beside = RIGHT - right > room ? [right + 5, "start"] : left - LEFT > room ? [left - 5, "end"] : [(left + right) / 2, "middle"];
      set(bar, { d: line([[from, [SECONDS, FRAMES][n]], [to, [SECONDS, FRAMES][n]]]) });
      set(label, { x: beside[0], "text-anchor": beside[1], text: texts[n] });
    });
    const unit = [1, 0];
    this.dials.forEach(({ hand, texts }, n) => {
      const [score] = rotaryScores(unit, unit, offsets[n], [OMEGA]);
      set(hand, { transform: `rotate(${(-offsets[n] * OMEGA * 180) / Math.PI})` });
      set(texts[1], { text: this.words.turns(shown((offsets[n] * OMEGA) / (2 * Math.PI))) });
      set(texts[2], { text: this.words.score(shown(score)) });
    });
    set(this.mark, { transform: `translate(${x(marks[1])} ${FRAMES})` });
  }

  say({ fps }) {
    const [gap, counted] = this.found;
    const { said, judged } = this.words;
    return said(shown(gap), judged(gap > 1), fps, this.count, shown(counted), judged(counted > 1), gap > 1 === counted > 1);
  }
}
customElements.define("live-frame-rate", FrameRate);
