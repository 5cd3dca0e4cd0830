/* Python for the blocks of the pages. Where the browser lets a worker outlive the page that made it, all pages of a
   book have one, a SharedWorker; elsewhere each page has a Worker of its own, which it stops by terminate().

   Page to worker
     { type: "run", id, blocks: [{ code, name }, …], needs: ["numpy", …], lang, draw, held }
       runs the blocks one after the other in fresh names; the last one is shown, those before it are silent.
       Their names differ. needs has the parts beside NumPy that it takes, "matplotlib" and "scipy"; code that imports
       them itself is seen, and need not be announced. draw: false leaves drawings empty, for whoever only counts
       them: drawing takes longer than all else. held, which a shared worker wants: a blob's address that the page
       revokes to stop the block, and the browser when it leaves the page.
     { type: "stop", id }                       the block is wanted no more; what is loaded for it alone is not loaded
     { type: "hello" } and { type: "bye" }      of a page that comes and goes
   Worker to page
     { type: "progress", loaded, total, what }  bytes over the wire of what is being loaded, a part
     { type: "step", what, step }               of the same, when it is there: "start", "numpy", "posenc" of "numpy",
                                                "import" of the others; both are told to every page
     { type: "ready" }                          Python has been started, or has learnt a part; the answer to "hello"
     { type: "begin", id }                      the blocks begin
     { type: "output", id, text }               what the block prints, in pieces
     { type: "figure", id, svg }                a drawing in the colours of the page, described for screen readers;
                                                its ids begin with "posenc-id-", for the page to make its own
     { type: "done", id, ms, cut }              cut: so many more characters were printed and are not shown
     { type: "error", id, text, name, line, cut, fatal }
       name and line (from 1, 0 where there is none): the block and the line that failed; text: how.
       fatal: this worker is of no more use, terminate it. Without an id: Python could not be loaded.
     { type: "gone", why }                      a shared worker ends: "stopped", by a block that would not stop; "old",
                                                as the book has another package now; "unwanted", before it was ready;
                                                "broken"

   A shared worker holds a lock for each part that it has, "ADDRESS PART": pages see by it what is there, and that
   the worker has ended. */

const PY = new URL("../../py/", import.meta.url).href;

const shared = "onconnect" in self;
const fetched = self.fetch;

let files; // what py/ holds, by who needs it
let python; // promises: of Python, and of what else it has learnt
const learnt = {};
let in_page;
let broken; // why a file could not be had: Pyodide, without it, would say something else
let loading; // what is being loaded can be given up

const ports = new Set(); // of the pages that are there; a Worker has its page only
const tell = (type, more) => ports.forEach((port) => port.postMessage({ type, ...more }));

async function opened(name, options) {
  try {
    const response = await fetched(PY + name, { signal: loading?.signal, ...options });
    if (response.ok) return response;
    throw new Error(`${response.status} ${response.url}`);
  } catch (error) {
    throw (broken ??= error);
  }
}

/* Opens files of one kind; how many of their bytes have come is told to the page. */
const counter = (what) => {
  const total = Object.values(files[what]).reduce((sum, size) => sum + size, 0);
  let loaded = 0;
  let told = 0;
  tell("progress", { loaded, total, what });
  return async (name) => {
    const response = await opened(name);
    return response.body.pipeThrough(
      new TransformStream({
        transform(chunk, out) {
          loaded += chunk.length;
          if (loaded >= total || performance.now() - told > 50) {
            told = performance.now();
            tell("progress", { loaded: Math.min(loaded, total), total, what });
          }
          if (loaded >= total) tell("step", { what, step: what === "numpy" ? "start" : "import" });
          out.enqueue(chunk);
        },
      }),
    );
  };
};
const bytes = async (stream) => new Response(await stream).arrayBuffer();

/* Pyodide fetches its two large files itself: here is what it gets, the one unpacked on the way. */
const served = (take) => {
  self.fetch = async (address, ...options) => {
    const name = String(address.url ?? address).replace(PY, "");
    if (name === "pyodide.asm.wasm") {
      const unpacked = (await take(`${name}.packed`)).pipeThrough(new DecompressionStream("gzip"));
      return new Response(unpacked, { headers: { "content-type": "application/wasm" } });
    }
    return name === "python_stdlib.zip" ? new Response(await take(name)) : fetched(address, ...options);
  };
};

const unpacked = (pyodide, buffers) => {
  for (const [name, buffer] of buffers) pyodide.unpackArchive(buffer, name.endsWith(".whl") ? "wheel" : "zip");
};

const fetchedAll = (take, names) => Promise.all(names.map(async (name) => [name, await bytes(take(name))]));

async function start() {
  files = await (await opened("files.json", { cache: "no-cache" })).json();
  const take = counter("numpy");
  const archives = fetchedAll(take, Object.keys(files.numpy).filter((name) => /\.whl$|^posenc/.test(name)));
  archives.catch(() => {}); // said by whoever waits for it
  const { loadPyodide } = await import(`${PY}pyodide.mjs`);
  served(take);
  const pyodide = await loadPyodide({
    indexURL: PY,
    packageBaseUrl: PY,
    // Wheels are fetched and unpacked below: there is nothing to look up.
    lockFileContents: { info: { abi_version: files.abi }, packages: {} },
    env: { HOME: "/home/pyodide", PYTHONHASHSEED: "0", MPLBACKEND: "agg" },
    stdin: () => null,
  });
  unpacked(pyodide, await archives);
  tell("step", { what: "numpy", step: "numpy" });
  pyodide.runPython("import numpy.fft, numpy.linalg, numpy.ma, numpy.polynomial, numpy.random");
  tell("step", { what: "numpy", step: "posenc" });
  pyodide.runPython("import posenc");
  in_page = pyodide.pyimport("press.runtime.in_page");
  if (shared) watched(pyodide);
  await has("numpy");
  return pyodide;
}

