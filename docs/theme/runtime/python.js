/* Python in the page: one interpreter, in a worker that is started when something is first run. Where the browser has
   it so, the worker outlives the page and belongs to all pages of the book that are open.

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
     needs    what it takes beside NumPy, "matplotlib" and "scipy", with blanks between them
     signal   an AbortSignal that stops the code, however it runs
     limit    ms after which it is stopped likewise; they begin when everything has been loaded
     on       called with ("waiting"), ("busy") where Python does not answer, maybe because of another page, ("alone")
              where this page therefore starts one of its own, ("again") where it has to be started again,
              ("loading", {loaded, total, what}) in bytes, ("step", {what, step}), ("running"), ("output", text) and
              ("figure", svg) as these happen

   What the page and the worker say to each other stands in worker.js. */
const address = new URL("./worker.js", import.meta.url).href;
const BUSY = 400; // ms without an answer, after which the reader is told
const ALONE = 10_000; // and after which another Python is started
const STOPPED = 5000; // likewise, of code that was to stop

let link = null; // to a worker: its port, and how it ends
let sharing = lives(); // whether the browser has workers for all pages
let ready = false; // or it is still loading something
let lost = false; // it has been ended since something was last run
let ended = Promise.resolve(); // whoever asks for it before it is all gone would get what is going
let current = null;
let count = 0;
const waiting = [];

/* Whether a worker can live longer than its page: a browser that knows of it asks for this. */
function lives() {
  let asked = false;
  const options = {
    get extendedLifetime() {
      return (asked = true);
    },
  };
  try {
    new SharedWorker("http://:", options); // no address: nothing is started
  } catch {
    return asked && Boolean(navigator.locks);
  }
}

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

/* Takes part in a Python that is there already: so it stays. */
export const connect = () => (link ??= sharing ? shared() : own());

function own() {
  const worker = new Worker(address, { type: "module" });
  return linked(worker, worker, () => worker.terminate());
}

function shared() {
  const worker = new SharedWorker(address, { type: "module", name: "python", extendedLifetime: true });
  const made = linked(worker, worker.port, () => worker.port.close(), true);
  worker.port.start();
  worker.port.postMessage({ type: "hello" });
  return made;
}

function linked(worker, port, close, shared = false) {
  const made = { port, shared, close };
  const hear = (data) => made === link && heard(data);
  port.addEventListener("message", ({ data }) => hear(data));
  worker.addEventListener("error", ({ message }) => hear({ type: "error", text: message, fatal: true }));
  ready = false;
  return made;
}

function unlinked() {
  clearTimeout(link?.silent);
  link?.close();
  link = null;
  ready = false;
}

function next() {
  if (current || !waiting.length) return;
  current = waiting.shift();
  if (lost) current.on("again");
  lost = false;
  post();
}

async function post() {
  const job = current;
  await ended;
  if (job !== current) return; // it has been stopped meanwhile
  const { id, before, code, name, needs } = current;
  const named = before.map((each, k) => (typeof each === "string" ? { code: each, name: `before ${k + 1}` } : each));
  const lang = document.documentElement.lang.slice(0, 2);
  const { port, shared } = connect();
  current.held = shared ? URL.createObjectURL(new Blob()) : undefined;
  if (shared) unheard(current);
  port.postMessage({
    ...{ type: "run", id, blocks: [...named, { code, name }], needs: needs.split(" "), lang },
    held: current.held,
  });
}

/* A shared Python that says nothing runs a block, of another page or one that does not stop; or a slow line has to
   bring it first: then nobody holds its lock. */
function unheard(job) {
  heardOf(job);
  const after = (ms, act) => setTimeout(async () => (await there()) && !job.heard && job === current && act(), ms);
  job.busy = after(BUSY, () => {
    job.on("busy");
    watch(link); // it may end before it has heard of this page
  });
  job.alone = after(ALONE, alone);
}

function heardOf(job, heard = false) {
  job.heard = heard;
  clearTimeout(job.busy);
  clearTimeout(job.alone);
}

function alone() {
  unlinked();
  sharing = false;
  if (!current) return;
  current.on("alone");
  post();
}

/* The lock of a shared Python that has started: free only when it has ended. */
const lock = `${address} numpy`;
const there = async () => (await navigator.locks.query()).held.some(({ name }) => name === lock);

function watch(made) {
  if (!made.shared || made.watched) return;
  made.watched = true;
  navigator.locks.request(lock, { mode: "shared" }, () => made === link && gone("stopped"));
}

async function free() {
  for (let tries = 0; tries < 60 && (await there()); tries += 1) await new Promise((over) => setTimeout(over, 50));
}

function gone(why) {
  lost = why === "stopped";
  unlinked();
  ended = free();
  if (!current) return;
  if (current.begun) return end(current, { text: "", fatal: true });
  if (lost) current.on("again");
  lost = false;
  post();
}

function heard({ type, id, text = "", svg, line = 0, name = "", ms, cut = 0, fatal, why, ...more }) {
  if (type === "gone") return gone(why);
  if (type === "ready" || type === "progress") ready = type === "ready";
  if (type === "ready") watch(link);
  if (id !== undefined && id === link.stopping) {
    clearTimeout(link.silent);
    link.stopping = undefined;
  }
  if (!current || (id !== undefined && id !== current.id)) return;
  const { result, on } = current;
  heardOf(current, true);
  if (type === "progress" || type === "begin") clearTimeout(current.timer);
  if (type === "progress") on("loading", more);
  if (type === "step") on("step", more);
  if (type === "begin") {
    watch(link);
    current.begun = ready = true;
    on("running");
    if (current.limit) current.timer = setTimeout(stop, current.limit, current);
  }
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
  heardOf(job);
  clearTimeout(job.timer);
  if (job.held) URL.revokeObjectURL(job.held);
  if (job === current) {
    current = null;
    if (error?.stopped && link?.shared) {
      link.port.postMessage({ type: "stop", id: job.id });
      link.stopping = job.id;
      link.silent = setTimeout(alone, STOPPED);
    } else if (error?.loading || error?.fatal || error?.stopped) {
      unlinked(); // the next one begins anew
    }
  }
  next();
}

function stop(job) {
  const place = waiting.indexOf(job);
  if (place >= 0) waiting.splice(place, 1);
  if (place >= 0 || job === current) end(job, { stopped: true });
}

/* Whoever leaves the page waits for nothing any more. */
addEventListener("pagehide", () => {
  for (const job of [...waiting, current]) if (job) stop(job);
  if (link?.shared) link.port.postMessage({ type: "bye" });
});
