/* Dog bites man: the same words in two orders, and what one untrained layer of attention makes of each.

   Above stands one order, below the reader's. A word becomes eight numbers, a strip of eight colours that moves with its
   card. Eight threads join the strips of a word: where a number is the same in both orders its thread holds, where it is
   not, the thread is torn, the wider the more. They are thin, and what they join is named above them: as broad ribbons
   they were taken for attention weights. A word stands where its card stands, also on the way: every frame is
   computed, none is blended. */
import { LiveFigure, set, shown } from "./figure.js";
import { applyRotary, attentionOutputs, attentionWeights, dot, orderlessSum, sinusoidalEncoding } from "./posenc.js";

const WIDTH = 8;
const GAP = 0.3; // in columns, between the words and their mean
const PAD = 0.06; // on either side of a strip
const THREAD = 0.28; // of the width of a number
const TIME = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 200; // ms of a glide

/* Embeddings of three words and three matrices. Any numbers do; these are the ones of the block on the page. */
const NUMBERS = Array.from({ length: 216 }, (_, i) => Math.SQRT2 * Math.sin((i + 163) ** 2));
const row = (i) => NUMBERS.slice(WIDTH * i, WIDTH * (i + 1));
const EMBEDDINGS = [0, 1, 2].map(row);
const MATRICES = [0, 1, 2].map((m) =>
  Array.from({ length: WIDTH }, (_, j) => row(3 + WIDTH * m + j).map((x) => x / 2)),
);

/** Outputs of the words, and their mean, with word w at `places[w]`, a real number, and each code as strong as 1, or
    less in passing. The layer gets the rows in the order of the sentence; they are handed back by word. */
export function outputs(places, { sinusoidal = 0, rope = 0 }) {
  const sentence = [...places.keys()].sort((a, b) => places[a] - places[b]);
  const at = sentence.map((w) => places[w]);
  const x = sentence.map((w, t) => {
    const code = sinusoidalEncoding(at[t], WIDTH);
    return EMBEDDINGS[w].map((value, j) => value + sinusoidal * code[j]);
  });
  const [q, k, v] = MATRICES.map((matrix) => x.map((numbers) => matrix.map((column) => dot(column, numbers))));
  const turned = (rows) => rows.map((numbers, t) => (rope ? applyRotary(numbers, rope * at[t]) : numbers));
  const rows = attentionOutputs(attentionWeights(turned(q), turned(k)), v);
  const mean = [...rows[0].keys()].map((j) => orderlessSum(rows.map((numbers) => numbers[j])) / rows.length);
  return [...places.keys()].map((w) => rows[sentence.indexOf(w)]).concat([mean]);
}

const largestChange = (a, b) => Math.max(...a.flatMap((numbers, w) => [...numbers].map((x, j) => Math.abs(x - b[w][j]))));

class WordOrder extends LiveFigure {
  static box = [346, 250];
  static rows = 1;
  static codes = ["off", "sinusoidal", "rope"];
  static controls = [
    { name: "code", value: "off", options: this.codes },
    { name: "order", value: "210", options: ["012", "021", "102", "120", "201", "210"] },
  ];
  static words = {
    en: {
      drawing: "Two orders of the same words, and what one layer of attention computes for each word",
      words: ["dog", "bites", "man"],
      space: " ",
      code: "Positions",
      off: "off",
      sinusoidal: "sinusoidal",
      rope: "RoPE",
      of: "A thread joins the same number in both orders:",
      mean: "average of the three",
      swap: "⇄ Swap",
      card: (word, place) => `${word}, place ${place} of 3. The arrow keys move it, Enter moves it on.`,
      same: ["0", "It is the same sentence twice.", "Drag a word of the lower one, or press Swap."],
      blind: (above, below) => [
        "0",
        "of the 24 numbers change: each word keeps its eight in both orders.",
        `A layer of attention computed eight numbers for each word, blue below 0, orange above. A thread is torn where its ends differ. None is, so the layer cannot tell “${below}” from “${above}”.`,
      ],
      sees: (above, below, change) => [
        change,
        "is the largest change: the order counts now.",
        `A layer of attention computed eight numbers for each word. Where a thread is torn, its ends differ. A word’s place now counts, and a model can learn to tell “${below}” from “${above}”.`,
      ],
    },
    zh: {
      drawing: "同样的词，两种顺序，一层注意力给每个词算出什么",
      words: ["狗", "咬", "人"],
      space: "",
      code: "位置编码",
      off: "无",
      sinusoidal: "正弦",
      rope: "RoPE",
      of: "线的两头，是同一个数在两种顺序下的值：",
      mean: "三词平均",
      swap: "⇄ 倒过来",
      card: (word, place) => `${word}，三个词里的第 ${place} 个。左右方向键移动它，回车后移一位。`,
      same: ["0", "两句一模一样。", "拖动下面那句里的词，或者按“倒过来”。"],
      blind: (above, below) => [
        "0",
        "处变化：换了顺序，24 个数一个也没有变。",
        `一层注意力给每个词算出八个数，蓝色小于 0，橙色大于 0。线没有断，两头就相等：光看这些数，谁也说不出是“${above}”还是“${below}”。`,
      ],
      sees: (above, below, change) => [
        change,
        "是最大的变化：换了顺序，词的八个数就和原来不同了。",
        `一层注意力给每个词算出八个数。线断了，两头就不等。现在一个词算出什么，要看它站在哪里，模型就能学会分辨“${above}”和“${below}”。`,
      ],
    },
  };

