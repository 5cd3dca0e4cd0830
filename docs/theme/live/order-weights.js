/* The attention weights of three words, in any order: each number belongs to a pair of words. It moves with the words, and
   changes where something besides the words counts: a code, a turn, a mask. */
import { BLUE, GREY, LiveFigure, ORANGE, set, shown } from "./figure.js";
import { applyRotary, attentionWeights, dot, sinusoidalEncoding } from "./posenc.js";

// The numbers of the block on the page, to four digits.
const WORDS = [
  [0.3456, 0.8216, 0.3304, -1.3032],
  [0.9054, 0.4464, -0.537, 0.5811],
  [0.3646, 0.2941, 0.0284, 0.5467],
];
const W_Q = [
  [-0.7365, -0.1629, -0.4821, 0.5988],
  [0.0397, -0.2925, -0.7819, -0.2572],
  [0.0081, -0.2756, 1.2941, 1.0067],
  [-2.7112, -1.889, -0.1748, -0.4222],
];
const W_K = [
  [0.2136, 0.2173, 2.1178, -1.112],
  [-0.3776, 2.0428, 0.6467, 0.6631],
  [-0.514, -1.6481, 0.1675, 0.109],
  [-1.2274, -0.6832, -0.072, -0.9448],
];
const [LEFT, TOP, CELL] = [104, 26, 56];
const ORDERS = ["012", "021", "102", "120", "201", "210"];

/** The weight of each pair, query and key by word and not by place; `order` has the word of each place. */
function pairs(order, code, causal) {
  const x = order.map((word, t) => {
    const codes = sinusoidalEncoding(t, 4);
    return WORDS[word].map((value, j) => value + (code === "sinusoidal") * codes[j]);
  });
  const [q, k] = [W_Q, W_K].map((matrix) =>
    x.map((row, t) => {
      const made = matrix[0].map((_, j) => dot(row, matrix.map((numbers) => numbers[j])));
      return code === "rope" ? applyRotary(made, t) : made;
    }),
  );
  const weights = attentionWeights(q, k, { hidden: (t, u) => causal && u > t });
  return WORDS.map((_, a) => WORDS.map((_, b) => weights[order.indexOf(a)][order.indexOf(b)]));
}

class OrderWeights extends LiveFigure {
  static box = [346, 226];
  static rows = 2;
  static wide = 1;
  static controls = [
    { name: "order", value: "210", options: ORDERS },
    { name: "code", value: "off", options: ["off", "sinusoidal", "rope"] },
    { name: "causal", value: false },
  ];
  static words = {
    en: {
      drawing: "The attention weights of three words, and which of them change with their order",
      caption: "Attention weights between three words. Without positions each goes where its words go; what a code or a mask changes is framed.",
      words: ["dog", "bites", "man"],
      space: " ",
      order: "words",
      code: "code",
      off: "none",
      sinusoidal: "sinusoidal",
      rope: "RoPE",
      causal: "causal mask",
      keys: "key",
      queries: "query",
      same: "Move a word: press or drag its name, or choose another sentence.",
      blind: "Rows and columns have moved with their words. Each pair of words has the weight that it had in “dog bites man”: the largest change is 0.",
      sees: (change, query, key) =>
        `Weights in orange are not those of “dog bites man”. The largest change is ${change}: what “${query}” takes from “${key}”.`,
    },
    zh: {
      drawing: "三个词的注意力权重，以及换了顺序以后哪些权重会变",
      caption: "三个词之间的注意力权重。不给位置，权重跟着两个词走；编码或掩码改变了的加框。",
      words: ["狗", "咬", "人"],
      space: "",
      order: "句子",
      code: "位置",
      off: "无",
      sinusoidal: "正弦位置编码",
      rope: "RoPE",
      causal: "因果掩码",
      keys: "键",
      queries: "查询",
      same: "移动一个词：按一下它，或者拖着它走，也可以另选一句。",
      blind: "行和列都跟着词走了。每一对词的权重，还是“狗咬人”里的那个数：最大的变化是 0。",
      sees: (change, query, key) => `橙框里的权重和“狗咬人”里的不同。变化最大的是“${query}”从“${key}”取的那一份：变了 ${change}。`,
    },
  };

