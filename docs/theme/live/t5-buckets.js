/* The buckets of T5: how many, how far they reach, and which of them training texts have used. */
import { BLUE, GREY, LiveFigure, ORANGE, line, set, shown } from "./figure.js";
import { t5BucketStarts } from "./posenc.js";

const FAR = 256; // offsets from −256 to 256 are drawn
const MOST = 32; // buckets
const [LEFT, TOP, HEIGHT] = [24, 32, 128];
const y = (bucket) => TOP + HEIGHT * (1 - bucket / MOST);

class T5Buckets extends LiveFigure {
  static box = [346, 196];
  static rows = 5;
  static wide = 4;
  static stretches = true;
  static controls = [
    { name: "k", min: -FAR, max: FAR, value: -20, steps: "k" },
    { name: "reach", min: 20, max: FAR, value: 128 },
    { name: "length", min: 2, max: FAR, value: 64 },
    { name: "buckets", options: ["8", "16", "32"], value: "32" },
    { name: "bidirectional", value: true },
  ];
  static words = {
    en: {
      drawing: "The bucket of each offset, a staircase",
      caption: "The bucket of each offset, and which of the buckets texts of a given length train. Blue: all offsets in the bucket of k.",
      k: "offset k",
      bucket: "bucket",
      reach: "reach",
      length: "text length",
      buckets: "buckets",
      bidirectional: "both sides",
      legend: ["trained bucket", "never trained", "beyond the texts"],
      beyond: (k) => `${k} and all beyond`,
      right: "0 and all to the right",
      range: (from, to) => `${from} to ${to}`,
      said: (k, bucket, range, alone, length, used, buckets) =>
        (alone ? `Offset ${k} has bucket ${bucket} to itself. ` : `Offset ${k} is in bucket ${bucket}, with ${range}. `) +
        `Texts of ${length} tokens train ${used} of the ${buckets} buckets.`,
    },
    zh: {
      drawing: "每个偏移所在的桶，画成阶梯",
      caption: "每个偏移所在的桶，以及一定长度的文本训练得到哪些桶。蓝色：和 k 同桶的所有偏移。",
      k: "偏移 k",
      bucket: "桶号",
      reach: "最远距离",
      length: "文本长度",
      buckets: "桶数",
      bidirectional: "左右两侧",
      legend: ["训练过的桶", "没训练过", "没有这么长的文本"],
      beyond: (k) => `${k} 和更远的`,
      right: "0 和右边所有的",
      range: (from, to) => `${from} 到 ${to}`,
      said: (k, bucket, range, alone, length, used, buckets) =>
        (alone
          ? `偏移 ${k} 独占 ${bucket} 号桶。`
          : `偏移 ${k} 在 ${bucket} 号桶，同桶的是 ${range}。`) +
        `${length} 个词元的文本训练到 ${buckets} 个桶里的 ${used} 个。`,
    },
  };

  setup() {
    const RIGHT = (this.right = this.width - 6);
    const x = (this.x = (k) => (LEFT + RIGHT) / 2 + (k * (RIGHT - LEFT)) / (2 * FAR + 1));
    const style = { fill: GREY, "fill-opacity": 0.2 };
    this.unseen = [0, 1].map(() => this.add("rect", { y: TOP, height: HEIGHT, ...style }));
    this.band = this.add("rect", { y: TOP, height: HEIGHT, fill: BLUE, "fill-opacity": 0.22 });
    for (const bucket of [0, 8, 16, 24, 32]) {
      this.add("path", { d: line([[LEFT, y(bucket)], [RIGHT, y(bucket)]]), stroke: GREY, "stroke-width": bucket ? 0.3 : 0.8 });
      this.label(LEFT - 4, y(bucket) + 3.5, bucket, { "text-anchor": "end" });
    }
    for (const k of [-256, -128, 0, 128, 256]) this.label(Math.min(x(k), RIGHT - 6), TOP + HEIGHT + 14, shown(k, 0));
    this.add("path", { d: line([[x(0), TOP], [x(0), TOP + HEIGHT]]), stroke: GREY, "stroke-width": 0.8 });
    this.label((LEFT + RIGHT) / 2, TOP + HEIGHT + 29, this.words.k);
    this.reaches = [-1, 1].map(() => ({
      mark: this.add("path", { d: `M0 ${TOP}v${HEIGHT}`, stroke: GREY, "stroke-dasharray": "2 3" }),
      name: this.label(0, TOP - 4, this.words.reach),
    }));
    this.steps = [
      this.add("path", { fill: "none", stroke: BLUE, "stroke-width": 1.8 }),
      this.add("path", { fill: "none", stroke: ORANGE, "stroke-width": 1.8, "stroke-dasharray": "4 2" }),
    ];
    this.dot = this.add("circle", { r: 3.5, fill: BLUE });
    const marks = [
      { d: "M0 0h16", stroke: BLUE, "stroke-width": 1.8 },
      { d: "M0 0h16", stroke: ORANGE, "stroke-width": 1.8, "stroke-dasharray": "4 2" },
      { d: "M0 -5h12v10h-12z", ...style },
    ];
    this.words.legend.forEach((text, n) => {
      const place = this.add("g", { transform: `translate(${[LEFT, 128, 226][n]} 8)` });
      this.add("path", marks[n], place);
      set(this.add("text", { x: 20, y: 3.5 }, place), { text });
    });
    this.label(4, TOP - 8, this.words.bucket, { "text-anchor": "start" });
    this.mark = this.grip();
    // Beside the edge of the grey field the length of the texts is dragged, elsewhere the offset.
    const touched = this.add("rect", { x: LEFT, y: TOP, width: RIGHT - LEFT, height: HEIGHT, fill: "transparent" });
    const picked = (px, _, from) => {
      const k = (place) => ((place - x(0)) * (2 * FAR + 1)) / (RIGHT - LEFT);
      const { length } = from.state;
      if (Math.abs(from.x - x(0.5 - length)) < 7) this.pick({ length: this.within("length", 0.5 - k(px)) });
      else this.pick({ k: this.within("k", k(px)) });
    };
    this.onpick(touched, picked, { cursor: "ew-resize" });
  }

