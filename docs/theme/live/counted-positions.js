/* CoPE: the reader chooses which tokens count, and how much the others do; how far back each token then lies. */
import { BLUE, GREY, LiveFigure, ORANGE, line, set, shown } from "./figure.js";
import { contextualPositions } from "./posenc.js";

const TEXT = [..."ab.c.def.g"];
const [LEFT, RIGHT, TOP, HEIGHT] = [28, 340, 24, 130];
const CELL = (RIGHT - LEFT) / TEXT.length;
const MOST = TEXT.length; // back, where all gates are 1
const x = (u) => LEFT + CELL * u;
const y = (back) => TOP + HEIGHT * (1 - back / MOST);
const named = (value) => TEXT.map((token, u) => [`t${u}`, value(token)]);

class CountedPositions extends LiveFigure {
  static box = [346, 206];
  static rows = 4;
  static controls = [
    { name: "other", min: 0, max: 1, step: 0.01, value: 0 },
    { name: "most", min: 1, max: MOST, value: 9 },
    ...named((token) => token === ".").map(([name, value]) => ({ name, value })),
  ];
  static words = {
    en: {
      drawing: "How far back each token of a text lies, when the tokens that count are chosen",
      caption: "How far back each token lies for the last one, if all of them count and if the chosen ones do.",
      other: "gate of the others",
      most: "largest count",
      ...Object.fromEntries(named((token) => (token === "." ? "“.”" : token))),
      axis: "how far back",
      press: "press a token: it counts, or does not",
      legend: ["all gates 1", "as chosen"],
      said: (count, back, vector, other) => `${count} of 10 tokens count${other ? " in full" : ""}. The first token lies ${back} back, and its vector is ${vector}.`,
    },
    zh: {
      drawing: "选好哪些词元算数之后，文本里每个词元往回多远",
      caption: "从最后一个词元看，每个词元往回数有多远：数所有词元，或者数选中的。",
      other: "其余的门",
      most: "最大计数",
      ...Object.fromEntries(named((token) => (token === "." ? "“.”" : token))),
      axis: "往回多远",
      press: "按一下词元：算数，或者不算",
      legend: ["门全是 1", "选好的门"],
      said: (count, back, vector, other) => `10 个词元里有 ${count} 个${other ? "全算" : "算数"}。第一个词元往回 ${back}，它的向量是 ${vector}。`,
    },
  };

  setup() {
    const { words } = this;
    for (const back of [0, 5, 10]) {
      this.add("path", { d: line([[LEFT, y(back)], [RIGHT, y(back)]]), stroke: GREY, "stroke-width": back ? 0.3 : 0.8 });
      this.label(LEFT - 4, y(back) + 3.5, back, { "text-anchor": "end" });
    }
    this.label(6, 11, words.axis, { "text-anchor": "start" });
    this.limit = this.add("g");
    this.add("path", { d: line([[LEFT, 0], [RIGHT, 0]]), stroke: GREY, "stroke-dasharray": "2 3" }, this.limit);
    this.limited = this.label(RIGHT, 0, words.most, { "text-anchor": "end" });
    this.limit.append(this.limited);
    const styles = [
      { stroke: GREY, "stroke-width": 1.4, "stroke-dasharray": "5 3" },
      { stroke: BLUE, "stroke-width": 2 },
    ];
    this.curves = styles.map((style, n) => {
      this.add("path", { d: `M${[132, 236][n]} 7.5h22`, ...style });
      this.label([132, 236][n] + 26, 11, words.legend[n], { "text-anchor": "start" });
      return this.add("path", { fill: "none", ...style });
    });
    this.tokens = TEXT.map((token, u) => {
      const place = { x: x(u) + 1.5, y: TOP + HEIGHT + 6, width: CELL - 3, height: 24, rx: 3 };
      const box = this.add("rect", { ...place, stroke: GREY, "stroke-width": 0.8 });
      this.label(x(u + 0.5), TOP + HEIGHT + 22, token, { "font-size": 13, "font-weight": 600 });
      const touched = this.add("rect", { ...place, y: TOP, height: HEIGHT + 30, fill: "transparent", cursor: "pointer" });
      touched.addEventListener("click", () => this.changed({ [`t${u}`]: !this.state[`t${u}`] }));
      return box;
    });
    this.label((LEFT + RIGHT) / 2, TOP + HEIGHT + 45, words.press);
  }

  draw({ other, most, ...state }) {
    const counts = TEXT.map((_, u) => state[`t${u}`]);
    const positions = [
      contextualPositions(TEXT.map(() => 1), MOST),
      contextualPositions(counts.map((is) => (is ? 1 : other)), most),
    ];
    this.curves.forEach((curve, n) =>
      set(curve, { d: line([...positions[n]].flatMap((back, u) => [[x(u), y(back)], [x(u + 1), y(back)]])) }),
    );
    this.tokens.forEach((box, u) => set(box, { fill: counts[u] ? ORANGE : GREY, "fill-opacity": counts[u] ? 0.35 : 0.08 }));
    set(this.limited, { y: most < MOST ? -4 : 11 }); // above the line stands the legend
    set(this.limit, { transform: `translate(0 ${y(most)})` });
    const back = positions[1][0];
    const [whole, rest] = [Math.floor(back), back - Math.floor(back)];
    const part = (share, z) => `${shown(share)} e${[...String(z)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]).join("")}`;
    const vector = rest < 1e-9 ? part(1, whole).slice(5) : `${part(1 - rest, whole)} + ${part(rest, whole + 1)}`;
    this.found = [counts.filter((is) => is || other === 1).length, shown(back), vector, other];
  }

  say() {
    return this.words.said(...this.found);
  }
}
customElements.define("live-counted-positions", CountedPositions);