  constructor() {
    super();
    const { words } = this.constructor;
    for (const named of Object.values(words))
      for (const order of ORDERS) named[order] = [...order].map((word) => named.words[word]).join(named.space);
  }

  setup() {
    const { words } = this;
    this.label(LEFT + 1.5 * CELL, 13, words.keys, { "fill-opacity": 0.8 });
    this.label(0, 0, words.queries, { transform: `translate(38 ${TOP + 14 + 1.5 * CELL}) rotate(-90)`, "fill-opacity": 0.8 });
    this.cells = WORDS.map(() =>
      WORDS.map(() => {
        const group = this.add("g");
        this.add("rect", { x: 1, y: 1, width: CELL - 2, height: CELL - 2, fill: BLUE, "stroke-width": 2 }, group);
        const number = this.add("text", { x: CELL / 2, y: CELL / 2 + 4, "text-anchor": "middle", "font-size": 12 }, group);
        return { group, box: group.firstChild, number };
      }),
    );
    const named = (isRow) =>
      words.words.map((text, word) => {
        const chip = this.add("g");
        this.add("rect", { x: -24, y: -14, width: 48, height: 20, rx: 4, fill: "none", stroke: GREY }, chip);
        chip.append(this.label(0, 0, text, { "font-size": 12, "font-weight": 600 }));
        const touched = this.add("rect", { width: CELL, height: isRow ? CELL : 22, fill: "transparent", cursor: "pointer" });
        const moved = (place) => {
          const rest = [...this.state.order].filter((other) => other !== String(word));
          rest.splice(place, 0, word);
          return { order: rest.join("") };
        };
        let dragged;
        const picked = (x, y) => {
          const place = Math.min(Math.max(Math.floor((isRow ? y - TOP - 14 : x - LEFT) / CELL), 0), 2);
          if (place === this.state.order.indexOf(word)) return;
          dragged = true;
          this.pick(moved(place));
        };
        touched.addEventListener("pointerdown", () => (dragged = false));
        touched.addEventListener("pointerup", () => dragged || this.changed(moved((this.state.order.indexOf(word) + 1) % 3)));
        this.onpick(touched, picked, { holds: () => true });
        return { chip, touched };
      });
    [this.rows, this.columns] = [named(true), named(false)];
    set(this.grip(), { transform: `translate(${LEFT + CELL} ${TOP + 2})` }); // two words change places
  }

  draw({ order, code, causal }) {
    const usual = pairs([0, 1, 2], code, causal);
    this.weights = pairs([...order].map(Number), code, causal);
    const at = (word) => order.indexOf(word);
    this.cells.forEach((row, a) =>
      row.forEach(({ group, box, number }, b) => {
        const weight = this.weights[a][b];
        const changed = weight !== usual[a][b];
        group.style.transform = `translate(${LEFT + CELL * at(b)}px, ${TOP + 14 + CELL * at(a)}px)`;
        set(box, { "fill-opacity": 0.06 + 0.56 * weight, stroke: changed ? ORANGE : "none" });
        set(number, { text: shown(weight) });
      }),
    );
    this.rows.forEach(({ chip, touched }, word) => {
      set(chip, { transform: `translate(${LEFT - 32} ${TOP + 18 + CELL * (at(word) + 0.5)})` });
      set(touched, { x: LEFT - CELL - 4, y: TOP + 14 + CELL * at(word) });
    });
    this.columns.forEach(({ chip, touched }, word) => {
      set(chip, { transform: `translate(${LEFT + CELL * (at(word) + 0.5)} ${TOP + 6})` });
      set(touched, { x: LEFT + CELL * at(word), y: TOP - 8 });
    });
    this.usual = usual;
  }

  say({ order }) {
    const { words, same, blind, sees } = this.words;
    if (order === "012") return same;
    const changes = this.weights.flatMap((row, a) => row.map((weight, b) => [Math.abs(weight - this.usual[a][b]), a, b]));
    const [change, a, b] = changes.reduce((most, other) => (other[0] > most[0] ? other : most));
    return change === 0 ? blind : sees(shown(change), words[a], words[b]);
  }
}
customElements.define("live-order-weights", OrderWeights);