  /** The buckets that hold any offsets, on which side, and the nearest and furthest distance in them. */
  ladder({ reach, buckets, bidirectional }) {
    const side = bidirectional ? buckets / 2 : Number(buckets);
    const starts = t5BucketStarts(side, reach);
    const steps = (way) =>
      starts
        .map((start, j) => ({
          way,
          bucket: j + (way > 0 ? side : 0),
          near: way > 0 ? Math.max(start, 1) : start,
          far: (starts[j + 1] ?? Infinity) - 1,
        }))
        .filter(({ near, far }) => near <= far);
    return [...steps(-1), ...(bidirectional ? steps(1) : [{ way: 1, bucket: 0, near: 1, far: Infinity }])];
  }

  draw(state) {
    const { x, right: RIGHT } = this;
    const { k, reach, length, bidirectional } = state;
    const ladder = this.ladder(state);
    const paths = ["", ""];
    const used = new Set();
    for (const [n, { way, bucket, near, far }] of ladder.entries()) {
      if (near < length) used.add(bucket);
      if (near > FAR) continue;
      const before = ladder[n - 1]?.way === way ? ladder[n - 1].bucket : bucket;
      const ends = [near - 0.5, Math.min(far, FAR) + 0.5].map((distance) => x(way * distance).toFixed(2));
      paths[used.has(bucket) ? 0 : 1] += `M${ends[0]} ${y(before).toFixed(2)}V${y(bucket).toFixed(2)}H${ends[1]}`;
    }
    this.steps.forEach((step, n) => set(step, { d: paths[n] || "M0 0" }));
    const held = ladder.find(({ way, near, far }) => way * k >= near && way * k <= far);
    const toRight = !bidirectional && held.bucket === 0;
    const [near, far] = toRight ? [0, FAR] : [held.near, held.far];
    const ends = [near - 0.5, Math.min(far, FAR) + 0.5].map((distance) => x((toRight ? 1 : held.way) * distance));
    set(this.band, { x: Math.min(...ends), width: Math.abs(ends[1] - ends[0]) });
    set(this.dot, { cx: x(k), cy: y(held.bucket) });
    this.reaches.forEach(({ mark, name }, n) => {
      const place = x((n ? 1 : -1) * reach);
      const opacity = n && !bidirectional ? 0 : 1;
      const own = bidirectional && x(reach) - x(-reach) < 50 ? n : 1; // side by side they would be one word
      set(mark, { transform: `translate(${place} 0)`, opacity });
      set(name, { x: Math.min(Math.max(place, LEFT + 32), RIGHT - 20), opacity: own && opacity });
    });
    const unseen = [x(0.5 - length) - LEFT, RIGHT - x(length - 0.5)];
    this.unseen.forEach((field, n) => {
      set(field, { x: n ? RIGHT - unseen[1] : LEFT, width: unseen[n], opacity: n && !bidirectional ? 0 : 1 });
    });
    set(this.mark, { transform: `translate(${x(0.5 - length)} ${y(4)})` });
    const { words } = this;
    const offset = (distance) => shown(held.way * distance || 0, 0);
    let range = far === Infinity ? words.beyond(offset(near)) : words.range(offset(near), offset(far));
    if (toRight) range = words.right;
    this.found = [held.bucket, range, near === far, length, used.size];
  }

  say({ k, buckets }) {
    return this.words.said(shown(k, 0), ...this.found, buckets);
  }
}
customElements.define("live-t5-buckets", T5Buckets);
