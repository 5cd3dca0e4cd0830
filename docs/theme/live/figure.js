/* What all figures that move have in common: the drawing of the build gives way to one with controls, and comes back
   on paper.

   A figure, kernel.js for one, has the `box` of its drawing (346 is the width of the book's, whose labels have the size 10);
   the `rows` of its controls: one a number, and one or more for the others with Reset, and if these need fewer from
   512 px on, how many rows are `wide`; its `controls`; and `words`, a name
   of each in both languages, what a screen reader calls the `drawing`, and perhaps a
   `caption`, where that of the still drawing does not hold for all that can be moved to. One that `stretches` takes the text's width
   on a desktop: its drawing is then `this.width` wide, with labels and height as they are. `setup` draws what never changes in
   `this.svg`, once or for each width, `draw` the rest, at most once a frame; `say` gives what is to be seen, in a sentence.

   A control is a number with `min`, `max`, a `step` (1) and perhaps `log` (with `twos`), a choice among `options`, or a yes or no.
   `steps` is the symbol of a number that has two buttons, for one less and one more; `marks` are values of a slider with a line.
   What stands in the page's comment, and what the address says, comes before its `value`. */

export const [BLUE, ORANGE, GREEN, PURPLE, GOLD, GREY] = ["#0072b2", "#d55e00", "#008a65", "#b0578d", "#a07800", "#767676"];

const WORDS = {
  en: {
    reset: "Reset",
    kinds: { 1: "a whole number", 2: "an even number" },
    kind: "a number",
    outside: (name, kind, min, max) => `${name}: ${kind} from ${min} to ${max}.`,
  },
  zh: {
    reset: "复原",
    kinds: { 1: "整数", 2: "偶数" },
    kind: "数",
    outside: (name, kind, min, max) => `${name}：要填 ${min} 到 ${max} 之间的${kind}。`,
  },
};
const language = document.documentElement.lang.startsWith("zh") ? "zh" : "en";

/** A number as the book prints it. */
export const shown = (x, digits = 2) => x.toFixed(digits).replace(/^-(?=0\.?0*$)/, "").replace("-", "−");

/** Where the slider of a logarithmic number stops: at both ends, and between them at round values, `twos` at powers of
    two and halfway between. */
function stops({ min, max, step = 1, twos }) {
  const ladder = twos ? [1, 1.5] : [1, 1.1, 1.25, 1.4, 1.6, 1.8, 2, 2.2, 2.5, 2.8, 3.2, 3.6, 4, 4.5, 5, 5.6, 6.3, 7.1, 8, 9];
  const by = twos ? 2 : 10;
  const found = [];
  for (let scale = by ** Math.floor(Math.log(min) / Math.log(by) - 1); scale <= max; scale *= by)
    found.push(...ladder.map((x) => Number((x * scale).toPrecision(6))));
  const taken = (x) => x > min && x < max && (!isWhole({ step }) || (x - min) % step === 0);
  return [min, ...found.filter(taken), max];
}

const isNumber = ({ min }) => min !== undefined;
const isWhole = ({ step = 1 }) => Number.isInteger(step);

