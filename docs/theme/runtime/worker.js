/* Python for the blocks of a page, in a worker of its own: whoever stops it by terminate() gets the memory back.

   Page to worker
     { type: "run", id, blocks: [{ code, name }, …], needs: ["numpy"] or ["numpy", "matplotlib"], lang, draw }
       runs the blocks one after the other in fresh names; the last one is shown, those before it are silent.
       Their names differ. Code that draws is seen, and need not be announced. draw: false leaves drawings empty,
       for whoever only counts them: drawing takes longer than all else.
   Worker to page
     { type: "progress", loaded, total, what }  bytes over the wire of what is being loaded, "numpy" or "matplotlib"
     { type: "ready" }                          Python has been started, or has learnt to draw
     { type: "output", id, text }               what the block prints, in pieces
     { type: "figure", id, svg }                a drawing in the colours of the page, described for screen readers;
                                                its ids begin with "posenc-id-", for the page to make its own
     { type: "done", id, ms, cut }              cut: so many more characters were printed and are not shown
     { type: "error", id, text, name, line, cut, fatal }
       name and line (from 1, 0 where there is none): the block and the line that failed; text: how.
       fatal: this worker is of no more use, terminate it. Without an id: Python could not be loaded. */

const PY = new URL("../../py/", import.meta.url).href;

const fetched = self.fetch;

let files; // what py/ holds, by who needs it
let python; // promises: of Python, and of what it can draw with
let drawing;
let in_page;
let broken; // why a file could not be had: Pyodide, without it, would say something else

async function opened(name, options) {
  try {
    const response = await fetched(PY + name, options);
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
  return async (name) => {
    const response = await opened(name);
    return response.body.pipeThrough(
      new TransformStream({
        transform(chunk, out) {
          loaded += chunk.length;
          if (loaded >= total || performance.now() - told > 50) {
            told = performance.now();
            postMessage({ type: "progress", loaded: Math.min(loaded, total), total, what });
          }
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
  pyodide.runPython("import numpy.fft, numpy.linalg, numpy.ma, numpy.polynomial, numpy.random, posenc");
  in_page = pyodide.pyimport("press.runtime.in_page");
  in_page.settle();
  postMessage({ type: "ready" });
  return pyodide;
}

async function learnToDraw(pyodide) {
  unpacked(pyodide, await fetchedAll(counter("matplotlib"), Object.keys(files.matplotlib)));
  pyodide.runPython("import matplotlib.pyplot, matplotlib.backends.backend_svg, posenc.plot");
  in_page.settle();
  postMessage({ type: "ready" });
}

const DRAWS = /^\s*(import|from)\b.*\b(matplotlib|posenc\.plot|posenc import .*\bplot)\b/m;

async function run({ id, blocks, needs, lang, draw = true }) {
  const pyodide = await (python ??= start());
  if (needs.includes("matplotlib") || blocks.some(({ code }) => DRAWS.test(code))) await (drawing ??= learnToDraw(pyodide));
  const began = performance.now();
  const answer = JSON.parse(
    in_page.run(
      JSON.stringify({ blocks, lang, draw }),
      (text) => postMessage({ type: "output", id, text }),
      (svg) => postMessage({ type: "figure", id, svg }),
    ),
  );
  if (answer.text === undefined) postMessage({ type: "done", id, ms: performance.now() - began, ...answer });
  else postMessage({ type: "error", id, ...answer });
}

/* One run after the other. What fails in here, and not in a block, ends this worker. */
let last = Promise.resolve();
addEventListener("message", ({ data }) => {
  if (data.type !== "run") return;
  last = last
    .then(() => run(data))
    .catch((error) => {
      const { message } = broken ?? error;
      postMessage({ type: "error", id: data.id, text: message, name: "", line: 0, cut: 0, fatal: true });
    });
});
