/* The formulas of posenc for figures that move: the same names, spelled as JavaScript spells them, and the same
   numbers (a test holds them together). Arguments are not checked: the controls of a figure offer no bad ones. */

const TURN = 2 * Math.PI;
const vector = (length, value) => Float64Array.from({ length }, (_, i) => value(i));
const sum = (numbers) => numbers.reduce((total, x) => total + x, 0);

/** A sum of terms in the order of their size: its rounding, too, is the same in whatever order they come. */
export const orderlessSum = (terms) => sum([...terms].sort((a, b) => a - b));

export const dot = (a, b) => sum(a.map((x, i) => x * b[i]));

/* --- Sinusoidal codes --- */

/** ω_i = base^(−2i/dim). */
export const sinusoidalFrequencies = (dim, base = 1e4) => vector(dim / 2, (i) => base ** ((-2 * i) / dim));

export const sinusoidalWavelengths = (dim, base) => sinusoidalFrequencies(dim, base).map((omega) => TURN / omega);

/** PE(t): sin ω_0 t, cos ω_0 t, sin ω_1 t, ... */
export function sinusoidalEncoding(t, dim, base) {
  const angles = sinusoidalFrequencies(dim, base).map((omega) => t * omega);
  return vector(dim, (j) => (j % 2 ? Math.cos : Math.sin)(angles[j >> 1]));
}

/** M_k code: each pair turned clockwise by ω_i k, from (sin, cos). M_kᵀ is the shift by −k. */
export function shift(code, k, base) {
  const turned = new Float64Array(code.length);
  sinusoidalFrequencies(code.length, base).forEach((omega, i) => {
    const [sin, cos] = [Math.sin(omega * k), Math.cos(omega * k)];
    turned[2 * i] = cos * code[2 * i] + sin * code[2 * i + 1];
    turned[2 * i + 1] = cos * code[2 * i + 1] - sin * code[2 * i];
  });
  return turned;
}

/** ‖PE(t + k) − PE(t)‖ for each offset k. */
export function codeDistance(offsets, dim, base) {
  const frequencies = sinusoidalFrequencies(dim, base);
  return offsets.map((k) => {
    let total = 0; // no list of 256 squares for each of a hundred offsets, in every frame
    for (const omega of frequencies) total += Math.sin(k * (omega / 2)) ** 2;
    return 2 * Math.sqrt(total);
  });
}

/** K(k) = PE(t) · PE(t + k) for each offset k. */
export const relativeKernel = (offsets, dim, base) =>
  codeDistance(offsets, dim, base).map((distance) => dim / 2 - distance ** 2 / 2);

/** The offsets below n at which two codes come nearer than `tolerance`: than those of neighbours. */
export function aliasOffsets(n, dim, base, tolerance = codeDistance([1], dim, base)[0]) {
  const offsets = Array.from({ length: n - 1 }, (_, i) => i + 1);
  const distances = codeDistance(offsets, dim, base);
  return offsets.filter((_, i) => distances[i] < tolerance);
}

/** The slowest frequency, signed, that has the same values as `omega` at all whole positions. */
export const slowestAlias = (omega) => omega - TURN * Math.round(omega / TURN);

/** x as bfloat16 holds it: eight binary digits, ties to even. */
export function toBfloat16(x) {
  const bits = new Uint32Array(Float32Array.of(x).buffer);
  bits[0] = (bits[0] + 0x7fff + ((bits[0] >>> 16) & 1)) & 0xffff0000;
  return new Float32Array(bits.buffer)[0];
}

/** The code of a point of a grid: one axis after the other. The codes of two points have the dot product Σ_a K(k_a). */
export const coordinateEncoding = (point, dim, base) =>
  Float64Array.from(point.flatMap((t) => [...sinusoidalEncoding(t, dim / point.length, base)]));

/* --- Time --- */

/** Of periods from `shortest` to `longest`, at equal ratios. */
export const timeFrequencies = (dim, shortest, longest) =>
  vector(dim / 2, (i) => TURN / (shortest * (longest / shortest) ** (i / (dim / 2 - 1))));

/** The index of the mark that is nearest to a time; of two the earlier one. */
export const nearestIndex = (seconds, marks) =>
  marks.reduce((best, mark, i) => (Math.abs(seconds - mark) < Math.abs(seconds - marks[best]) ? i : best), 0);

/* --- Rotary --- */

