/* A table stretched to another number of rows: on the old ruler, where each new row lies between two old ones, and over
   the positions, where it stands afterwards. */
import { BLUE, GREEN, GREY, LiveFigure, ORANGE, line, set, shown } from "./figure.js";
import { interpolateTable, sinusoidalEncoding, taps } from "./posenc.js";

const [ROWS, DIM, BASE] = [16, 32, 100]; // the trained table of the page, played by a sinusoidal code
const MOST = 64;
const LEFT = 30;
const RULER = [50, 110]; // top and bottom
const PLACES = [158, 210];
const y = ([top, bottom], value) => (top + bottom) / 2 - (value * (bottom - top)) / 2;
const TRAINED = Array.from({ length: ROWS }, (_, t) => sinusoidalEncoding(t, DIM, BASE));
const circle = (x, y) => `M${(x - 3.2).toFixed(2)} ${y.toFixed(2)}a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0 -6.4 0`;
const far = (a, b) => Math.hypot(...a.map((x, i) => x - b[i]));

class TableStretch extends LiveFigure {
  static box = [346, 244];
  static rows = 4;
  static stretches = true;
  static controls = [
    { name: "N", min: 8, max: MOST, value: 48, steps: "N" },
    { name: "j", min: 0, max: MOST - 1, value: 20 },
    { name: "column", value: "4", options: ["0", "4", "12", "24"] },
    { name: "marks", value: "corners", options: ["corners", "cells"] },
  ];
  static words = {
    en: {
      drawing: "A table of 16 rows stretched to N: what each new row is made of, and where it stands",
      caption: "One column of the table. Above, what the new row is made of; below, the trained rows, then the clamped and the interpolated table.",
      N: "rows N",
      j: "new row j",
      column: "column",
      marks: "marks by",
      corners: "corners",
      cells: "cells",
      ruler: ["old row, kept", "old, lost", "new row", "the code"],
      places: ["trained", "clamped", "interpolated"],
      rows: "old row",
      position: "position",
      mixed: (j, length, at, [a, b], [v, w]) => `New row ${j} of ${length} lies at ${at} on the old ruler: ${v}\u00a0×\u00a0row\u00a0${a} + ${w}\u00a0×\u00a0row\u00a0${b}.`,
      same: (j, length, row) => `New row ${j} of ${length} is old row ${row}, unchanged.`,
      costs: (step, kept) => ` Step to a neighbour: ${step} of an old one. Old rows left: ${kept} of ${ROWS}.`,
    },
    zh: {
      drawing: "把 16 行的表拉长到 N 行：新的一行由什么合成，又落在哪个位置",
      caption: "表的一列。上图：新的一行由哪几行合成。下图：训练过的行，以及钳位的表和插值的表。",
      N: "行数 N",
      j: "新行 j",
      column: "列",
      marks: "对齐",
      corners: "端点",
      cells: "格子",
      ruler: ["留下的旧行", "丢掉的旧行", "新行", "编码本身"],
      places: ["训练所得", "钳位", "插值"],
      rows: "旧表的行",
      position: "位置",
      mixed: (j, length, at, [a, b], [v, w]) => `${length} 行里的第 ${j} 行落在旧尺子的 ${at} 处：${v} × 第 ${a} 行 + ${w} × 第 ${b} 行。`,
      same: (j, length, row) => `${length} 行里的第 ${j} 行就是旧的第 ${row} 行，没有变。`,
      costs: (step, kept) => `它离相邻一行的距离，是旧表里相邻两行的 ${step} 倍。${ROWS} 个旧行里，原样留下的有 ${kept} 个。`,
    },
  };

