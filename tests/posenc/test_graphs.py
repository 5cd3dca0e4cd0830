"""Codes of graphs: distances to anchors, eigenvectors, random walks, and what none of them tells apart."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csgraph

from posenc import graphs
from posenc.graphs import adjacency, anchor_distances, laplacian_eigenvectors, random_walk_probabilities
from tests.posenc.refusals import refused
from tests.programs import python


def path(n: int) -> np.ndarray:
    return np.eye(n, k=1) + np.eye(n, k=-1)


def ring(n: int) -> np.ndarray:
    step = np.roll(np.eye(n), 1, axis=0)
    return step + step.T


def torus(rows: int, columns: int) -> Any:
    down, right = sparse.csr_array(ring(rows)), sparse.csr_array(ring(columns))
    return sparse.kron(down, sparse.eye_array(columns)) + sparse.kron(sparse.eye_array(rows), right)


@st.composite
def some_graphs(draw: Any, symmetric: bool = False, least: int = 1) -> np.ndarray:
    """Weights 0 to 3, often 0; self-loops, lonely nodes and separate parts among them."""
    n = draw(st.integers(least, 9))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    graph = rng.integers(1, 4, (n, n)) * (rng.random((n, n)) < draw(st.floats(0, 0.6)))
    return (np.triu(graph) + np.triu(graph, 1).T if symmetric else graph).astype(float)


# --- Anchors


@given(some_graphs(), st.data())
def test_distances_are_those_of_shortest_paths_along_the_arrows(graph: np.ndarray, data: Any) -> None:
    anchors = data.draw(st.lists(st.integers(0, len(graph) - 1), min_size=1))
    np.testing.assert_array_equal(
        anchor_distances(graph, anchors), csgraph.floyd_warshall(graph > 0)[anchors].T
    )
    weighted = anchor_distances(graph, anchors, weighted=True)
    np.testing.assert_array_equal(weighted, csgraph.floyd_warshall(graph)[anchors].T)
    assert weighted.dtype == np.float64
    assert weighted.flags.c_contiguous


@pytest.mark.parametrize(
    ("graph", "anchors"),
    [(ring(n), [0, 1]) for n in (3, 6, 7)] + [(np.zeros((n, n)), [0]) for n in (1, 2)] + [(path(7), [0])],
)
def test_how_many_anchors_are_needed(graph: np.ndarray, anchors: list[int]) -> None:
    assert graphs.smallest_anchors(graph) == anchors
    assert len(np.unique(anchor_distances(graph, anchors), axis=0)) == len(graph)


def test_an_anchor_that_is_a_list_is_named() -> None:
    class Named(list[Any]):
        """As much of a networkx graph as is looked at."""

        edges = staticmethod(lambda **_: [("a", "b", 1)])

        def is_directed(self) -> bool:
            return False

    np.testing.assert_array_equal(anchor_distances(Named("ab"), ["b"]), [[1], [0]])
    with pytest.raises(TypeError, match=r"each of anchors must be a node of graph, got \['b'\] of type list"):
        anchor_distances(Named("ab"), [["b"]])
    with pytest.raises(TypeError, match=r"each of anchors must be an integer, got \[0\] of type list"):
        anchor_distances(path(3), [[0]])


ONE_WAY = np.eye(4, k=1)
TRIANGLE = np.array([[0, 10.0, 1], [10, 0, 2], [1, 2, 0]])
TWO_PARTS = np.kron(np.eye(2), path(3))


@pytest.mark.parametrize(
    ("graph", "anchor", "weighted", "expected"),
    [
        (ONE_WAY, 1, False, [np.inf, 0, 1, 2]),  # arrows are followed from the anchor on
        (ONE_WAY.T, 1, False, [1, 0, np.inf, np.inf]),
        (TRIANGLE, 0, False, [0, 1, 1]),
        (TRIANGLE, 0, True, [0, 3, 1]),
        (-TRIANGLE, 0, False, [0, 1, 1]),  # weights count only when asked for
        (TWO_PARTS, 0, False, [0, 1, 2, np.inf, np.inf, np.inf]),
    ],
)
def test_distances_by_hand(graph: np.ndarray, anchor: int, weighted: bool, expected: list[float]) -> None:
    found = anchor_distances(graph, [anchor], weighted=weighted)
    np.testing.assert_array_equal(found[:, 0], expected)


# --- Eigenvectors


def dense_laplacian(graph: np.ndarray, normalized: bool) -> np.ndarray:
    graph = graph - np.diag(np.diag(graph))
    degrees = graph.sum(axis=1)
    root = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0)
    plain = np.diag(degrees) - graph
    return root[:, None] * plain * root if normalized else plain


def check_eigenvectors(graph: Any, k: int, normalized: bool, atol: float) -> np.ndarray:
    """What makes them those of the smallest eigenvalues above 0; which of these come more than once."""
    vectors, values, degenerate = laplacian_eigenvectors(graph, k, normalized=normalized)
    dense = graph.toarray() if sparse.issparse(graph) else graph
    parts, laplacian = csgraph.connected_components(graph)[0], dense_laplacian(dense, normalized)
    every = np.linalg.eigvalsh(laplacian)
    np.testing.assert_allclose(values, every[parts : parts + k], atol=atol)
    np.testing.assert_allclose(laplacian @ vectors, vectors * values, atol=10 * atol)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=10 * atol)
    np.testing.assert_array_equal(degenerate, (abs(every[:, None] - values) < 1e-7).sum(axis=0) > 1)
    assert (values > 1e-6).all()
    return degenerate


@given(some_graphs(symmetric=True, least=2), st.booleans(), st.data())
def test_eigenvectors_by_their_definition(graph: np.ndarray, normalized: bool, data: Any) -> None:
    """Self-loops and lonely nodes change nothing."""
    parts = csgraph.connected_components(graph)[0]
    if parts < len(graph):
        check_eigenvectors(graph, data.draw(st.integers(1, len(graph) - parts)), normalized, 1e-10)
        return
    with pytest.raises(ValueError, match=rf"k must be at most 0, for {parts} nodes in {parts} parts"):
        laplacian_eigenvectors(graph, 1)


def test_the_waves_of_a_path_are_cosines() -> None:
    codes = laplacian_eigenvectors(path(9), 4, normalized=False, sign="largest")
    for j, vector in enumerate(codes.vectors.T, start=1):
        wave = np.cos(np.pi * j * (np.arange(9) + 0.5) / 9) / np.sqrt(4.5)
        np.testing.assert_allclose(abs(vector @ wave), 1)
    np.testing.assert_allclose(codes.values, 2 - 2 * np.cos(np.pi * np.arange(1, 5) / 9))
    assert not codes.degenerate.any()


def test_the_last_of_k_may_share_its_value_with_one_that_is_not_given() -> None:
    np.testing.assert_array_equal(laplacian_eigenvectors(ring(8), 3).degenerate, [True, True, True])
    np.testing.assert_array_equal(laplacian_eigenvectors(ring(8), 7).degenerate, [True] * 6 + [False])


@given(some_graphs(symmetric=True, least=3))
def test_the_rule_makes_the_sign_that_of_the_largest_entry(graph: np.ndarray) -> None:
    graph += path(len(graph))  # one part
    solver, ruled = (laplacian_eigenvectors(graph, 2, sign=rule).vectors for rule in ("solver", "largest"))
    np.testing.assert_array_equal(abs(solver), abs(ruled))
    sizes = np.abs(ruled)
    first = (sizes > sizes.max(axis=0) * (1 - 1e-6)).argmax(axis=0)
    assert (ruled[first, [0, 1]] > 0).all()


@pytest.mark.parametrize("link", [1e-3, 1e-9, 1e-14, 1e-17])
def test_two_groups_are_told_apart_by_the_weakest_link(link: float) -> None:
    groups = np.kron(np.eye(2), np.ones((4, 4)))
    groups[0, 7] = groups[7, 0] = link
    for normalized in (False, True):
        vectors, values, degenerate = laplacian_eigenvectors(groups, 1, normalized=normalized)
        expected = np.sign(vectors[0]) * np.repeat([1, -1], 4) / np.sqrt(8)
        np.testing.assert_allclose(vectors[:, 0], expected, atol=1e-3)
        assert values[0] == pytest.approx(link / (6 if normalized else 2), rel=1e-2, abs=1e-14)
        assert not degenerate[0]


MANY = {
    "torus": torus(23, 23),  # eigenvalues come in fours and eights
    "parts": sparse.block_diag([torus(5, 5)] * 22 + [sparse.csr_array((3, 3))], format="csr"),
    "path": sparse.csr_array(path(800)),  # so thin that Lanczos steps do not end
    "weights": sparse.csr_array(path(700) * np.linspace(1, 5, 700)[:, None] * np.linspace(1, 5, 700)),
}


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("name", MANY)
def test_many_nodes_are_solved_as_few_are(name: str, normalized: bool) -> None:
    degenerate = check_eigenvectors(MANY[name], 9, normalized, 1e-11)
    assert degenerate.all() == (name in ("torus", "parts"))


def test_a_second_vector_of_one_eigenvalue_is_not_overlooked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanczos that finds one vector of each eigenvalue, as it does without rounding."""
    import scipy.sparse.linalg as linalg

    monkeypatch.setattr(graphs, "_FEW", 50)
    graph = torus(8, 8)
    laplacian = dense_laplacian(graph.toarray(), True)

    def one_each(operator: Any, k: int, **options: Any) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = np.linalg.eigh(operator @ np.eye(64))
        _, first = np.unique(values.round(8), return_index=True)
        chosen = first[::-1][:k]
        return values[chosen], vectors[:, chosen]

    monkeypatch.setattr(linalg, "eigsh", one_each)
    values = laplacian_eigenvectors(graph, 5).values
    np.testing.assert_allclose(values, np.linalg.eigvalsh(laplacian)[1:6], atol=1e-9)