/** Neighbouring pairs of x, turned counter-clockwise by ω_i t. */
export function applyRotary(x, t, frequencies = sinusoidalFrequencies(x.length)) {
  const turned = new Float64Array(x.length);
  frequencies.forEach((omega, i) => {
    const [sin, cos] = [Math.sin(omega * t), Math.cos(omega * t)];
    turned[2 * i] = x[2 * i] * cos - x[2 * i + 1] * sin;
    turned[2 * i + 1] = x[2 * i] * sin + x[2 * i + 1] * cos;
  });
  return turned;
}

/** What each pair adds to the score R(t)q · R(u)k of a key `offset` = u − t further on. */
export function rotaryScores(query, key, offset, frequencies = sinusoidalFrequencies(query.length)) {
  const turned = applyRotary(key, offset, frequencies);
  return frequencies.map((_, i) => query[2 * i] * turned[2 * i] + query[2 * i + 1] * turned[2 * i + 1]);
}

export const linearFrequencies = (dim, factor, base) => sinusoidalFrequencies(dim, base).map((omega) => omega / factor);

export const ntkFrequencies = (dim, factor, base = 1e4) =>
  sinusoidalFrequencies(dim, base * factor ** (dim / (dim - 2)));

export function yarnFrequencies(dim, factor, originalLength, base = 1e4, betaFast = 32, betaSlow = 1) {
  const pair = (turns) => (dim * Math.log(originalLength / (turns * TURN))) / (2 * Math.log(base));
  const low = Math.max(Math.floor(pair(betaFast)), 0);
  const high = Math.min(Math.ceil(pair(betaSlow)), dim - 1);
  return sinusoidalFrequencies(dim, base).map((omega, i) => {
    const ramp = Math.min(Math.max((i - low) / (high - low || 0.001), 0), 1);
    return omega * (1 - ramp) + (omega / factor) * ramp;
  });
}

export function llama3Frequencies(dim, factor, originalLength, base = 1e4, lowFreqFactor = 1, highFreqFactor = 4) {
  return sinusoidalFrequencies(dim, base).map((omega) => {
    const turns = (originalLength * omega) / TURN;
    const kept = Math.min(Math.max((turns - lowFreqFactor) / (highFreqFactor - lowFreqFactor), 0), 1);
    return omega * kept + (omega / factor) * (1 - kept);
  });
}

export const yarnAttentionFactor = (factor) => 0.1 * Math.log(factor) + 1;

/* --- Learned tables --- */

/** The place of each of `length` new rows on the ruler of n old ones, the two old rows there, and their weights. */
export const taps = (n, length, alignCorners = true) =>
  Array.from({ length }, (_, j) => {
    const at = alignCorners ? (j * (n - 1)) / Math.max(length - 1, 1) : ((2 * j + 1) * n) / (2 * length) - 0.5;
    const [first, inside] = [Math.floor(at), (row) => Math.min(Math.max(row, 0), n - 1)];
    return { at: inside(at), rows: [first, first + 1].map(inside), weights: [first + 1 - at, at - first] };
  });

/** A table of another length, by linear interpolation between its rows. */
export const interpolateTable = (table, length, alignCorners) =>
  taps(table.length, length, alignCorners).map(({ rows: [a, b], weights: [v, w] }) =>
    table[a].map((x, i) => v * x + w * table[b][i]),
  );

/* --- Biases --- */

/** The published slopes, also where the number of heads is no power of two. */
export function alibiSlopes(numHeads) {
  const below = 2 ** Math.floor(Math.log2(numHeads));
  return vector(numHeads, (h) => 2 ** -(h < below ? (8 * (h + 1)) / below : (4 * (2 * (h - below) + 1)) / below));
}

/** The least distance in each bucket of one side. */
export function t5BucketStarts(buckets, maxDistance) {
  const exact = Math.floor(buckets / 2);
  const shared = buckets - exact;
  const starts = Array.from({ length: exact }, (_, d) => d);
  for (let j = 0; j < shared; j++) {
    // Whole numbers without end: a rounded logarithm could miss a bound by one.
    const bound = BigInt(maxDistance) ** BigInt(j) * BigInt(exact) ** BigInt(shared - j);
    const reached = (distance) => BigInt(distance) ** BigInt(shared) >= bound;
    let start = Math.floor(exact * (maxDistance / exact) ** (j / shared));
    while (reached(start)) start--;
    while (!reached(start)) start++;
    starts.push(start);
  }
  return starts;
}

/** The bucket of the offset k = u − t. */
export function t5Bucket(k, numBuckets = 32, maxDistance = 128, bidirectional = true) {
  const side = bidirectional ? numBuckets / 2 : numBuckets;
  const distance = bidirectional ? Math.abs(k) : Math.max(-k, 0);
  const bucket = t5BucketStarts(side, maxDistance).findLastIndex((start) => start <= distance);
  return bucket + (bidirectional && k > 0 ? side : 0);
}