export class LiveFigure extends HTMLElement {
  connectedCallback() {
    if (this.state) return;
    const { box, controls, words } = this.constructor;
    this.controls = controls;
    this.words = { ...WORDS[language], ...words[language] };
    this.name = this.localName.slice("live-".length);
    this.initial = Object.fromEntries(controls.map((control) => [control.name, this.given(control)]));
    const panel = document.createElement("div");
    panel.className = "live-panel";
    panel.innerHTML = `<svg viewBox="0 0 ${box.join(" ")}" role="img" font-size="10" fill="currentColor"></svg>
      <div class="live-controls" role="group"></div><p class="live-said" aria-hidden="true"></p><output></output>`;
    [this.svg, this.form, this.said, this.heard] = panel.children;
    for (const named of [this.svg, this.form]) named.setAttribute("aria-label", this.words.drawing);
    this.inputs = {};
    this.stops = {};
    const few = document.createElement("div"); // what shares a row: choices, steps and Reset
    for (const control of controls) (isNumber(control) ? this.form : few).append(this.made(control));
    const buttons = wrap(); // in one row
    for (const { name, steps } of controls.filter((control) => control.steps)) {
      for (const by of [-1, 1]) {
        const step = () => this.changed({ [name]: this.within(name, this.state[name] + by) });
        buttons.append(button(`${steps}\u00a0${by < 0 ? "−" : "+"}\u00a01`, step));
      }
    }
    buttons.append(button(this.words.reset, () => this.changed(this.initial)));
    few.append(buttons);
    this.form.append(few);
    this.stretched();
    this.state = { ...this.initial, ...this.addressed() };
    this.show();
    this.drawn();
    this.heard.textContent = this.said.textContent;
    const caption = this.querySelector("figcaption");
    if (this.words.caption) {
      caption.append(wrap(...caption.childNodes), wrap(this.words.caption));
      caption.lastChild.className = "live-caption";
    }
    this.firstElementChild.prepend(panel);
    this.classList.add("on");
    if (this.constructor.stretches) new ResizeObserver(() => this.stretched() && this.drawn()).observe(this);
    addEventListener("hashchange", () => {
      const asked = this.addressed();
      if (Object.keys(asked).length) this.changed({ ...this.initial, ...asked });
    });
    const [first] = new URLSearchParams(location.hash.slice(1)).keys();
    if (first?.startsWith(`${this.name}.`)) this.scrollIntoView();
  }

  /* --- Values --- */

  /** What the page's comment says of a control, or else its own value. */
  given(control) {
    const text = this.getAttribute(control.name);
    const value = text === null ? control.value : this.read(control, text);
    if (value === undefined) throw new RangeError(`live: ${this.name} ${control.name}=${text} is no value of it`);
    return value;
  }

  /** A number beside the controls, from the page's comment. */
  number(name, usual) {
    return Number(this.getAttribute(name) ?? usual);
  }

  /** A text as a value of a control; undefined if it is none. */
  read(control, text) {
    if (control.options) return control.options.includes(text) ? text : undefined;
    if (!isNumber(control)) return { true: true, false: false }[text];
    const { min, max, step = 1 } = control;
    const value = text.trim() === "" ? NaN : Number(text) + 0; // −0 is 0
    return value >= min && value <= max && (!isWhole(control) || (value - min) % step === 0) ? value : undefined;
  }

  /** The values that the address has for this figure: #kernel.k=5&kernel.turned=true. */
  addressed() {
    const address = new URLSearchParams(location.hash.slice(1));
    const found = this.controls.map((control) => [
      control.name,
      this.read(control, address.get(`${this.name}.${control.name}`) ?? ""),
    ]);
    return Object.fromEntries(found.filter(([, value]) => value !== undefined));
  }

  /** Other figures of the page keep their part of the address. */
  remember() {
    const address = new URLSearchParams(location.hash.slice(1));
    for (const key of [...address.keys()]) if (!key.includes(".")) address.delete(key); // of a heading
    for (const { name } of this.controls) {
      if (this.state[name] === this.initial[name]) address.delete(`${this.name}.${name}`);
      else address.set(`${this.name}.${name}`, this.state[name]);
    }
    const text = String(address);
    history.replaceState(history.state, "", text ? `#${text}` : location.pathname + location.search);
  }

  /* --- Controls --- */