/* What each other part takes, beside being loaded; and code that takes it, whatever the page says. */
const IMPORTS = {
  matplotlib: "import matplotlib.pyplot, matplotlib.backends.backend_svg, posenc.plot",
  scipy: "import scipy.sparse.csgraph, scipy.sparse.linalg, posenc.graphs",
};
const TAKES = {
  matplotlib: /^\s*(import|from)\b.*\b(matplotlib|posenc\.plot|posenc import .*\bplot)\b/m,
  scipy: /\b(scipy|posenc\.graphs|anchor_distances|laplacian_eigenvectors|random_walk_probabilities)\b/,
};

async function learn(part, pyodide) {
  unpacked(pyodide, await fetchedAll(counter(part), Object.keys(files[part])));
  pyodide.runPython(IMPORTS[part]);
  await has(part);
}

async function has(part) {
  in_page.settle();
  const taken = (taking) => void navigator.locks.request(`${location.href} ${part}`, () => new Promise(taking));
  if (shared) await new Promise((over) => taken(() => over()));
  tell("ready");
}

/* --- Stopping -----------------------------------------------------------------------------------------------
   A Worker is terminated. A shared one belongs to other pages, too, and cannot be: Python asks now and then whether
   the block may go on, and the answer has to come while it runs, which leaves a request for what the page can take
   away. What does not let itself be interrupted ends the worker. */
const ASKS = 200; // ms
let held; // of the block that runs
let asked = 0;
let refused = 0; // times that it has been told to stop

function revoked(address) {
  try {
    const request = new XMLHttpRequest();
    request.open("GET", address, false);
    request.send();
    return false;
  } catch {
    return true;
  }
}

function watched(pyodide) {
  const signals = {
    get 0() {
      const now = performance.now();
      if (!held || now - asked < (refused ? 5 : 1) * ASKS) return 0;
      asked = now;
      if (!revoked(held)) return 0;
      if ((refused += 1) === 3) Object.defineProperty(pyodide._module, "Py_EmscriptenSignalBuffer", { get: stops });
      return 2; // SIGINT
    },
    set 0(_) {},
  };
  pyodide.setInterruptBuffer(signals);
}

function stops() {
  ends("stopped");
  throw new Error("stopped"); // through all of Python
}

function ends(why) {
  tell("gone", { why });
  close();
}

/* --- Running ------------------------------------------------------------------------------------------------*/

async function run(job) {
  const { id, blocks, needs, lang, draw = true, port } = job;
  const say = (type, more) => port.postMessage({ type, id, ...more });
  const stopped = () => job.stopped || (job.held && revoked(job.held));
  const nothing = { text: "", name: "", line: 0, cut: 0 };
  if (stopped()) return say("error", nothing);
  loading = new AbortController();
  const pyodide = await (python ??= start());
  for (const part of Object.keys(TAKES)) {
    if (!needs.includes(part) && !blocks.some(({ code }) => TAKES[part].test(code))) continue;
    try {
      await (learnt[part] ??= learn(part, pyodide));
    } catch (error) {
      if (!job.stopped) throw error;
      learnt[part] = broken = undefined; // it may be wanted another time
      break;
    }
  }
  if (stopped()) return say("error", nothing);
  say("begin");
  const began = performance.now();
  [held, asked, refused] = [job.held, began, 0];
  let answer;
  try {
    answer = JSON.parse(
      in_page.run(
        JSON.stringify({ blocks, lang, draw }),
        (text) => say("output", { text }),
        (svg) => say("figure", { svg }),
      ),
    );
  } finally {
    held = undefined;
  }
  if (answer.text === undefined) say("done", { ms: performance.now() - began, ...answer });
  else say("error", answer);
}

/* One run after the other. What fails in here, and not in a block, ends this worker. */
const jobs = [];
let last = Promise.resolve();
function asks(job) {
  jobs.push(job);
  last = last
    .then(() => run(job))
    .catch((error) => {
      const { message } = broken ?? error;
      job.port.postMessage({ type: "error", id: job.id, text: message, name: "", line: 0, cut: 0, fatal: true });
      if (shared) ends("broken");
    })
    .finally(() => jobs.splice(jobs.indexOf(job), 1));
}

/* A part that nobody waits for any more is not loaded to its end; nor is Python, which then begins anew. */
function stop(port, id) {
  const wanted = jobs.find((job) => job.port === port && job.id === id);
  if (wanted) wanted.stopped = true;
  if (!wanted || jobs.some((job) => !job.stopped)) return;
  if (in_page) loading?.abort();
  else ends("unwanted");
}

/* A worker that has outlived an edit of the package is of no use to a page that comes. */
async function greet(port) {
  if (!in_page) return;
  port.postMessage({ type: "ready" });
  const now = await fetched(`${PY}files.json`, { cache: "no-cache" }).then((answer) => answer.json());
  if (JSON.stringify(now) !== JSON.stringify(files) && !jobs.length) ends("old");
}

function hear(port) {
  ports.add(port);
  port.onmessage = ({ data }) => {
    ports.add(port);
    if (data.type === "run") asks({ ...data, port });
    else if (data.type === "stop") stop(port, data.id);
    else if (data.type === "hello") greet(port).catch(() => {}); // without a net it goes on
    else if (data.type === "bye") ports.delete(port);
  };
}

if (shared) self.onconnect = ({ ports: [port] }) => hear(port);
else hear(self);
