/* A ring with a tail, four times: distances to two anchors, an eigenvector, a walk; which nodes have the same numbers. */
import { BLUE, GREY, LiveFigure, ORANGE, set, shown } from "./figure.js";
import { anchorDistances, laplacianEigenvectors, randomWalkProbabilities } from "./posenc.js";

const NODES = [..."abcdefgh"];
const EDGES = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0], [0, 6], [6, 7]];
const GRAPH = NODES.map((_, t) => NODES.map((_, u) => Number(EDGES.some(([a, b]) => (a === t && b === u) || (a === u && b === t)))));
const MOST = 8; // steps
/** Without what rounding has left: equal numbers are equal. */
const tidied = (column) => column.map((x) => Number(x.toFixed(9)));
const UNIT = 34;
const PLACES = NODES.map((_, t) => (t < 6 ? [Math.cos((t * Math.PI) / 3), -Math.sin((t * Math.PI) / 3)] : [t - 4, 0]));
// Of a node: where its number stands, and its name, on the inner side of the ring; at d, whose left has no room, the other way round.
const [ABOVE, BELOW] = [[0, -14], [0, 21]];
const NUMBER = [[4, 18, "start"], ABOVE, ABOVE, [14, 3.5, "start"], BELOW, BELOW, ABOVE, ABOVE];
const NAME = PLACES.map(([x, y], t) => (t === 3 ? [-14, 3.5] : t < 6 ? [-17 * x, -16 * y + 3.5] : [0, 20]));
const PANELS = [[51, 72], [227, 72], [51, 218], [227, 218]];
const SIZES = [3, 4.6]; // of the mark of 0, and what the largest number has more

class GraphCodes extends LiveFigure {
  static box = [346, 292];
  static rows = 4;
  static wide = 3;
  static controls = [
    { name: "vector", min: 1, max: 7, value: 1 },
    { name: "steps", min: 1, max: MOST, value: 4 },
    { name: "first", value: "h", options: NODES },
    { name: "second", value: "d", options: NODES },
    { name: "node", value: "c", options: NODES },
    { name: "flip", value: false },
  ];
  static words = {
    en: {
      drawing: "A ring with a tail: what two anchors, an eigenvector and a walk say of each node",
      caption: "Four codes of the same eight nodes: the distances from two anchors, an eigenvector, and how probably a walk is back after some steps. Large marks are large numbers; squares are above 0, discs below, diamonds 0.",
      vector: "eigenvector",
      steps: "steps",
      first: "anchors",
      second: "and",
      node: "node",
      flip: "flip sign",
      from: (anchor) => `distance from ${anchor}`,
      eigen: (j, flip) => `eigenvector ${j}${flip ? ", flipped" : ""}`,
      back: (steps) => (steps > 1 ? `back after ${steps} steps` : "back after 1 step"),
      anchors: "drag the anchor, or press another node",
      press: "press a node; dashed: the same number",
      code: (node, a, first, b, second, value, j, p, steps) =>
        `Node ${node}: ${a} from ${first}, ${b} from ${second}, ${value} in eigenvector ${j}, back after ${steps > 1 ? `${steps} steps` : "1 step"}: ${p}. `,
      same: (node, others) => `Nothing here tells it from ${others.join(", ")}.`,
      told: (other, by) =>
        by.length > 2
          ? "No other node has more than one of these numbers."
          : `${other} has ${by.length > 1 ? "two" : "three"} of these, too; ${by.length > 1 ? "" : "only "}the ${by.join(" and the ").replace(/^f.*second a.*/, "two anchors")} differ${by.length > 1 ? "" : "s"}.`,
      by: ["first anchor", "second anchor", "eigenvector", "walk"],
    },
    zh: {
      drawing: "带尾巴的环：两个锚点、一个特征向量和随机游走给每个节点的数",
      caption: "同样八个节点的四种编码：到两个锚点的距离、一个特征向量、随机游走若干步后回到原处的概率。记号越大，数越大；方块大于 0，圆点小于 0，菱形是 0。",
      vector: "特征向量",
      steps: "步数",
      first: "锚点",
      second: "和",
      node: "节点",
      flip: "变号",
      from: (anchor) => `到 ${anchor} 的距离`,
      eigen: (j, flip) => `特征向量 ${j}${flip ? "，变号" : ""}`,
      back: (steps) => `${steps} 步之后回来`,
      anchors: "拖动锚点，或者按另一个节点",
      press: "按一个节点；虚线圈：同一个数",
      code: (node, a, first, b, second, value, j, p, steps) =>
        `节点 ${node}：到 ${first} 是 ${a}，到 ${second} 是 ${b}，特征向量 ${j} 里是 ${value}，${steps} 步后回来的概率是 ${p}。`,
      same: (node, others) => `它和 ${others.join("、")} 四个数都相同，这里分不开。`,
      told: (other, by) =>
        by.length > 2
          ? "别的节点最多有一个数与它相同。"
          : `${other} 有${by.length > 1 ? "两" : "三"}个数与它相同，把它们分开的是${by.join("和")}。`,
      by: ["第一个锚点", "第二个锚点", "特征向量", "随机游走"],
    },
  };