  made(control) {
    const row = document.createElement("div");
    const { name, options } = control;
    const id = `live-${this.name}-${name}`;
    const label = `<label for="${id}">${this.words[name]}</label>`;
    if (options) {
      const choices = options.map((option) => `<option value="${option}">${this.words[option] ?? option}</option>`);
      row.innerHTML = `${label}<select id="${id}">${choices.join("")}</select>`;
    } else if (isNumber(control)) {
      const { min, max, log } = control;
      const step = control.step ?? 1;
      if (log) this.stops[name] = stops(control);
      const [from, to, by] = log ? [0, this.stops[name].length - 1, 1] : [min, max, step];
      const marks = control.marks?.map((mark) => `<option value="${log ? this.stops[name].indexOf(mark) : mark}"></option>`).join("");
      row.className = "live-number";
      row.innerHTML = `${label}<input type="range" id="${id}" min="${from}" max="${to}" step="${by}"${marks ? ` list="${id}-marks"` : ""}>
        <input type="number" aria-label="${this.words[name]}" min="${min}" max="${max}" step="${isWhole(control) ? step : "any"}">`;
      if (marks) row.insertAdjacentHTML("beforeend", `<datalist id="${id}-marks">${marks}</datalist>`);
    } else {
      row.innerHTML = `<input type="checkbox" id="${id}">${label}`;
    }
    const inputs = [...row.querySelectorAll("input, select")];
    this.inputs[name] = inputs;
    for (const input of inputs) {
      input.addEventListener("pointerdown", () => (this.past = this.state));
      input.addEventListener("pointercancel", () => this.changed(this.past)); // the finger scrolls
      input.addEventListener("input", () => this.moved(control, input));
      input.addEventListener("change", () => this.moved(control, input) && this.settled());
      // What is no value goes when the reader does: the last value that was one is what is drawn.
      const left = () => input.hasAttribute("aria-invalid") && this.changed({});
      input.addEventListener("blur", left);
      input.addEventListener("keydown", ({ key }) => key === "Escape" && left());
    }
    return row;
  }

  /** The value of a number's control that is nearest to `value`. */
  within(name, value) {
    const { min, max, step = 1 } = this.controls.find((control) => control.name === name);
    const stepped = Number((min + Math.round((value - min) / step) * step).toPrecision(12));
    return Math.min(Math.max(stepped, min), max);
  }

  /** What an input says, now; whether that is a value. */
  moved(control, input) {
    let text = input.type === "checkbox" ? String(input.checked) : input.value;
    if (control.log && input.type === "range") text = String(this.stops[control.name][input.value]);
    const value = this.read(control, text);
    if (value === undefined) {
      input.setAttribute("aria-invalid", true);
      const { name, min, max, step = 1 } = control;
      const { kinds, kind, outside } = this.words;
      const told = outside(this.words[name], kinds[step] ?? kind, String(min).replace("-", "−"), max);
      this.said.textContent = this.heard.textContent = told;
      return false;
    }
    this.state = { ...this.state, [control.name]: value };
    input.removeAttribute("aria-invalid");
    this.show(input);
    this.frame ??= requestAnimationFrame(() => this.drawn());
    return true;
  }

  /** Inputs as the state has it, but for the one in the reader's hand. */
  show(hand) {
    for (const control of this.controls) {
      const value = this.state[control.name];
      for (const input of this.inputs[control.name]) {
        if (input === hand) continue;
        input.removeAttribute("aria-invalid");
        if (input.type === "checkbox") input.checked = value;
        else input.value = control.log && input.type === "range" ? this.nearest(control, value) : value;
      }
      if (control.log) this.inputs[control.name][0].setAttribute("aria-valuetext", value);
    }
  }

  /** The stop of a slider that is nearest to a value, by their ratio. */
  nearest({ name }, value) {
    const ratios = this.stops[name].map((stop) => Math.abs(Math.log(stop / value)));
    return ratios.indexOf(Math.min(...ratios));
  }

  /** Another state, all at once. */
  changed(state) {
    this.state = { ...this.state, ...state };
    this.show();
    this.settled();
  }

  drawn() {
    cancelAnimationFrame(this.frame);
    this.frame = undefined;
    this.draw(this.state);
    this.said.textContent = this.say(this.state);
  }

  /** A change is done: it is said, and the address keeps it. */
  settled() {
    this.drawn();
    this.heard.textContent = this.said.textContent;
    this.remember();
  }

  /* --- Drawing --- */

  /** Sets up the drawing for the room that it has; whether that is another one than before. */
  stretched() {
    const { box, stretches } = this.constructor;
    const usual = 24 * parseFloat(getComputedStyle(document.documentElement).fontSize); // live.css, as the least width
    const room = stretches && matchMedia("(width >= 45em)").matches ? this.clientWidth : usual;
    const width = Math.round(box[0] * Math.max(room / usual, 1));
    if (width === this.width) return false;
    this.width = width;
    this.svg.replaceChildren();
    this.svg.setAttribute("viewBox", `0 0 ${width} ${box[1]}`);
    this.svg.parentElement.classList.toggle("stretched", width > box[0]);
    this.setup?.();
    return true;
  }

