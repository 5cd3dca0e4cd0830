"""Random signs of eigenvectors."""

import pytest
import torch

from posenc.nn import RandomSigns


def test_one_sign_for_each_vector_of_each_graph() -> None:
    torch.manual_seed(0)
    vectors = torch.rand(400, 5, 3, dtype=torch.float64) + 0.1
    signs = RandomSigns()(vectors) / vectors
    assert torch.equal(signs, signs[:, :1].expand_as(signs))
    assert torch.equal(signs.abs(), torch.ones_like(signs))
    assert (signs[:, 0].mean(dim=0).abs() < 0.15).all()
    assert (signs[:, 0, 0] * signs[:, 0, 1]).mean().abs() < 0.15


def test_the_next_call_draws_again_and_evaluation_draws_nothing() -> None:
    torch.manual_seed(0)
    layer, vectors = RandomSigns(), torch.rand(4, 40)
    assert not torch.equal(layer(vectors), layer(vectors))
    state = torch.get_rng_state()
    assert layer.eval()(vectors) is vectors
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_the_dtype_stays_and_gradients_run(dtype: torch.dtype) -> None:
    vectors = torch.rand(6, 2, dtype=dtype, requires_grad=True)
    result = RandomSigns()(vectors)
    assert result.dtype == dtype
    (gradient,) = torch.autograd.grad(result.sum(), vectors)
    assert torch.equal(gradient.abs(), torch.ones_like(gradient))