  /* --- Controls: a switch, and a button that turns the sentence round --- */

  made(control) {
    const isCode = control.name === "code";
    const made = document.createElement(isCode ? "fieldset" : "button");
    this.inputs[control.name] = [];
    if (isCode) {
      const option = (name) =>
        `<label><input type="radio" name="word-order" value="${name}"><span>${this.words[name]}</span></label>`;
      made.innerHTML = `<legend>${this.words.code}</legend>${control.options.map(option).join("")}`;
      made.addEventListener("change", ({ target }) => this.changed({ code: target.value }));
    } else {
      Object.assign(made, { type: "button", textContent: this.words.swap });
      made.addEventListener("click", () => this.changed({ order: [...this.state.order].reverse().join("") }));
    }
    return made;
  }

  show(hand) {
    super.show(hand);
    this.form.querySelector(`[value=${this.state.code}]`).checked = true;
  }

  /* --- Drawing --- */

  setup() {
    this.form.lastChild.lastChild.remove(); // Reset: the switch and the button lead back
    this.stage = document.createElement("div");
    this.stage.className = "word-order";
    const strip = `<span>${"<i></i>".repeat(WIDTH)}</span>`;
    const cards = (tag) => this.words.words.map((word) => `<${tag}>${strip}<b>${word}</b></${tag}>`).join("");
    const mean = `<span class="mean">${strip}<b>${this.words.mean}</b></span>`;
    this.stage.innerHTML = `<p>${this.words.of}</p><div aria-hidden="true">${cards("span")}${mean}</div>
      <div>${cards("button")}${mean.replace("<span ", '<span aria-hidden="true" ')}</div><span class="verdict" aria-hidden="true"></span>`;
    [, this.above, this.below, this.verdict] = this.stage.children;
    this.above.after(this.svg);
    this.form.parentNode.prepend(this.stage);
    [this.tops, this.cards] = [[...this.above.children], [...this.below.children]];
    this.unit = 100 / (3 + GAP + 1);
    this.stage.style.setProperty("--unit", `${this.unit}%`);
    [0, 1, 2, 3 + GAP].forEach((place, w) => (this.tops[w].style.left = `${place * this.unit}%`));
    this.verdict.style.left = `${(3 + GAP + 0.5) * this.unit}%`;
    set(this.svg, { viewBox: `0 0 ${3 + GAP + 1} 1`, preserveAspectRatio: "none" });
    for (let i = 0; i < 4 * WIDTH; i++) {
      const shade = this.add("linearGradient", { id: `word-order-${i}`, x2: 0, y2: 1 });
      for (let stop = 0; stop < 4; stop++) this.add("stop", {}, shade);
      this.add("path", { fill: `url(#word-order-${i})` });
    }
    this.threads = [...this.svg.querySelectorAll("path")];
    [0, 1, 2].forEach((w) => this.handle(this.cards[w], w));
    const { codes } = this.constructor;
    this.most = Math.max(...codes.flatMap((code) => outputs([0, 1, 2], { [code]: 1 }).flatMap((x) => [...x].map(Math.abs))));
  }

  draw({ code, order }) {
    const places = [0, 1, 2].map((w) => order.indexOf(w));
    this.change = largestChange(outputs([0, 1, 2], { [code]: 1 }), outputs(places, { [code]: 1 }));
    this.aim = [...places, ...this.constructor.codes.map((name) => Number(name === code))];
    this.from = this.now ?? this.aim;
    this.begun = this.now ? performance.now() : -Infinity;
    this.step(performance.now());
  }

  /** One frame of the glide from where everything was to where it belongs. */
  step(time) {
    cancelAnimationFrame(this.gliding);
    const left = TIME ? Math.max(0, 1 - (time - this.begun) / TIME) ** 3 : 0;
    this.now = this.aim.map((end, i) => end + left * (this.from[i] - end));
    if (this.held) this.now[this.held.word] = this.held.place;
    const [, sinusoidal, rope] = this.now.slice(3);
    this.paint(this.now.slice(0, 3), { sinusoidal, rope });
    if (left) this.gliding = requestAnimationFrame((later) => this.step(later));
  }