  /** A new element of the drawing. */
  add(tag, attributes = {}, parent = this.svg) {
    const element = document.createElementNS(this.svg.namespaceURI, tag);
    parent.append(element);
    return set(element, attributes);
  }

  /** A new label, around its place unless `attributes` say otherwise. */
  label(x, y, text = "", attributes = {}) {
    return set(this.add("text", { x, y, "text-anchor": "middle", ...attributes }), { text });
  }

  /** A sign that something can be dragged, across or along `angle` (degrees); it goes when somebody has dragged. */
  grip(angle = 0, parent = this.svg) {
    const grip = this.add("g", { class: "grip" }, parent);
    this.add("path", { d: "M-6.5 -4l-4.5 4 4.5 4M6.5 -4l4.5 4 -4.5 4", transform: `rotate(${angle})` }, grip);
    return grip;
  }

  /** Calls `picked` with the place in the drawing that a finger or mouse presses or drags to, and with the place and the
      state with which that began. A finger that goes up or down scrolls the page, unless `holds` says that where it
      begins it holds something. */
  onpick(element, picked, { cursor = "pointer", holds = () => false } = {}) {
    let first, from;
    const place = ({ clientX, clientY }) => new DOMPoint(clientX, clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    const told = (event) => {
      const { x, y } = place(event);
      from ??= { x, y, state: this.state };
      picked(x, y, from);
    };
    element.style.cursor = cursor;
    element.addEventListener("touchstart", (event) => holds(place(event.touches[0])) && event.preventDefault(), { passive: false });
    element.addEventListener("pointerdown", (event) => {
      element.setPointerCapture(event.pointerId);
      first = event;
      if (event.pointerType === "mouse" || holds(place(event))) told(event);
    });
    element.addEventListener("pointermove", (event) => {
      if (!first) return;
      if (!from && Math.abs(event.clientX - first.clientX) <= Math.abs(event.clientY - first.clientY)) return;
      if (!from) told(first);
      told(event);
    });
    element.addEventListener("pointerup", () => first && !from && told(first));
    element.addEventListener("lostpointercapture", () => {
      const done = from;
      first = from = undefined;
      if (done) this.settled();
    });
  }

  /** Calls `turned` with the angle, clockwise, by which `element` is dragged round (cx, cy), and where and with which
      state that began. */
  onturn(element, [cx, cy], turned) {
    const angle = (x, y) => Math.atan2(y - cy, x - cx);
    const picked = (x, y, from) => {
      from.last ??= angle(x, y);
      const step = angle(x, y) - from.last;
      from.turned = (from.turned ?? 0) + Math.atan2(Math.sin(step), Math.cos(step));
      from.last += step;
      turned(from.turned, from);
    };
    this.onpick(element, picked, { cursor: "grab", holds: () => true });
  }

  /** What a finger or mouse has found: values that the controls have, too. */
  pick(state) {
    this.classList.add("held");
    this.state = { ...this.state, ...state };
    this.show();
    this.frame ??= requestAnimationFrame(() => this.drawn());
  }
}

function wrap(...nodes) {
  const made = document.createElement("span");
  made.append(...nodes);
  return made;
}

function button(text, pressed) {
  const made = document.createElement("button");
  Object.assign(made, { type: "button", textContent: text });
  made.addEventListener("click", pressed);
  return made;
}

/** Attributes of an element, and its `text`. */
export function set(element, { text, ...attributes }) {
  if (text !== undefined && element.textContent !== text) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, typeof value === "number" ? Math.round(value * 100) / 100 : value);
  }
  return element;
}

/** The data of a path through points. */
export const line = (points) => "M" + points.map(([x, y]) => `${x.toFixed(2)} ${y.toFixed(2)}`).join("L");