/* --- Positions that the content decides --- */

/** CoPE: how far back each key lies for the last query, the sum of the gates from it on, at most `maxPosition`. */
export function contextualPositions(gates, maxPosition) {
  let total = 0;
  return gates.map((_, n) => Math.min((total += gates[gates.length - 1 - n]), maxPosition)).reverse();
}

/* --- Graphs: rows of the weights of edges, the same both ways, in one piece --- */

/** The number of edges from `anchor` to each node. */
export function anchorDistances(graph, anchor) {
  const far = graph.map((_, t) => (t === anchor ? 0 : Infinity));
  for (const _ of graph)
    graph.forEach((row, t) => row.forEach((weight, u) => weight && (far[u] = Math.min(far[u], far[t] + 1))));
  return far;
}

/** The probability for each node that a random walk is back after `steps` steps. */
export function randomWalkProbabilities(graph, steps) {
  const walk = graph.map((row) => row.map((weight) => weight / sum(row)));
  let power = walk;
  for (let step = 1; step < steps; step++)
    power = power.map((row) => row.map((_, u) => sum(row.map((p, t) => p * walk[t][u]))));
  return power.map((row, t) => row[t]);
}

/** The eigenvectors of I − D^(−1/2) G D^(−1/2) by their values, without that of 0; the largest entry is above 0. */
export function laplacianEigenvectors(graph) {
  const unit = graph.map((_, t) => graph.map((_, u) => Number(t === u)));
  let a = graph.map((row, t) => row.map((weight, u) => unit[t][u] - weight / Math.sqrt(sum(row) * sum(graph[u]))));
  let vectors = unit;
  const turned = (rows, p, q, sin, cos) =>
    rows.map((row, t) => row.map((x, u) => (t === p ? cos * x - sin * rows[q][u] : t === q ? cos * x + sin * rows[p][u] : x)));
  const flipped = (rows) => rows.map((_, t) => rows.map((row) => row[t]));
  for (let sweep = 0; sweep < 9; sweep++) // Jacobi: each turn makes one entry off the diagonal 0
    for (let q = 1; q < a.length; q++)
      for (let p = 0; p < q; p++) {
        const angle = Math.atan2(2 * a[p][q], a[q][q] - a[p][p]) / 2;
        const turn = (rows) => turned(rows, p, q, Math.sin(angle), Math.cos(angle));
        vectors = turn(vectors);
        a = turn(flipped(turn(a)));
      }
  const order = vectors.map((vector, t) => [a[t][t], vector]).sort((x, y) => x[0] - y[0]);
  return order.slice(1).map(([, vector]) => {
    const most = Math.max(...vector.map(Math.abs)) * (1 - 1e-6);
    const sign = Math.sign(vector.find((x) => Math.abs(x) >= most));
    return vector.map((x) => sign * x);
  });
}

/* --- Attention --- */

/** exp(s) / Σ exp(s); zeros where all scores are −∞. */
export function softmax(scores) {
  const top = Math.max(...scores);
  if (top === -Infinity) return scores.map(() => 0);
  const powers = scores.map((score) => Math.exp(score - top));
  const total = orderlessSum(powers);
  return powers.map((power) => power / total);
}

/** Rows of weights: softmax of q · k / √d + bias(t, u) over the keys that are not hidden(t, u). */
export const attentionWeights = (queries, keys, { bias = () => 0, hidden = () => false } = {}) =>
  queries.map((query, t) =>
    softmax(
      keys.map((key, u) => (hidden(t, u) ? -Infinity : dot(query, key) / Math.sqrt(query.length) + bias(t, u))),
    ),
  );

/** The outputs: Σ_u w_tu v_u, one row a query. */
export const attentionOutputs = (weights, values) =>
  weights.map((row) => vector(values[0].length, (j) => orderlessSum(row.map((weight, u) => weight * values[u][j]))));

const leak = (weights, queries, keys) => {
  const rows = weights.filter((_, t) => queries[t]);
  return sum(rows.map((row) => sum(row.filter((_, u) => keys[u])))) / Math.max(rows.length, 1);
};

/** The share of its attention that a real query spends on pads, on average; `pads` is true at pads. */
export const leakIn = (weights, pads) => leak(weights, pads.map((pad) => !pad), pads);

/** The share that a pad spends on real tokens. */
export const leakOut = (weights, pads) => leak(weights, pads, pads.map((pad) => !pad));