  paint(places, strengths) {
    const [first, second] = [outputs([0, 1, 2], strengths), outputs(places, strengths)];
    const colour = (x) => {
      const share = Math.min(100, (100 * Math.abs(x)) / this.most);
      return `color-mix(in oklab,var(--${x < 0 ? "below" : "above"}) ${share.toFixed(1)}%,var(--zero))`;
    };
    const wide = (1 - 2 * PAD) / WIDTH;
    [...places, 3 + GAP].forEach((place, w) => {
      this.cards[w].style.left = `${place * this.unit}%`;
      first[w].forEach((x, j) => {
        const y = second[w][j];
        const [over, under] = [colour(x), colour(y)];
        this.tops[w].firstChild.children[j].style.background = over;
        this.cards[w].firstChild.children[j].style.background = under;
        const [a, b] = [w < 3 ? w : place, place].map((column) => column + PAD + (j + (1 - THREAD) / 2) * wide);
        const across = THREAD * wide;
        const thread = this.threads[w * WIDTH + j];
        set(thread, { d: `M${a} 0C${a} .5 ${b} .5 ${b} 1h${across}C${b + across} .5 ${a + across} .5 ${a + across} 0Z` });
        const torn = Math.abs(x - y) / this.most;
        const [whole, hole] = [Number(x === y), Math.min(0.36, 0.02 + torn / 2)]; // also the least difference is seen
        const stops = [[0, over, 1], [0.5 - hole, over, whole], [0.5 + hole, under, whole], [1, under, 1]];
        stops.forEach(([offset, stop, solid], i) => {
          const style = `stop-color:${stop};stop-opacity:${solid.toFixed(3)}`;
          set(thread.previousSibling.children[i], { offset: offset.toFixed(3), style });
        });
      });
    });
    const differ = largestChange(first, second) > 0;
    this.verdict.textContent = differ ? "≠" : "=";
    this.stage.classList.toggle("differ", differ);
  }

  /** What is said has a number that stands out; cards stand in the order in which the tab key goes. */
  drawn() {
    super.drawn();
    const [number, what, more] = this.said.textContent.split("\n");
    this.said.replaceChildren(...[["b", number], ["strong", what], ["span", more]].map(([tag, text]) =>
      Object.assign(document.createElement(tag), { textContent: `${text} ` })));
    const { order } = this.state;
    if (this.held || order === this.arranged) return; // out of its row a card would slip from the hand
    this.arranged = order;
    const focused = document.activeElement;
    [...order].forEach((w, place) => {
      this.cards[w].ariaLabel = this.words.card(this.words.words[w], place + 1);
      this.below.append(this.cards[w]);
    });
    this.below.append(this.cards[3]);
    if (this.below.contains(focused)) focused.focus({ preventScroll: true });
  }

  say({ order }) {
    const { words, space, same, blind, sees } = this.words;
    const written = ["012", order].map((sentence) => [...sentence].map((w) => words[w]).join(space));
    if (order === "012") return same.join("\n");
    return (this.change === 0 ? blind : sees)(...written, shown(this.change)).join("\n");
  }

  /* --- Hands --- */

  handle(card, word) {
    card.type = "button";
    const moved = (place) => {
      const rest = [...this.state.order].filter((w) => w !== String(word));
      rest.splice(Math.min(2, Math.max(0, Math.round(place))), 0, word);
      return { order: rest.join("") };
    };
    let start;
    card.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      start = { x: event.clientX, place: this.now[word] };
      card.setPointerCapture(event.pointerId);
    });
    card.addEventListener("pointermove", ({ clientX }) => {
      if (!start || (!this.held && Math.abs(clientX - start.x) < 4)) return;
      const place = start.place + (clientX - start.x) / ((this.stage.clientWidth * this.unit) / 100);
      this.held = { word, place: Math.min(2, Math.max(0, place)) };
      card.classList.add("held");
      const state = moved(place);
      if (state.order !== this.state.order) this.pick(state);
      this.step(performance.now());
    });
    card.addEventListener("lostpointercapture", () => {
      start = undefined;
      if (!this.held) return;
      this.held = undefined;
      card.classList.remove("held");
      this.dropped = true; // the click that follows is none
      setTimeout(() => (this.dropped = false));
      this.settled();
    });
    card.addEventListener("click", () => this.dropped || this.changed(moved((this.state.order.indexOf(word) + 1) % 3)));
    card.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, Home: -2, End: 2 }[event.key];
      if (!by || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      this.changed(moved(this.state.order.indexOf(word) + by));
    });
  }
}
customElements.define("live-word-order", WordOrder);
