"""What training on eigenvectors of graphs needs: random signs, so that no model learns them."""

from __future__ import annotations

import torch
from torch import Tensor

from posenc.nn._inputs import check_floating

__all__ = ["RandomSigns"]


class RandomSigns(torch.nn.Module):
    """Turns the sign of each eigenvector at random in training, and leaves it in evaluation.

    forward(vectors)[..., t, j] = s_j · vectors[..., t, j], s_j = ±1 with equal chance, drawn at each call.

    The sign of an eigenvector is arbitrary (`posenc.laplacian_eigenvectors`). A model that has met both signs
    cannot rely on either. This does not help if eigenvalues coincide, because then any rotation of the vectors
    is as good.

    Shapes:
        vectors: floating, (..., n, k): k eigenvectors of the n nodes of a graph. Each of the leading axes is a
            graph with signs of its own. Graphs of different sizes, joined into one array, go in one by one.
        Result: the same.

    >>> flip = RandomSigns()
    >>> vectors = torch.tensor([[0.5, 0.5], [0.5, -0.5]])
    >>> torch.equal(flip(vectors).abs(), vectors.abs())
    True
    >>> torch.equal(flip.eval()(vectors), vectors)
    True

    Source: Dwivedi et al.: Benchmarking Graph Neural Networks (2020). https://arxiv.org/abs/2003.00982
    """

    def forward(self, vectors: Tensor) -> Tensor:
        check_floating("vectors", vectors)
        if vectors.ndim < 2:
            raise ValueError(f"vectors must have shape (..., n, k), got {tuple(vectors.shape)}")
        if not self.training:
            return vectors
        return vectors * torch.empty_like(vectors[..., :1, :]).bernoulli_(0.5).mul_(2).sub_(1)
