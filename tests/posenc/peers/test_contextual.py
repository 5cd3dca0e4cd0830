"""The forget gate and CoPE, held against x-transformers (the extra `peers`)."""

import torch

from posenc import forget_bias
from posenc.nn import ContextualPositions, ForgetGate
from tests.peers import peer

x_transformers = peer("x_transformers.x_transformers")


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_forget_gate_is_data_dependent_alibi() -> None:
    ours, theirs = ForgetGate(16, 4).double(), x_transformers.DataDependentAlibi(16, 4).double()
    with torch.no_grad():
        ours.linear.weight.copy_(random(4, 16))
        linear = theirs.to_forget_gates[0]
        linear.weight.copy_(ours.linear.weight)
        linear.bias.copy_(ours.linear.bias)
    x = random(2, 30, 16)
    seen = torch.ones(30, 30, dtype=torch.bool).tril()
    # Theirs leaves the later keys to a mask.
    torch.testing.assert_close(forget_bias(ours(x))[..., seen], theirs(x)[..., seen])


def test_contextual_positions_are_cope() -> None:
    ours, theirs = ContextualPositions(8, 5).double(), x_transformers.CoPE(8, 2, max_pos=6).double()
    with torch.no_grad():
        ours.weight.copy_(random(6, 8))
        theirs.pos_emb.copy_(ours.weight)
    q, k = random(2, 1, 2, 20, 8)
    later = torch.ones(20, 20, dtype=torch.bool).triu(1)
    scores = (q @ k.mT / 8**0.5).masked_fill(later, -torch.inf)
    torch.testing.assert_close(ours(q, k)[..., ~later], theirs(q, scores)[..., ~later])