  setup() {
    const { words } = this;
    this.distances = NODES.map((_, anchor) => anchorDistances(GRAPH, anchor));
    this.vectors = laplacianEigenvectors(GRAPH).map(tidied);
    this.walks = Array.from({ length: MOST }, (_, n) => tidied(randomWalkProbabilities(GRAPH, n + 1)));
    this.panels = PANELS.map(([x, y], n) => {
      const at = PLACES.map((place) => [x + UNIT * place[0], y + UNIT * place[1]]);
      this.add("path", { d: EDGES.map(([t, u]) => `M${at[t]}L${at[u]}`).join(""), stroke: GREY });
      const title = this.label(x + UNIT, y - 61, "", { "font-weight": 600 });
      const nodes = NODES.map((name, t) => {
        const [left, top] = at[t];
        this.label(left + NAME[t][0], top + NAME[t][1], name, { fill: GREY });
        const halo = this.add("circle", { cx: left, cy: top, r: 10, fill: "none", stroke: "currentColor" });
        const mark = this.add("path", { transform: `translate(${left} ${top})` });
        const [right, down, anchor = "middle"] = NUMBER[t];
        const number = this.label(left + right, top + down, "", { "text-anchor": anchor });
        return { halo, mark, number };
      });
      const touched = this.add("rect", { x: n % 2 ? 174 : 0, y: y - 56, width: 172, height: 112, fill: "transparent" });
      this.onpick(touched, (px, py) => {
        const far = at.map((place) => Math.hypot(place[0] - px, place[1] - py));
        this.pick({ [["first", "second", "node", "node"][n]]: NODES[far.indexOf(Math.min(...far))] });
      });
      return { title, nodes, at, grip: n < 2 && this.grip() };
    });
    this.label(173, 139, words.anchors, { fill: GREY });
    this.label(173, 285, words.press, { fill: GREY });
  }

  draw({ vector, steps, first, second, node, flip }) {
    const { words } = this;
    const anchors = [first, second].map((name) => NODES.indexOf(name));
    this.columns = [
      ...anchors.map((anchor) => this.distances[anchor]),
      this.vectors[vector - 1].map((value) => (flip ? -value : value)),
      this.walks[steps - 1],
    ];
    this.own = NODES.indexOf(node);
    const titles = [words.from(first), words.from(second), words.eigen(vector, flip), words.back(steps)];
    this.panels.forEach(({ title, nodes, at, grip }, n) => {
      const column = this.columns[n];
      const now = `${titles[n]} ${node}`;
      if (this.panels[n].now === now) return;
      this.panels[n].now = now;
      const most = Math.max(...column.map(Math.abs)) || 1;
      set(title, { text: titles[n] });
      nodes.forEach(({ halo, mark, number }, t) => {
        const value = column[t];
        const r = SIZES[0] + SIZES[1] * Math.sqrt(Math.abs(value) / most);
        const fill = value > 0 ? ORANGE : value < 0 ? BLUE : GREY;
        const [square, disc] = [`M${-r} ${-r}H${r}V${r}H${-r}z`, `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`];
        set(mark, { d: value > 0 ? square : value < 0 ? disc : "M-4 0L0 -4L4 0L0 4z", fill });
        set(number, { text: n < 2 ? value : shown(value) });
        set(halo, {
          "stroke-width": t === this.own ? 1.8 : 1,
          "stroke-dasharray": t === this.own ? "none" : "2 2",
          display: value === column[this.own] ? "inline" : "none",
        });
      });
      if (grip) set(grip, { transform: `translate(${at[anchors[n]]})` });
    });
  }

  say({ vector, steps, first, second, node }) {
    const { words, columns, own } = this;
    const [a, b, value, p] = columns.map((column) => column[own]);
    const code = words.code(node, a, first, b, second, shown(value), vector, shown(p), steps);
    const differs = (t) => words.by.filter((_, n) => columns[n][t] !== columns[n][own]);
    const others = NODES.map((_, t) => t).filter((t) => t !== own);
    const least = Math.min(...others.map((t) => differs(t).length));
    const alike = others.filter((t) => differs(t).length === least);
    if (!least) return code + words.same(node, alike.map((t) => NODES[t]));
    return code + words.told(NODES[alike[0]], differs(alike[0]));
  }
}
customElements.define("live-graph-codes", GraphCodes);