# --- Random walks


@given(some_graphs(), st.integers(1, 6))
def test_probabilities_are_the_diagonals_of_powers(graph: np.ndarray, steps: int) -> None:
    degrees = graph.sum(axis=1, keepdims=True)
    walk = graph / np.where(degrees > 0, degrees, 1)
    powers = np.stack([np.diag(np.linalg.matrix_power(walk, r)) for r in range(1, steps + 1)], axis=-1)
    codes = random_walk_probabilities(graph, steps)
    np.testing.assert_allclose(codes, powers, atol=1e-12)
    assert ((codes >= 0) & (codes <= 1 + 1e-12)).all()
    some = np.arange(len(graph))[::-2]
    np.testing.assert_allclose(random_walk_probabilities(graph, steps, nodes=some), powers[some], atol=1e-12)


def test_blocks_of_starts_are_joined_and_no_table_of_n_by_n_is_made() -> None:
    n = 4000
    start, end = np.random.default_rng(0).integers(0, n, (2, 16_000))
    half = sparse.csr_array((np.ones(len(start)), (start, end)), shape=(n, n))
    graph = half + half.T  # after a few steps a walk may be anywhere
    tracemalloc.start()
    codes = random_walk_probabilities(graph, 6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    some = [0, 523, 525, 1999, 3999]
    np.testing.assert_allclose(codes[some], random_walk_probabilities(graph, 6, nodes=some), atol=1e-12)
    assert peak < 8 * n * n / 2


# --- What goes in


WEIGHTS = np.array([[0, 2.0, 0], [2, 0, 1], [0, 1, 3]])
KINDS: list[Any] = [
    WEIGHTS.astype(np.int64), WEIGHTS.astype(np.float16), torch.tensor(WEIGHTS), torch.tensor(WEIGHTS).bfloat16(),
    torch.tensor(WEIGHTS, requires_grad=True), sparse.coo_array(WEIGHTS), sparse.csc_matrix(WEIGHTS),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{type(kind).__name__} {kind.dtype}")
def test_all_kinds_of_arrays_are_one(kind: Any) -> None:
    np.testing.assert_array_equal(adjacency(kind).toarray(), WEIGHTS)
    np.testing.assert_array_equal(adjacency(kind != 0).toarray(), WEIGHTS > 0)


def test_the_result_is_of_the_library_of_a_dense_array() -> None:
    graph = torch.tensor(path(5), dtype=torch.float32)
    distances, codes = anchor_distances(graph, [0]), laplacian_eigenvectors(graph, 2)
    results = [distances, random_walk_probabilities(graph, 2), *codes]
    assert [result.dtype for result in results] == [torch.float64] * 4 + [torch.bool]
    np.testing.assert_array_equal(distances.numpy(), anchor_distances(path(5), [0]))
    assert isinstance(anchor_distances(sparse.csr_array(path(3)), [0]), np.ndarray)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (np.array([0.0, 1, 1, 1]), [[0, 0, 1], [0, 0, 2], [0, 0, 0]]),  # a zero is no edge
        (np.full(4, 100, np.int8), [[0, 100, 100], [0, 0, 200], [0, 0, 0]]),  # no dtype goes round
        (np.full(4, True), [[0, 1, 1], [0, 0, 1], [0, 0, 0]]),  # true twice is one edge
    ],
)
def test_edges_that_several_share_are_added_up_and_what_is_given_stays(
    data: np.ndarray, expected: list[list[int]]
) -> None:
    shared = sparse.csr_array((data.copy(), np.array([1, 2, 2, 2]), np.array([0, 2, 4, 4])), shape=(3, 3))
    np.testing.assert_array_equal(adjacency(shared).toarray(), expected)
    np.testing.assert_array_equal(shared.data, data)
    assert anchor_distances(shared, [0])[1, 0] == (1 if data[0] else np.inf)


