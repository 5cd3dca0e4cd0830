/* A patch of a picture and the patches whose codes are most like its own: as a list, and by row and column. */
import { BLUE, GREY, LiveFigure, ORANGE, set } from "./figure.js";
import { coordinateEncoding, dot, sinusoidalEncoding } from "./posenc.js";

const SIDE = 14;
const CELL = 11;
const TOP = 34;
const NEAREST = 4;
const patches = Array.from({ length: SIDE * SIDE }, (_, n) => ({ row: Math.floor(n / SIDE), column: n % SIDE }));

class GridCode extends LiveFigure {
  static box = [346, 212];
  static rows = 3;
  static controls = [
    { name: "row", min: 0, max: SIDE - 1, value: 6 },
    { name: "column", min: 0, max: SIDE - 1, value: 6 },
    { name: "softmax", value: false },
  ];
  static words = {
    en: {
      drawing: "Two maps of a picture: how much the code of each patch is like that of one patch",
      caption: "Scores of one patch with every patch, or what softmax makes of them. With the code of a list they are high along its row, with that of the grid they form a cross.",
      row: "row",
      column: "column",
      softmax: "after softmax",
      titles: ["one list", "rows and columns"],
      shades: (softmax) => (softmax ? ["0", "largest weight"] : ["least", "largest score"]),
      outlined: "most like it",
      and: ", ",
      said: ({ row, column }, list, grid) =>
        `Most like the patch in row ${row}, column ${column}: in the list ${list}; by rows and columns ${grid}.`,
    },
    zh: {
      drawing: "一张图的两幅分布图：每个图块的编码与选中图块的有多像",
      caption: "一个图块对每个图块的分数，或 softmax 以后的权重。排成一串来编码，分数高的在自己那一行；用网格编码，高的排成十字。",
      row: "行",
      column: "列",
      softmax: "经过 softmax",
      titles: ["一串", "行和列"],
      shades: (softmax) => (softmax ? ["0", "最大的权重"] : ["最小", "最大的分数"]),
      outlined: "与它最像",
      and: "、",
      said: ({ row, column }, list, grid) =>
        `与第 ${row} 行第 ${column} 列最像的图块：排成一串时是 ${list}；按行和列编码时是 ${grid}。`,
    },
  };

  setup() {
    const { words } = this;
    const dim = this.number("dim", 64);
    const ofLength1 = (code) => code.map((x) => x / Math.sqrt(dim / 2));
    const codes = [
      patches.map((_, n) => ofLength1(sinusoidalEncoding(n, dim))),
      patches.map(({ row, column }) => ofLength1(coordinateEncoding([row, column], dim))),
    ];
    this.gain = Math.sqrt(dim) / 2; // of scores of codes in their own length, divided by √dim
    this.maps = codes.map((code, m) => {
      const x = 11 + 170 * m;
      this.label(x + (CELL * SIDE) / 2, 14, words.titles[m]);
      const map = this.add("g", { transform: `translate(${x} ${TOP})` });
      this.add("rect", { width: CELL * SIDE, height: CELL * SIDE, fill: "none", stroke: GREY, "stroke-width": 0.6 }, map);
      const sharp = this.add("g", { "shape-rendering": "crispEdges" }, map);
      const cells = patches.map(({ row, column }) =>
        this.add("rect", { x: CELL * column, y: CELL * row, width: CELL, height: CELL, fill: BLUE }, sharp),
      );
      const square = (inset, style) => this.add("rect", { width: CELL - 2 * inset, height: CELL - 2 * inset, ...style }, map);
      const nearest = Array.from({ length: NEAREST }, () => square(1, { fill: "none", stroke: ORANGE, "stroke-width": 1.6 }));
      const chosen = square(0, { fill: ORANGE });
      const arrows = [0, 1].map(() => this.add("path", { d: "M0 0L-4 -7H4z", fill: ORANGE }, map));
      const touched = this.add("rect", { width: CELL * SIDE, height: CELL * SIDE, fill: "transparent", cursor: "crosshair" }, map);
      const picked = (px, py) =>
        this.pick({ row: this.within("row", (py - TOP) / CELL - 0.5), column: this.within("column", (px - x) / CELL - 0.5) });
      const middle = (at) => CELL * (at + 0.5);
      const holds = (place) =>
        Math.hypot(place.x - x - middle(this.state.column), place.y - TOP - middle(this.state.row)) < 24;
      this.onpick(touched, picked, { cursor: "crosshair", holds });
      const marks = m ? [] : [0, 90].map((angle) => this.grip(angle, map));
      return { code, cells, nearest, chosen, arrows, marks };
    });
    this.legend();
  }

  /** What the colours are, and the outline. */
  legend() {
    const shades = [0, 0.25, 0.5, 0.75, 1];
    shades.forEach((score, n) => {
      this.add("rect", { x: 40 + 12 * n, y: 199, width: 12, height: 9, fill: BLUE, "fill-opacity": score });
    });
    this.add("rect", { x: 40, y: 199, width: 60, height: 9, fill: "none", stroke: GREY, "stroke-width": 0.6 });
    this.shades = ["end", "start"].map((anchor, n) => this.label([36, 104][n], 207, "", { "text-anchor": anchor }));
    this.add("rect", { x: 232, y: 199, width: 9, height: 9, fill: "none", stroke: ORANGE, "stroke-width": 1.6 });
    this.label(246, 207, this.words.outlined, { "text-anchor": "start" });
  }

  draw({ row, column, softmax }) {
    const own = SIDE * row + column;
    this.found = this.maps.map(({ code, cells, nearest, chosen, arrows, marks }) => {
      const scores = code.map((other) => dot(code[own], other));
      const least = Math.min(...scores);
      cells.forEach((cell, n) => {
        set(cell, { "fill-opacity": softmax ? Math.exp(this.gain * (scores[n] - 1)) : (scores[n] - least) / (1 - least) });
      });
      const order = scores.map((_, n) => n).filter((n) => n !== own);
      order.sort((a, b) => Math.round(1e9 * (scores[b] - scores[a])) || a - b);
      const close = order.slice(0, NEAREST);
      nearest.forEach((outline, n) => {
        set(outline, { x: CELL * patches[close[n]].column + 1, y: CELL * patches[close[n]].row + 1 });
      });
      set(chosen, { x: CELL * column, y: CELL * row });
      for (const mark of marks) set(mark, { transform: `translate(${CELL * (column + 0.5)} ${CELL * (row + 0.5)})` });
      set(arrows[0], { transform: `translate(${CELL * (column + 0.5)} -3)` });
      set(arrows[1], { transform: `translate(-3 ${CELL * (row + 0.5)}) rotate(-90)` });
      return close.map((n) => `(${patches[n].row},\u00a0${patches[n].column})`).join(this.words.and);
    });
    this.words.shades(softmax).forEach((text, n) => set(this.shades[n], { text }));
  }

  say(state) {
    return this.words.said(state, ...this.found);
  }
}
customElements.define("live-grid-code", GridCode);
