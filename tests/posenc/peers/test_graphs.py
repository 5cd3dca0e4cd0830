"""Codes of graphs, held against networkx and PyTorch Geometric (the extra `peers`)."""

import numpy as np
import pytest

from posenc import anchor_distances, laplacian_eigenvectors, random_walk_probabilities
from posenc.graphs import adjacency
from tests.peers import peer

networkx = peer("networkx")
transforms, geometric = peer("torch_geometric.transforms"), peer("torch_geometric.utils")

KINDS = {
    "karate": networkx.karate_club_graph(),  # weighted
    "tree": networkx.balanced_tree(3, 5),
    "random": networkx.connected_watts_strogatz_graph(600, 6, 0.2, seed=0),
}
UNWEIGHTED = {name: networkx.Graph(graph.edges) for name, graph in KINDS.items()}


@pytest.mark.parametrize("name", KINDS)
def test_distances_are_those_of_networkx(name: str) -> None:
    graph = KINDS[name]
    anchors = list(graph)[::9]
    for weight, weighted in ((None, False), ("weight", True)):
        codes = anchor_distances(graph, anchors, weighted=weighted)
        for anchor, column in zip(anchors, codes.T, strict=True):
            theirs = networkx.single_source_dijkstra_path_length(graph, anchor, weight=weight)
            assert column.tolist() == [theirs[node] for node in graph]


def test_nodes_have_names_and_the_order_of_the_graph() -> None:
    graph = networkx.Graph([("c", "b"), ("b", "a")])
    graph.add_node("d")
    np.testing.assert_array_equal(anchor_distances(graph, ["a"])[:, 0], [2, 1, 0, np.inf])
    np.testing.assert_array_equal(random_walk_probabilities(graph, 2, nodes=["b"]), [[0, 1]])
    for bad in (["e"], [0]):
        with pytest.raises(ValueError, match="anchors must be nodes of graph, got"):
            anchor_distances(graph, bad)
    numbered = networkx.Graph([(2, 1), (1, 0)])  # node 0 is in row 2
    np.testing.assert_array_equal(anchor_distances(numbered, [0])[:, 0], [2, 1, 0])


@pytest.mark.parametrize("kind", ["Graph", "DiGraph", "MultiGraph", "MultiDiGraph"])
def test_weights_directions_loops_and_several_edges_are_those_of_networkx(kind: str) -> None:
    graph = getattr(networkx, kind)()
    graph.add_weighted_edges_from([(0, 1, 2.5), (1, 2, 1.5), (1, 2, 3.0), (2, 2, 4.0), (3, 0, 0.5)])
    graph.add_edge(0, 2)
    np.testing.assert_array_equal(adjacency(graph).toarray(), networkx.to_numpy_array(graph))
    assert adjacency(networkx.empty_graph(3)).shape == (3, 3)
    with pytest.raises(ValueError, match="graph must have at least 1 node"):
        adjacency(networkx.Graph())


@pytest.mark.parametrize("name", KINDS)
def test_eigenvectors_are_those_of_pytorch_geometric(name: str) -> None:
    graph = UNWEIGHTED[name]
    codes = laplacian_eigenvectors(graph, 6)
    theirs = transforms.AddLaplacianEigenvectorPE(6, is_undirected=True)(geometric.from_networkx(graph))
    vectors = theirs.laplacian_eigenvector_pe.numpy()
    alone = ~codes.degenerate
    assert alone.any() == (name != "tree")
    # up to a sign, and theirs are made of a Laplacian in float32
    np.testing.assert_allclose(abs((vectors * codes.vectors).sum(axis=0))[alone], 1, atol=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_walks_are_those_of_pytorch_geometric(name: str) -> None:
    graph = UNWEIGHTED[name]
    theirs = transforms.AddRandomWalkPE(8)(geometric.from_networkx(graph)).random_walk_pe
    np.testing.assert_allclose(theirs.numpy(), random_walk_probabilities(graph, 8), atol=1e-6)
