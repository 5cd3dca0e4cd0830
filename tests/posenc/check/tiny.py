"""A tiny decoder of two layers, and the same with one fault of those that happen."""

import math
from typing import Any

import torch
from torch import Tensor, nn

DIM, HEADS, LIMIT, WORDS = 32, 2, 600, 60


class Cache:
    """Keys and values of each layer, and how many tokens they are of."""

    def __init__(self) -> None:
        self.kept: list[tuple[Tensor, Tensor]] = []
        self.count = 0
        self.mask: Tensor | None = None

    def crop(self, n: int) -> None:
        self.kept = [(k[..., :n, :], v[..., :n, :]) for k, v in self.kept]
        self.count += n if n < 0 else n - self.count


class StaleCache(Cache):
    """Cut back, it counts on from where it was."""

    def crop(self, n: int) -> None:
        count = self.count
        super().crop(n)
        self.count = count


class Tiny(nn.Module):
    """Takes what models of Hugging Face take. `way`: "rope", "table", or "none"; `fault`: one of FAULTS, or ""."""

    def __init__(self, way: str = "rope", fault: str = "") -> None:
        super().__init__()
        self.way, self.fault = way, fault
        self.embed, self.head = nn.Embedding(WORDS, DIM), nn.Linear(DIM, WORDS)
        self.layers = nn.ModuleList(nn.ModuleList(nn.Linear(DIM, DIM) for _ in "qkvo") for _ in range(2))
        self.table = nn.Embedding(LIMIT, DIM) if way == "table" else None
        self.omega: Tensor
        omega = 100.0 ** (-torch.arange(DIM // HEADS // 2, dtype=torch.float64) / 8)
        if fault == "frequencies cast with the model":
            self.register_buffer("omega", omega)
        else:
            self.omega = omega
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.25)
        self.eval()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool = True,
    ) -> tuple[Tensor, Any]:
        fault, (batch, n) = self.fault, input_ids.shape
        cache = past_key_values or (StaleCache() if fault == "crop forgets to count back" else Cache())
        before = cache.count
        if position_ids is None:
            start = {"newest at 0": 0, "one too far": before + (before > 0)}.get(fault, before)
            if fault == "chunks begin at 0" and n > 1:
                start = 0
            position_ids = torch.arange(start, start + n).expand(batch, n)
        if fault == "positions of the first row":
            position_ids = position_ids[:1].expand(batch, n)
        x = self.embed(input_ids)
        if self.table is not None:
            at = position_ids
            at = at.clamp(max=LIMIT - 1) if fault == "clamped" else at % LIMIT if fault == "wrapped" else at
            x = x + self.table(at)
        for number, layer in enumerate(self.layers):
            x = x + self.attention(layer, number, x, position_ids, attention_mask, cache)
        cache.count += n
        return self.head(torch.tanh(x)), cache if use_cache else None

    def attention(
        self, layer: Any, number: int, x: Tensor, at: Tensor, mask: Tensor | None, cache: Cache
    ) -> Tensor:
        fault, (batch, n) = self.fault, x.shape[:2]
        q, k, v = (part(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in layer[:3])
        if self.way == "rope":
            q = self.turned(q, at)
            k = self.turned(k, -at if fault == "keys turned back" else at, fault == "two layouts")
            v = self.turned(v, at) if fault == "values turned" else v
        if cache.count:
            old_k, old_v = cache.kept[number]
            if fault == "cached keys turned twice":
                old_k = self.turned(old_k, torch.arange(old_k.shape[2]).expand(batch, -1))
            if fault == "cache crosses the batch":
                old_k = old_k.flip(0)
            if fault == "cache is not used":
                old_k, old_v = old_k[..., :0, :], old_v[..., :0, :]
            if fault == "newest first":
                k, v = torch.cat([k, old_k], -2), torch.cat([v, old_v], -2)
            else:
                k, v = torch.cat([old_k, k], -2), torch.cat([old_v, v], -2)
        cache.kept[number : number + 1] = [(k, v)]
        m = k.shape[2]
        late = {"sees one ahead": 2, "does not see itself": 0}.get(fault, 1) + m - n
        forbidden = torch.ones(n, m, dtype=torch.bool).triu(late)
        if fault == "no causal mask" or (fault == "no mask in later chunks" and cache.count):
            forbidden = torch.zeros(n, m, dtype=torch.bool)
        forbidden = forbidden.expand(batch, 1, n, m)
        if mask is not None and fault != "pads are seen":
            pads = (mask if fault == "mask the wrong way round" else 1 - mask).bool()
            forbidden = forbidden | pads[:, None, None, -m:]
        scores = (q @ k.mT / math.sqrt(DIM // HEADS)).masked_fill(forbidden, -math.inf)
        if fault != "softmax of nothing":
            scores = scores.masked_fill(forbidden.all(-1, keepdim=True), 0.0)
        return layer[3]((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def turned(self, x: Tensor, at: Tensor, halves: bool = False) -> Tensor:
        if self.fault == "positions in the model's format":
            angles = at.to(x.dtype)[:, None, :, None] * self.omega.to(x.dtype)
        else:
            angles = at.double()[:, None, :, None] * self.omega.double()
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x.chunk(2, -1) if halves else (x[..., 0::2], x[..., 1::2])
        turned = a * cos - b * sin, a * sin + b * cos
        return torch.cat(turned, -1) if halves else torch.stack(turned, -1).flatten(-2)
