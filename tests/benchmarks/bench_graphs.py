"""What do codes of graphs cost beside SciPy's own search and PyTorch Geometric? Time as a ratio, and memory."""

import time
import tracemalloc
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph, linalg

from posenc.graphs import anchor_distances, laplacian_eigenvectors, random_walk_probabilities
from tests.benchmarks.benchmark import Row, Run, call, peer, run


def random_graph(n: int, edges: int, groups: int = 1) -> Any:
    """So many edges between nodes chosen by chance, four of five of them within a group."""
    rng = np.random.default_rng(0)
    start, end = rng.integers(0, n, (2, edges))
    if groups > 1:
        end = np.where(rng.random(edges) < 0.8, end // groups * groups + start % groups, end)
    half = sparse.csr_array((np.ones(edges), (start, end)), shape=(n, n))
    return half + half.T


def path(n: int) -> Any:
    return sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(n, n), format="csr")


def grid(side: int) -> Any:
    whole = sparse.eye_array(side)
    return sparse.csr_array(sparse.kron(path(side), whole) + sparse.kron(whole, path(side)))


def geometric(graph: Any, name: str, size: int, **options: Any) -> Run:
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        transform = getattr(peer("torch_geometric.transforms"), name)(size, **options)
        data = peer("torch_geometric.data").Data
        edge_index, _ = peer("torch_geometric.utils").from_scipy_sparse_matrix(graph)

    def transformed() -> Any:
        with warnings.catch_warnings(action="ignore"):
            return transform(data(edge_index=edge_index, num_nodes=graph.shape[0]))

    return transformed


def rows() -> Iterator[Row]:
    anchors, chance = np.arange(32) * (10_000 // 32), random_graph(10_000, 40_000)
    ours = call(anchor_distances, chance, anchors)
    # SciPy's breadth-first search gives an order and no distances; its distances are Dijkstra's.
    search = lambda: [csgraph.breadth_first_order(chance, anchor) for anchor in anchors]  # noqa: E731
    yield Row("32 anchors, random graph", "SciPy's search", 2.0, ours, search)
    # As many rings as nodes: the search of the path takes 30 µs.
    for name, graph, bound in (
        ("random graph", chance, 1.0),
        ("grid", grid(100), 1.0),
        ("path", path(10_000), 15.0),
    ):
        theirs = call(csgraph.dijkstra, graph, indices=anchors, unweighted=True)
        yield Row(
            f"32 anchors, {name}", "SciPy's distances", bound, call(anchor_distances, graph, anchors), theirs
        )
    for name, graph in (("random graph", random_graph(2000, 8000)), ("grid", grid(45))):
        vectors, walks = call(laplacian_eigenvectors, graph, 8), call(random_walk_probabilities, graph, 8)
        # Without a look whether one was overlooked.
        eigsh = lambda graph=graph: linalg.eigsh(csgraph.laplacian(graph, normed=True), 9, which="SA")  # noqa: E731
        yield Row(f"8 eigenvectors, {name}", "SciPy's", 4.0, vectors, eigsh, 5)
        theirs = geometric(graph, "AddLaplacianEigenvectorPE", 8, is_undirected=True)
        yield Row(f"8 eigenvectors, {name}", "PyG, float32", 10.0, vectors, theirs, 5)
        yield Row(f"8 steps, {name}", "PyG, float32", 1.5, walks, geometric(graph, "AddRandomWalkPE", 8), 5)


def measured(function: Run) -> str:
    """Seconds, and then in a second run MiB at the peak."""
    start = time.perf_counter()
    function()
    seconds = time.perf_counter() - start
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return f"{seconds:8.1f} s {peak:6.0f} MiB"


def many_edges() -> Iterator[str]:
    yield "many edges, in four groups, 20 for each node: what the graph takes itself, and at the peak"
    for n in (50_000, 100_000, 200_000):
        graph = random_graph(n, 10 * n, groups=4)
        own = (graph.data.nbytes + graph.indices.nbytes + graph.indptr.nbytes) / 2**20
        yield f"{n:>7} nodes, {graph.nnz / 2e6:.1f} million edges, {own:.0f} MiB"
        yield f"  32 anchors            {measured(call(anchor_distances, graph, range(32)))}"
        yield f"  2 eigenvectors        {measured(call(laplacian_eigenvectors, graph, 2))}"
        walks = call(random_walk_probabilities, graph, 8, nodes=range(64))
        yield f"  8 steps from 64 nodes {measured(walks)}"


if __name__ == "__main__":
    run(rows, "anchors: 10 000 nodes; eigenvectors and walks: 2000", many_edges)
