"""Codes for the nodes of a graph: distances to anchors, Laplacian eigenvectors, random walks.

A graph with n nodes is one of these. The order of its nodes is the order of the rows of every result.

- a dense array (n, n) of weights, G[t, u] for the edge from t to u;
- a SciPy sparse array or matrix of the same;
- a networkx graph: nodes in the order of list(graph), weights from the edge attribute "weight", 1 without it.
  Parallel edges are added up.

A weight of 0 is no edge. Results are float64, of the library and on the device of a dense array, else NumPy.
They are computed by SciPy on the CPU, without gradients: pip install 'posenc[graphs]'.

Sources: You, Ying, Leskovec: Position-aware Graph Neural Networks (2019), section 4.
https://arxiv.org/abs/1906.04817
Dwivedi, Joshi, Luu, Laurent, Bengio, Bresson: Benchmarking Graph Neural Networks (2020).
https://arxiv.org/abs/2003.00982
Dwivedi, Luu, Laurent, Bengio, Bresson: Graph Neural Networks with Learnable Structural and Positional
Representations (2021), section 3. https://arxiv.org/abs/2110.07875
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import combinations
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from posenc._arrays import Array, OneArray, is_array, is_tensor, namespace, to_device_of
from posenc._checks import check_flag, check_word, integer

__all__ = [
    "anchor_distances",
    "laplacian_eigenvectors",
    "random_walk_probabilities",
    "smallest_anchors",
]


class Network(Protocol):
    """The methods of a networkx graph that are used."""

    @property
    def edges(self) -> Any: ...
    def is_directed(self) -> bool: ...
    def __iter__(self) -> Iterator[Any]: ...


_FEW = 500  # nodes, of which a dense matrix is solved as fast as a sparse one

# SciPy comes without types, so its sparse arrays pass.
Graph = OneArray | Network

Sign = Literal["solver", "largest"]

# --- Three codes


def anchor_distances(graph: Graph, anchors: Iterable[Any], *, weighted: bool = False) -> Array:
    """The length of a shortest path from each anchor to each node.

    δ(a, t) = the least number of edges on a path from a to t. With `weighted` the least sum of their weights.

    A node that no path reaches gets inf. As the input of a layer use 1 / (1 + δ), which is 0 for such nodes.

    Args:
        graph: as in `posenc.graphs`. Edges are followed in their direction, away from the anchor. Pass the
            transposed array for the other direction. Self-loops have no effect.
        anchors: nodes, in the order of the columns: row numbers of an array, nodes of a networkx graph. A set
            is refused, because its order may change from run to run.
        weighted: whether weights are lengths, at least 0. If False, every edge has length 1.

    Returns:
        float64 array (n, anchors).

    >>> path = np.eye(7, k=1) + np.eye(7, k=-1)
    >>> anchor_distances(path, [0, 3]).T
    array([[0., 1., 2., 3., 4., 5., 6.],
           [3., 2., 1., 0., 1., 2., 3.]])

    Source: You, Ying, Leskovec (2019), section 4: anchor sets, and 1 / (1 + δ).
    """
    edges = adjacency(graph)
    check_flag("weighted", weighted)
    chosen, csgraph = _rows("anchors", anchors, graph, edges.shape[0]), _scipy("sparse.csgraph")
    if weighted:
        _check_not_negative(edges, "a length")
        distances = csgraph.dijkstra(edges, indices=chosen)
    else:
        distances = np.full((len(chosen), edges.shape[0]), np.inf)
        for row, anchor in zip(distances, chosen, strict=True):
            order, parents = csgraph.breadth_first_order(edges, anchor)
            children = np.bincount(parents[order[1:]], minlength=len(row))[order]
            # Nodes are found ring by ring: once a ring has shown its children, the next one is complete.
            found, ends = 1 + np.cumsum(children), [0, 1]
            while ends[-1] < len(order):
                ends.append(found.item(ends[-1] - 1))
            row[order] = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    return _like(np.ascontiguousarray(distances.T), graph)


class LaplacianCodes(NamedTuple):
    """The result of `posenc.laplacian_eigenvectors`."""

    vectors: Array
    """The eigenvectors as columns, (n, k), each of norm 1."""
    values: Array
    """Their eigenvalues μ, (k,), ascending, all above 0."""
    degenerate: Array
    """(k,), bool: True if another eigenvector has the same eigenvalue, also one after the first k. Any rotation of
    such vectors among each other is equally valid."""


def laplacian_eigenvectors(
    graph: Graph, k: int, *, normalized: bool = True, sign: Sign = "solver"
) -> LaplacianCodes:
    """The k eigenvectors of a graph's Laplacian with the smallest eigenvalues above 0: its smoothest patterns.

    Δ = I − D^(−1/2) G D^(−1/2), D = diag(g) with the degrees g_t = Σ_u G[t, u]. Not normalized: Δ = D − G.

    Each connected component has one vector of eigenvalue 0, which is left out. Self-loops are left out too. A
    node without edges gets 0.

    An eigenvector is determined only up to its sign, and vectors with the same eigenvalue only up to a
    rotation. With sign="solver" the signs are those of the solver. With "largest" the entry of largest
    magnitude is made positive. If several entries have that magnitude, as on a path, the first of them in the
    order of nodes is made positive, so the sign then depends on that order.

    Graphs of up to 500 nodes are solved as dense matrices. Larger ones are solved by Lanczos steps, whose memory
    grows linearly with nodes and edges. If these steps do not converge, as for long thin graphs, Δ is factorised.

    Args:
        graph: as in `posenc.graphs`, symmetric, weights at least 0.
        k: number of eigenvectors, at least 1, at most n minus the number of components.
        normalized: which Laplacian, see above.
        sign: "solver" or "largest", see above.

    Returns:
        vectors (n, k), values (k,) and degenerate (k,).

    Raises:
        ImportError: SciPy is not installed.
        ValueError: graph is not symmetric or has a weight below 0, or k is above n minus the number of components.

    >>> ring = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)
    >>> codes = laplacian_eigenvectors(ring, 3)
    >>> codes.values.round(4), codes.degenerate
    (array([0.5, 0.5, 1.5]), array([ True,  True,  True]))

    Source: Dwivedi et al. (2020), section on Laplacian eigenvectors as positional encoding.
    """
    edges, k = adjacency(graph), integer("k", k, minimum=1)
    check_flag("normalized", normalized)
    check_word("sign", sign, Sign)
    _check_not_negative(edges, "the strength of an edge")
    _check_symmetric(edges)
    csgraph, sparse = _scipy("sparse.csgraph"), _scipy("sparse")
    parts, part = csgraph.connected_components(edges, directed=False)
    n = edges.shape[0]
    if k > n - parts:
        raise ValueError(f"k must be at most {n - parts}, for {n} nodes in {parts} parts, got {k}")
    laplacian = sparse.csr_array(csgraph.laplacian(edges, normed=normalized))
    count = min(k + 1, n - parts)  # one more tells whether the last one stands alone
    weight = np.asarray(edges.sum(axis=1)) - edges.diagonal() if normalized else np.ones(n)
    weight = np.where(weight > 0, weight, 1.0)  # of a node without edges
    null = np.sqrt(weight / np.bincount(part, weights=weight)[part])
    flat = sparse.csr_array((null, (np.arange(n), part)), shape=(n, parts))
    if n <= _FEW:
        values, vectors = np.linalg.eigh(laplacian.toarray())
        values, vectors = values[parts : parts + count], vectors[:, parts : parts + count]
        top = 2 * laplacian.diagonal().max()  # no eigenvalue is larger
        if (
            values[0] < 1e-9 * top
        ):  # so weak an edge that its vector mixes with those of 0: these go to the top
            values, vectors = np.linalg.eigh(laplacian.toarray() + 2 * top * (flat @ flat.T).toarray())
            values, vectors = values[:count], vectors[:, :count]
    else:
        values, vectors = _smoothest(laplacian, flat, count)
    close = np.diff(values) <= 1e-7 * values[1:] + 1e-12 * laplacian.diagonal().max()
    shared = np.append(False, close) | np.append(close, False)
    vectors = vectors[:, :k]
    if sign == "largest":
        size = np.abs(vectors)
        first = (size >= (1 - 1e-6) * size.max(axis=0)).argmax(axis=0)
        vectors = vectors * np.sign(vectors[first, np.arange(k)])
    return LaplacianCodes(
        _like(np.ascontiguousarray(vectors), graph), _like(values[:k].copy(), graph), _like(shared[:k], graph)
    )


def random_walk_probabilities(graph: Graph, steps: int, *, nodes: Iterable[Any] | None = None) -> Array:
    """The probability that a random walk is back where it started, after 1, 2, ..., `steps` steps.

    p_r(t) = (P^r)[t, t] with P[t, u] = G[t, u] / g_t. At each step the walk takes an edge with a probability
    proportional to its weight. A self-loop stays at the node. A walk ends at a node without outgoing edges.

    Args:
        graph: as in `posenc.graphs`, weights at least 0, symmetric or not.
        steps: number of steps, at least 1.
        nodes: the nodes to start from: row numbers, or nodes of a networkx graph. All if None. Time is
            proportional to nodes · edges · steps, memory to nodes + edges.

    Returns:
        float64 array (nodes, steps).

    >>> path = np.eye(4, k=1) + np.eye(4, k=-1)
    >>> random_walk_probabilities(path, 4)
    array([[0.    , 0.5   , 0.    , 0.375 ],
           [0.    , 0.75  , 0.    , 0.6875],
           [0.    , 0.75  , 0.    , 0.6875],
           [0.    , 0.5   , 0.    , 0.375 ]])

    Source: Dwivedi et al. (2021), section 3.
    """
    edges, steps, sparse = adjacency(graph), integer("steps", steps, minimum=1), _scipy("sparse")
    _check_not_negative(edges, "how likely a step is")
    n = edges.shape[0]
    starts = np.arange(n) if nodes is None else _rows("nodes", nodes, graph, n)
    degrees = np.asarray(edges.sum(axis=1))
    walk = edges.copy()
    walk.data /= np.repeat(degrees, np.diff(edges.indptr))
    back = np.empty((len(starts), steps))
    block = max(1, 2**21 // n)
    for first in range(0, len(starts), block):
        some = starts[first : first + block]
        column = np.arange(len(some))
        ends: Any = sparse.csr_array((np.ones(len(some)), (some, column)), shape=(n, len(some)))
        for step in range(steps):
            ends = walk @ ends
            if sparse.issparse(ends) and 16 * ends.nnz > n * len(some):  # walks have come far
                ends = ends.toarray()
            back[first : first + block, step] = ends[some, column]
    return _like(back, graph)


def smallest_anchors(graph: Graph) -> list[int]:
    """A smallest set of nodes whose distances tell all nodes apart, found by trying all sets.

    Its size is the metric dimension of the graph. No fast method is known for large graphs.

    Args:
        graph: as in `posenc.graphs`, of at most 20 nodes.

    Returns:
        Row numbers. If several sets of this size would do, the first of them.

    Raises:
        ValueError: graph has more than 20 nodes. All sets of nodes are tried, and their number doubles with each node.

    >>> smallest_anchors(np.eye(7, k=1) + np.eye(7, k=-1))
    [0]

    Source: Harary, Melter: On the metric dimension of a graph (1976).
    """
    edges = adjacency(graph)
    n = edges.shape[0]
    if n > 20:
        raise ValueError(f"graph must have at most 20 nodes, because all sets of nodes are tried, got {n}")
    distances = anchor_distances(edges, range(n))
    for size in range(1, n):
        for anchors in combinations(range(n), size):
            if len(np.unique(distances[:, anchors], axis=0)) == n:
                return list(anchors)
    return [0]  # a single node


# --- What a graph is


def adjacency(graph: Graph) -> Any:
    """The weights of a graph as a new SciPy csr_array (n, n) in float64, without stored zeros.

    Raises:
        TypeError, ValueError: not a graph, not square, no node, or weights that are not finite.
    """
    edges = _edges(graph)
    edges.sum_duplicates()
    edges.eliminate_zeros()
    if not np.isfinite(edges.data).all():
        raise ValueError(f"graph must have finite weights, got {edges.data[~np.isfinite(edges.data)][0]}")
    largest = float(abs(edges.data).max(initial=0))
    if not math.isfinite(largest * edges.nnz):
        raise ValueError(f"graph must have weights whose sum is finite, got {edges.nnz} of up to {largest:g}")
    return edges


def _edges(graph: Any) -> Any:
    """The weights as a csr_array, a copy, of whichever kind the graph is."""
    sparse = _scipy("sparse")
    if sparse.issparse(graph):
        _check_square(graph.shape)
        _check_real(graph.dtype.kind, graph.dtype)
        # Widened first: int8 would go round where edges are added up.
        edges = sparse.csr_array(graph if graph.dtype == bool else graph.astype(np.float64), copy=True)
        edges.sum_duplicates()  # True and True is one edge
        return edges.astype(np.float64)
    if is_array(graph):
        dense = np.asarray(_of_torch(graph) if is_tensor(graph) else graph)
        _check_square(dense.shape)
        _check_real(dense.dtype.kind, graph.dtype)
        return sparse.csr_array(dense.astype(np.float64))
    if hasattr(graph, "is_directed") and hasattr(graph, "edges"):
        return _from_networkx(graph, sparse)
    raise TypeError(
        "graph must be an array (n, n), a SciPy sparse array or a networkx graph, "
        f"got {graph!r:.50} of type {type(graph).__name__}"
    )


def _of_torch(graph: Any) -> Any:
    if graph.is_complex():
        raise TypeError(f"graph must have real weights, got dtype {graph.dtype}")
    if str(graph.layout) != "torch.strided":
        raise TypeError(
            f"graph must be dense, a SciPy sparse array or a networkx graph, got a tensor of layout {graph.layout}"
        )
    return graph.detach().cpu().double()


def _from_networkx(graph: Network, sparse: Any) -> Any:
    row = {node: i for i, node in enumerate(graph)}
    _check_square((len(row), len(row)))
    found = [(row[a], row[b], weight) for a, b, weight in graph.edges(data="weight", default=1)]
    if not graph.is_directed():
        found += [(b, a, weight) for a, b, weight in found if a != b]
    start, end, given = zip(*found, strict=True) if found else ((), (), ())
    weights = np.asarray(given if found else np.empty(0))
    _check_real(weights.dtype.kind, weights.dtype)
    return sparse.csr_array((weights.astype(np.float64), (start, end)), shape=(len(row), len(row)))


def _rows(name: str, chosen: Iterable[Any], graph: Any, n: int) -> np.ndarray:
    """Row numbers of the chosen nodes."""
    if isinstance(chosen, str) or not isinstance(chosen, Iterable) or getattr(chosen, "ndim", 1) != 1:
        raise TypeError(f"{name} must be a sequence of nodes, got {chosen!r} of type {type(chosen).__name__}")
    if isinstance(chosen, set | frozenset | dict):
        raise TypeError(
            f"{name} must be a list of nodes, because the result has its order, got a {type(chosen).__name__}"
        )
    if "bool" in (dtype := str(getattr(chosen, "dtype", ""))):
        raise TypeError(f"{name} must be row numbers, got a mask of dtype {dtype}")
    named = not is_array(graph) and hasattr(graph, "is_directed")
    row = {node: i for i, node in enumerate(graph)} if named else {}
    rows = []
    for node in chosen:
        if named and not isinstance(node, Hashable):
            raise TypeError(
                f"each of {name} must be a node of graph, got {node!r} of type {type(node).__name__}"
            )
        index = row.get(node, -1) if named else integer(f"each of {name}", node, minimum=0)
        if not 0 <= index < n:
            wanted = "be nodes of graph" if named else f"lie in 0..{n - 1}, the rows of graph"
            raise ValueError(f"{name} must {wanted}, got {node!r}")
        rows.append(index)
    if not rows:
        raise ValueError(f"{name} must hold at least 1 node, got 0")
    return np.asarray(rows)


def _check_square(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"graph must have shape (n, n), got {tuple(shape)}")
    if shape[0] == 0:
        raise ValueError("graph must have at least 1 node, got 0")


def _check_real(kind: str, dtype: Any) -> None:
    if kind not in "biuf":
        raise TypeError(f"graph must have real weights, got dtype {dtype}")


def _check_not_negative(edges: Any, meaning: str) -> None:
    if (edges.data < 0).any():
        least = edges.data.min()
        raise ValueError(
            f"graph must have weights of at least 0, because a weight is {meaning}, got {least:g}"
        )


def _check_symmetric(edges: Any) -> None:
    difference = abs(edges - edges.T).tocoo()
    if difference.nnz and difference.data.max() > 1e-9 * edges.data.max():
        worst = difference.data.argmax()
        t, u = int(difference.row[worst]), int(difference.col[worst])
        raise ValueError(
            f"graph must be symmetric, got {edges[t, u]:g} from node {t} to {u} and {edges[u, t]:g} back; "
            "to ignore directions, pass G + G.T"
        )


# --- Many nodes


def _smoothest(laplacian: Any, flat: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The `count` smallest eigenvalues, without those of the orthonormal vectors `flat`, and their eigenvectors.

    Lanczos steps start from one vector and may miss a second eigenvector of the same eigenvalue. So the
    vectors found are projected out, and the best of the rest is computed, until it is no better than those.
    """
    linalg, sparse = _scipy("sparse.linalg"), _scipy("sparse")
    n = laplacian.shape[0]
    top = 2 * laplacian.diagonal().max()  # no eigenvalue is larger
    start = np.random.default_rng(0).normal(size=n)
    nothing = np.empty((n, 0))

    def shifted(x: np.ndarray) -> np.ndarray:
        return top * x - laplacian @ x

    step: Callable[[np.ndarray], np.ndarray] = shifted
    try:
        found = _largest(step, count, start, flat, nothing, maxiter=50)
    except linalg.ArpackNoConvergence:
        # Eigenvalues so close to each other belong to graphs with small cuts, whose factors stay sparse.
        step = linalg.splu(sparse.csc_array(laplacian + 1e-7 * top * sparse.eye_array(n))).solve
        found = _largest(step, count, start, flat, nothing)
    while True:
        values, turn = np.linalg.eigh(found.T @ (laplacian @ found))
        found = found @ turn
        worst = values[count - 1] - 1e-10 * top
        if found.shape[1] == n - flat.shape[1]:
            return values[:count], found[:, :count]
        for tolerance in (1e-2, 0):  # roughly, which mostly is enough, then exactly
            next_one = _largest(step, 1, start, flat, found, tol=tolerance)
            value = (next_one * (laplacian @ next_one)).sum()
            if value - np.linalg.norm(laplacian @ next_one - value * next_one) > worst:
                return values[:count], found[:, :count]
        found = np.linalg.qr(np.hstack([found, next_one]))[0]