CODES: dict[str, Any] = {
    "anchors": lambda graph: anchor_distances(graph, range(8)),
    "walks": lambda graph: random_walk_probabilities(graph, 3, nodes=range(40)),
    "eigenvectors": lambda graph: laplacian_eigenvectors(graph, 2).values,
}


@pytest.mark.parametrize("kind", CODES)
def test_memory_is_linear_in_nodes_and_edges(kind: str) -> None:
    rng, n = np.random.default_rng(0), 10_000
    start, end = rng.integers(0, n, (2, 105_000))
    end = np.where(rng.random(len(end)) < 0.8, end // 4 * 4 + start % 4, end)  # four groups
    half = sparse.csr_array((np.ones(len(start)), (start, end)), shape=(n, n))
    graph = half + half.T
    own = graph.data.nbytes + graph.indices.nbytes
    tracemalloc.start()
    assert CODES[kind](graph).max() < (0.2 if kind == "eigenvectors" else np.inf)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * own + 2000 * n  # a table of n by n numbers is 17 times this


def test_scipy_is_asked_for_by_its_extra() -> None:
    code = (
        "import sys; sys.modules['scipy'] = None\n"
        "import numpy as np, posenc.graphs\n"
        "try: posenc.graphs.anchor_distances(np.eye(2), [0])\n"
        "except ImportError as error: print(error)"
    )
    result = python("-c", code, check=True)
    assert result.stdout == "graphs need SciPy: pip install 'posenc[graphs]'\n"


P = path(4)
LOPSIDED = np.array([[0, 1.0, 0], [0, 0, 2], [0, 2, 0]])


test_errors_name_the_argument = refused([
    (lambda: anchor_distances(np.ones((2, 3)), [0]), ValueError, r"graph must have shape \(n, n\), got \(2, 3\)"),
    (lambda: random_walk_probabilities(np.ones((0, 0)), 1), ValueError, "graph must have at least 1 node"),
    (lambda: anchor_distances(P * 1j, [0]), TypeError, "graph must have real weights, got dtype complex128"),
    (lambda: anchor_distances(torch.from_numpy(P).to_sparse(), [0]), TypeError, "got a tensor of layout torch.sp"),
    (lambda: anchor_distances(P, torch.tensor([True, False])), TypeError, "anchors must be row numbers, got"),
    (lambda: random_walk_probabilities(P * 1e308, 2), ValueError, "whose sum is finite, got 6 of up to 1e.308"),
    (lambda: anchor_distances(P * np.nan, [0]), ValueError, "graph must have finite weights, got nan"),
    # The order of a set of names changes with each run of Python, and with it the columns.
    (lambda: anchor_distances(P, {0, 2}), TypeError, "anchors must be a list of nodes, .* got a set"),
    (lambda: anchor_distances(P, []), ValueError, "anchors must hold at least 1 node"),
    (lambda: anchor_distances(P, [4]), ValueError, r"anchors must lie in 0\.\.3, the rows of graph, got 4"),
    (lambda: anchor_distances(-P, [0], weighted=True), ValueError, "at least 0, because a weight is a length, got -1"),
    (lambda: laplacian_eigenvectors(-P, 1), ValueError, "at least 0, because a weight is the strength of an edge"),
    (lambda: laplacian_eigenvectors(LOPSIDED, 1), ValueError, "symmetric, got 1 from node 0 to 1 and 0 back"),
    (lambda: laplacian_eigenvectors(P, 4), ValueError, "k must be at most 3, for 4 nodes in 1 parts, got 4"),
    (lambda: random_walk_probabilities(-P, 1), ValueError, "because a weight is how likely a step is, got -1"),
    (lambda: random_walk_probabilities(P, 1, nodes=[9]), ValueError, r"nodes must lie in 0\.\.3, .* got 9"),
    (lambda: graphs.smallest_anchors(path(21)), ValueError, "graph must have at most 20 nodes, .* got 21"),
])  # fmt: skip
