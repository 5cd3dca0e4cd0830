"""What do codes of graphs cost beside SciPy's own search and PyTorch Geometric? Time as a ratio, and memory.

python tests/benchmarks/bench_graphs.py
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from benchmark import Row, machine, peer, print_table, warm_allocator
from scipy import sparse
from scipy.sparse import csgraph, linalg

from posenc import anchor_distances, laplacian_eigenvectors, random_walk_probabilities


def random_graph(n: int, edges: int, groups: int = 1) -> Any:
    """So many edges between nodes chosen by chance, four of five of them within a group."""
    rng = np.random.default_rng(0)
    start, end = rng.integers(0, n, (2, edges))
    if groups > 1:
        end = np.where(rng.random(edges) < 0.8, end // groups * groups + start % groups, end)
    half = sparse.csr_array((np.ones(edges), (start, end)), shape=(n, n))
    return half + half.T


def grid(side: int) -> Any:
    line = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(side, side))
    whole = sparse.eye_array(side)
    return sparse.csr_array(sparse.kron(line, whole) + sparse.kron(whole, line))


def anchors_of(graph: Any) -> np.ndarray:
    return np.arange(32) * (graph.shape[0] // 32)


def ours(graph: Any) -> Callable[[], Any]:
    return lambda: anchor_distances(graph, anchors_of(graph))


def search(graph: Any) -> Callable[[], Any]:
    """SciPy's breadth-first search, which gives an order and no distances."""
    return lambda: [csgraph.breadth_first_order(graph, anchor) for anchor in anchors_of(graph)]


def distances(graph: Any) -> Callable[[], Any]:
    """SciPy's distances, which are Dijkstra's."""
    return lambda: csgraph.dijkstra(graph, indices=anchors_of(graph), unweighted=True)


def eigsh(graph: Any, k: int) -> Callable[[], Any]:
    """SciPy's eigenvectors, without a look whether one was overlooked."""
    return lambda: linalg.eigsh(csgraph.laplacian(graph, normed=True), k, which="SA")


def geometric(graph: Any, name: str, size: int, **options: Any) -> Callable[[], Any]:
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        transform = getattr(peer("torch_geometric.transforms"), name)(size, **options)
        data = peer("torch_geometric.data").Data
        edge_index, _ = peer("torch_geometric.utils").from_scipy_sparse_matrix(graph)

    def run() -> Any:
        with warnings.catch_warnings(action="ignore"):
            return transform(data(edge_index=edge_index, num_nodes=graph.shape[0]))

    return run


def rows() -> Iterator[Row]:
    thin = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(10_000, 10_000), format="csr")
    graphs = {"random graph": random_graph(10_000, 40_000), "grid": grid(100), "path": thin}
    yield Row(
        "32 anchors, random graph",
        "SciPy's search",
        2.0,
        ours(graphs["random graph"]),
        search(graphs["random graph"]),
    )
    # As many rings as nodes: the search of the path takes 30 µs.
    for (name, graph), bound in zip(graphs.items(), (1.0, 1.0, 15.0), strict=True):
        yield Row(f"32 anchors, {name}", "SciPy's distances", bound, ours(graph), distances(graph))
    for name, graph in (("random graph", random_graph(2000, 8000)), ("grid", grid(45))):
        vectors = partial(laplacian_eigenvectors, graph, 8)
        yield Row(f"8 eigenvectors, {name}", "SciPy's", 4.0, vectors, eigsh(graph, 9), 5)
        theirs = geometric(graph, "AddLaplacianEigenvectorPE", 8, is_undirected=True)
        yield Row(f"8 eigenvectors, {name}", "PyG, float32", 10.0, vectors, theirs, 5)
        theirs = geometric(graph, "AddRandomWalkPE", 8)
        yield Row(
            f"8 steps, {name}", "PyG, float32", 1.5, partial(random_walk_probabilities, graph, 8), theirs, 5
        )


def measured(run: Callable[[], Any]) -> str:
    """Seconds, and then in a second run MiB at the peak."""
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return f"{seconds:8.1f} s {peak:6.0f} MiB"


def main() -> None:
    warm_allocator()
    print(machine())
    print("anchors: 10 000 nodes; eigenvectors and walks: 2000\n")
    print_table(rows())
    print("\nmany edges, in four groups, 20 for each node: what the graph takes itself, and at the peak")
    for n in (50_000, 100_000, 200_000):
        graph = random_graph(n, 10 * n, groups=4)
        own = (graph.data.nbytes + graph.indices.nbytes + graph.indptr.nbytes) / 2**20
        print(f"{n:>7} nodes, {graph.nnz / 2e6:.1f} million edges, {own:.0f} MiB", flush=True)
        print("  32 anchors           ", measured(partial(anchor_distances, graph, range(32))))
        print("  2 eigenvectors       ", measured(partial(laplacian_eigenvectors, graph, 2)))
        walks = partial(random_walk_probabilities, graph, 8, nodes=range(64))
        print("  8 steps from 64 nodes", measured(walks), flush=True)


if __name__ == "__main__":
    main()
