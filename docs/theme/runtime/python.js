/* Python in the page: one interpreter, in a worker that is started when something is first run.

     import { runBlock } from "./runtime/python.js";
     const { output, figures, error } = await runBlock("print(x + 1)", { before: ["x = 1"] });

   A piece of code begins with a namespace of its own and leaves nothing behind. One is run after another, in the
   order in which they were asked for. The promise is always kept:

     output   what the code printed, as much as is shown; `cut` counts the characters that are not
     figures  an <svg> each, as text, with ids that are no other figure's
     error    null where all went well, or { text, line, name }: what Python says, the line (from 1; 0 there is
              none) and the name of the piece that has it; { text, loading: true } where something could not be
              loaded, { text, fatal: true } where Python itself went down, { stopped: true } after an abort
     ms       how long the code ran

   Options, all of which may be left out:

     before   what is run first, in the same namespace, and not shown: a list of code, or of {code, name}
     name     the name of the piece itself, "code" if not given, by which an error says that it is its own
     needs    "numpy", or "matplotlib" for code that draws
     signal   an AbortSignal that stops the code, however it runs: its interpreter ends, and its memory is given back
     limit    ms after which it is stopped likewise; they begin when everything has been loaded
     on       called with ("waiting"), ("loading", {loaded, total, what}) in bytes, ("running"), ("output", text)
              and ("figure", svg) as these happen

   What the page and the worker say to each other stands in worker.js. */
let worker = null;
let ready = false; // or it is still loading something
let current = null;
let count = 0;
const waiting = [];

export function runBlock(code, options = {}) {
  return new Promise((resolve) => {
    const result = { output: "", cut: 0, figures: [], error: null, ms: 0 };
    const job = { needs: "numpy", before: [], name: "code", on() {}, ...options, code, id: ++count, resolve, result };
    if (job.signal?.aborted) return end(job, { stopped: true });
    job.signal?.addEventListener("abort", () => stop(job));
    waiting.push(job);
    if (current) job.on("waiting");
    next();
  });
}

function next() {
  if (current || !waiting.length) return;
  current = waiting.shift();
  const { id, before, code, name, needs } = current;
  const named = before.map((each, k) => (typeof each === "string" ? { code: each, name: `before ${k + 1}` } : each));
  const lang = document.documentElement.lang.slice(0, 2);
  worker ??= started();
  if (ready) runs();
  worker.postMessage({ type: "run", id, blocks: [...named, { code, name }], needs: ["numpy", needs], lang });
}

function started() {
  const made = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  const hear = (data) => made === worker && heard(data);
  made.addEventListener("message", ({ data }) => hear(data));
  made.addEventListener("error", ({ message }) => hear({ type: "error", text: message, fatal: true }));
  return made;
}

function runs() {
  current.on("running");
  if (current.limit) current.timer = setTimeout(stop, current.limit, current);
}

function heard({ type, id, text = "", svg, line = 0, name = "", ms, cut = 0, fatal, ...bytes }) {
  if (type === "ready" || type === "progress") ready = type === "ready";
  if (!current || (id !== undefined && id !== current.id)) return;
  const { result, on } = current;
  if (type === "progress" || type === "ready") clearTimeout(current.timer);
  if (type === "progress") on("loading", bytes);
  if (type === "ready") runs();
  if (type === "output") {
    result.output += text;
    on("output", text);
  }
  if (type === "figure") {
    const drawing = svg.replaceAll("posenc-id-", `run-${current.id}-${result.figures.length}-`);
    result.figures.push(drawing);
    on("figure", drawing);
  }
  if (type === "done" || type === "error") result.cut = cut;
  if (type === "done") end(current, null, ms);
  if (type === "error") end(current, fatal ? { text, [ready ? "fatal" : "loading"]: true } : { text, line, name });
}

function end(job, error, ms = 0) {
  job.resolve(Object.assign(job.result, { error, ms }));
  if (job === current) {
    current = null;
    if (error?.loading || error?.fatal || error?.stopped) {
      worker.terminate(); // the next one begins anew
      worker = null;
      ready = false;
    }
  }
  next();
}

function stop(job) {
  const place = waiting.indexOf(job);
  if (place >= 0) waiting.splice(place, 1);
  if (place >= 0 || job === current) end(job, { stopped: true });
}