  setup() {
    const { words, inputs } = this;
    const RIGHT = this.width - 12;
    const onRuler = (this.onRuler = (place) => LEFT + (place * (RIGHT - LEFT)) / (ROWS - 1));
    const atPosition = (this.atPosition = (t) => LEFT + (t * (RIGHT - LEFT)) / (MOST - 1));
    this.column = undefined;
    for (const [name, share] of [["column", 35], ["marks", 50]]) inputs[name][0].parentElement.style.flexBasis = `${share}%`; // a row of their own
    const dots = (stroke, width) => ({ stroke, "stroke-width": width, "stroke-linecap": "round" });
    const looks = {
      kept: dots(BLUE, 7),
      lost: { stroke: BLUE, "stroke-width": 1.2 },
      rows: dots(ORANGE, 3.4),
      code: { stroke: GREEN, "stroke-width": 1.4 },
      trained: { "stroke-linejoin": "round", stroke: BLUE, "stroke-width": 4, "stroke-opacity": 0.45 },
      clamped: { stroke: GREY, "stroke-width": 1.6, "stroke-dasharray": "5 3" },
    };
    const path = (name, data = {}, parent = this.svg) => this.add("path", { fill: "none", ...looks[name], ...data }, parent);
    const legend = (names, texts, lefts, top) =>
      names.forEach((name, n) => {
        const entry = this.add("g", { transform: `translate(${lefts[n]} ${top})` });
        const sign = { kept: "M6 -3.5h0", lost: circle(6, -3.5), rows: "M1 -3.5h0M9 -3.5h0" }[name] ?? "M-4 -3.5H12";
        path(name, { d: sign }, entry);
        set(this.add("text", { x: 17 }, entry), { text: texts[n] });
      });
    legend(["kept", "lost", "rows", "code"], words.ruler, [LEFT - 6, 118, 195, 267], 12);
    legend(["trained", "clamped", "rows"], words.places, [LEFT, 118, 195], 146);
    for (const panel of [RULER, PLACES]) {
      for (const value of [-1, 0, 1]) {
        this.add("path", { d: line([[LEFT, y(panel, value)], [RIGHT, y(panel, value)]]), stroke: GREY, "stroke-width": value ? 0.3 : 0.8 });
        this.label(LEFT - 7, y(panel, value) + 3.5, shown(value, 0), { "text-anchor": "end" });
      }
    }
    for (let row = 0; row < ROWS; row += 5) this.label(onRuler(row), RULER[1] + 15, row);
    this.label((onRuler(5) + onRuler(10)) / 2, RULER[1] + 15, words.rows);
    for (const t of [0, 15, 31, 47, 63]) this.label(atPosition(t), PLACES[1] + 15, t);
    this.label((LEFT + RIGHT) / 2, PLACES[1] + 28, words.position);

    this.code = path("code");
    this.chords = this.add("path", { fill: "none", stroke: BLUE, "stroke-width": 0.8 });
    [this.lost, this.kept, this.marks] = ["lost", "kept", "rows"].map((name) => path(name));
    this.two = [0, 1].map(() => ({
      ring: this.add("circle", { r: 6, fill: "none", stroke: "currentColor", "stroke-width": 1.6 }),
      share: this.label(0, 0),
    }));
    [this.trained, this.clamped, this.rows] = ["trained", "clamped", "rows"].map((name) => path(name));
    const chosen = { r: 4.5, fill: ORANGE, stroke: "currentColor", "stroke-width": 1.4 };
    this.chosen = [RULER, PLACES].map(() => ({ line: this.add("path", { stroke: "currentColor", "stroke-width": 0.8 }), dot: this.add("circle", chosen) }));
    this.end = this.add("g");
    this.add("path", { d: `M0 ${PLACES[0] - 5}V${PLACES[1] + 3}`, stroke: ORANGE, "stroke-width": 2.4, "stroke-linecap": "round" }, this.end);
    this.grip(0, this.add("g", { transform: `translate(0 ${y(PLACES, 0)})` }, this.end));

    const touched = ([top, bottom]) => this.add("rect", { x: LEFT - 10, y: top - 10, width: RIGHT - LEFT + 22, height: bottom - top + 24, fill: "transparent" });
    this.onpick(touched(RULER), (x) => {
      const places = taps(ROWS, this.state.N, this.state.marks === "corners").map(({ at }) => Math.abs(onRuler(at) - x));
      this.pointed(places.indexOf(Math.min(...places)));
    });
    const position = (x) => ((x - LEFT) * (MOST - 1)) / (RIGHT - LEFT);
    this.onpick(touched(PLACES), (x, _, from) => {
      from.isEnd ??= position(x) > this.state.N - 4;
      if (from.isEnd) this.pick({ N: this.within("N", from.state.N + position(x) - position(from.x)) });
      else this.pointed(this.within("j", position(x)));
    });
  }