def _largest(
    step: Callable[[np.ndarray], np.ndarray],
    k: int,
    start: np.ndarray,
    flat: Any,
    found: np.ndarray,
    **options: Any,
) -> np.ndarray:
    """The eigenvectors of the k largest eigenvalues of `step`, among what is orthogonal to `flat` and `found`."""
    linalg, n = _scipy("sparse.linalg"), len(start)

    def without(x: np.ndarray) -> np.ndarray:
        x = x - flat @ (flat.T @ x)
        return x - found @ (found.T @ x)

    def restricted(x: np.ndarray) -> np.ndarray:
        return without(step(without(x.ravel())))

    operator = linalg.LinearOperator((n, n), restricted, dtype=np.float64)
    width = min(n, max(2 * k + 1, 60))
    return linalg.eigsh(operator, k, which="LA", v0=without(start), ncv=width, **options)[1]


def _like(result: np.ndarray, graph: Graph) -> Array:
    """`result` in the library and on the device of a dense array, unchanged for other graphs."""
    if not is_array(graph) or isinstance(graph, np.ndarray):
        return result
    return to_device_of(result, graph, namespace(graph))


def _scipy(module: str) -> Any:
    try:
        return importlib.import_module(f"scipy.{module}")
    except ModuleNotFoundError:
        raise ImportError("graphs need SciPy: pip install 'posenc[graphs]'") from None