  /** A shorter table has no row j beyond its end. */
  show(hand) {
    super.show(hand);
    for (const input of this.inputs.j) if (input !== hand) input.value = Math.min(this.state.j, this.state.N - 1);
  }

  settled() {
    super.settled();
    this.show(); // a row that was typed beyond the end, too
  }

  /** Another row is looked at; the sign of what can be dragged stays. */
  pointed(j) {
    this.state = { ...this.state, j: Math.min(j, this.state.N - 1) };
    this.show();
    this.frame ??= requestAnimationFrame(() => this.drawn());
  }

  draw({ N, j: asked, column, marks }) {
    const { onRuler, atPosition } = this;
    const j = Math.min(asked, N - 1);
    const byCorners = marks === "corners";
    const value = (row) => row[Number(column)];
    const found = taps(ROWS, N, byCorners);
    const rows = interpolateTable(TRAINED, N, byCorners);
    const dots = (points) => points.map(([a, b]) => `M${a.toFixed(2)} ${b.toFixed(2)}h0`).join("");
    const { at, rows: two, weights } = found[j];

    const old = TRAINED.map((row, t) => [onRuler(t), y(RULER, value(row))]);
    if (this.column !== column) {
      this.column = column;
      const fine = Array.from({ length: 8 * (ROWS - 1) + 1 }, (_, n) => n / 8);
      set(this.code, { d: line(fine.map((t) => [onRuler(t), y(RULER, value(sinusoidalEncoding(t, DIM, BASE)))])) });
      set(this.chords, { d: line(old) });
      set(this.trained, { d: line(TRAINED.map((row, t) => [atPosition(t), y(PLACES, value(row))])) });
    }
    set(this.marks, { d: dots(found.map(({ at }, n) => [onRuler(at), y(RULER, value(rows[n]))])) });
    set(this.rows, { d: dots(rows.map((row, t) => [atPosition(t), y(PLACES, value(row))])) });
    const last = y(PLACES, value(TRAINED[ROWS - 1]));
    set(this.clamped, { d: N > ROWS ? line([[atPosition(ROWS - 1), last], [atPosition(N - 1), last]]) : "" });
    set(this.end, { transform: `translate(${atPosition(N - 1)} 0)` });
    const isSame = two[0] === two[1] || weights.some((weight) => weight > 1 - 1e-9);
    const second = shown(weights[1]);
    const shares = [shown(1 - Number(second)), second]; // rounded, they add up to 1 all the same
    const main = weights[0] >= weights[1] ? 0 : 1;
    this.two.forEach(({ ring, share }, n) => {
      const hidden = isSame && n !== main ? "hidden" : "visible";
      const [cx, cy] = old[two[n]];
      set(ring, { cx, cy, visibility: hidden });
      set(share, { x: cx + (n ? 4 : -4), y: RULER[0] - 13, "text-anchor": isSame ? "middle" : n ? "start" : "end" });
      set(share, { text: isSame ? "1" : shares[n], visibility: hidden });
    });
    const shownAt = [onRuler(at), atPosition(j)];
    this.chosen.forEach(({ line: upright, dot }, n) => {
      const panel = [RULER, PLACES][n];
      set(upright, { d: `M${shownAt[n].toFixed(2)} ${panel[0] - 8}V${panel[1] + 3}` });
      set(dot, { cx: shownAt[n], cy: y(panel, value(rows[j])) });
    });

    const kept = new Set();
    for (const { rows: [a, b], weights: [v, w] } of found) {
      if (a === b || v > 1 - 1e-9) kept.add(a);
      else if (w > 1 - 1e-9) kept.add(b);
    }
    set(this.kept, { d: dots(old.filter((_, row) => kept.has(row))) });
    set(this.lost, { d: old.map(([a, b], row) => (kept.has(row) ? "" : circle(a, b))).join("") });
    const step = far(rows[j], rows[j < N - 1 ? j + 1 : j - 1]) / far(TRAINED[0], TRAINED[1]);
    const { words } = this;
    const made = isSame ? words.same(j, N, two[main]) : words.mixed(j, N, shown(at), two, shares);
    this.sentence = made + words.costs(shown(step), kept.size);
  }

  say() {
    return this.sentence;
  }
}
customElements.define("live-table-stretch", TableStretch);
