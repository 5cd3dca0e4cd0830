"""A fourteenth round: what two of twelve faults did not raise, one did not name, and others of the same kinds."""

import functools
from typing import Any

import pytest
import torch

import posenc
import posenc.check
from tests.peers import modeling, peer, seeded
from tests.posenc.peers.faulty import Faults, made

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.slow

FAULTS = Faults()
planted = FAULTS.planted


def around(patch: Patch, owner: Any, name: str, change: Any) -> None:
    """`change` is called with what was there before, and then what that was called with."""
    usual = getattr(owner, name)

    @functools.wraps(usual)
    def faulty(*given: Any, **more: Any) -> Any:
        return change(usual, *given, **more)

    patch.setattr(owner, name, faulty)


def turned_again(patch: Patch, *, chunks: bool, places: str = "own") -> Any:
    """Pull request 110 of shainet: keys of the cache are turned again, in the call that reads them."""
    llama = modeling("llama")

    def turned(attend: Any, module: Any, query: Any, key: Any, value: Any, *given: Any, **more: Any) -> Any:
        n, new = key.shape[2], query.shape[2]
        if n > new and (not chunks or new > 1):
            at = torch.arange(n)[None] if places == "own" else torch.full((1, n), n)
            cos, sin = llama.LlamaRotaryEmbedding(module.config)(value, at)
            key = key * cos[:, None] + llama.rotate_half(key) * sin[:, None]
        return attend(module, query, key, value, *given, **more)

    def change(usual: Any, *given: Any) -> Any:
        return functools.partial(turned, usual(*given))

    around(patch, llama.ALL_ATTENTION_FUNCTIONS, "get_interface", change)
    return made("llama")


@planted("keys from the cache are turned again before the scores")
def llama_turns_its_cached_keys_again(patch: Patch) -> Any:
    return turned_again(patch, chunks=False)


@planted("keys from the cache are turned again before the scores")
def llama_turns_its_cached_keys_again_in_chunks(patch: Patch) -> Any:
    return turned_again(patch, chunks=True)


@planted("keys from the cache are turned otherwise before the scores")
def llama_turns_its_cached_keys_by_the_length(patch: Patch) -> Any:
    return turned_again(patch, chunks=False, places="the length")


@planted("the mask: it is causal alone and does not separate documents")
def qwen3_hides_where_documents_begin(patch: Patch) -> Any:
    """Issue 495 of profam: a mask of ones takes the place of none."""

    def change(usual: Any, *given: Any, **more: Any) -> Any:
        if more["attention_mask"] is None and more["past_key_values"] is None:
            more["attention_mask"] = torch.ones(more["inputs_embeds"].shape[:2], dtype=torch.long)
        return usual(*given, **more)

    around(patch, modeling("qwen3"), "create_causal_mask", change)
    return made("qwen3")


@planted("the mask: it is causal alone and does not separate documents")
def qwen3_makes_a_mask_of_ones_before_its_mask(patch: Patch) -> Any:
    """The same in the model, so that ones are handed to the function that makes masks."""

    def change(usual: Any, self: Any, ids: Any = None, **more: Any) -> Any:
        ids = more.pop("input_ids", ids)
        if more.get("attention_mask") is None and more.get("past_key_values") is None:
            more["attention_mask"] = torch.ones_like(ids)
        return usual(self, ids, **more)

    around(patch, modeling("qwen3").Qwen3Model, "forward", change)
    return made("qwen3")


@planted("the mask: it is causal alone and does not separate documents")
def llama_finds_no_documents(patch: Patch) -> Any:
    masks = peer("transformers").masking_utils
    patch.setattr(masks, "find_packed_sequence_indices", lambda position_ids: None)
    return made("llama")


def later_cross_attention(patch: Patch, add: Any) -> Any:
    """What cross-attention of the first layer gives to the later ones as their bias."""
    t5 = modeling("t5")

    def change(usual: Any, self: Any, *given: Any, **more: Any) -> Any:
        out, bias, weights = usual(self, *given, **more)
        crosses = self.is_decoder and not self.is_causal
        return out, add(bias, weights) if crosses and self.layer_idx == 0 else bias, weights

    around(patch, t5.T5Attention, "forward", change)
    return made("t5", num_decoder_layers=3)


@planted("layer 1 adds the weights of layer 0 to its scores, where a bias would stand")
def t5_adds_weights_to_later_scores(patch: Patch) -> Any:
    """Pull request 4499."""
    return later_cross_attention(patch, lambda bias, weights: weights)


@planted("layer 1 adds something to its scores that does not come from its queries and keys")
def t5_adds_squares_of_weights_to_later_scores(patch: Patch) -> Any:
    return later_cross_attention(patch, lambda bias, weights: 4 * weights**2)


@planted("lm_head.forward: code of this instance that is not in its class")
def llama_with_code_of_its_own(patch: Patch) -> Any:
    model = made("llama")
    usual = model.lm_head.forward
    model.lm_head.forward = lambda x: 2 * usual(x)
    return model


def bloom_with_masks(patch: Patch) -> Any:
    """It makes its bias by its method, which it calls for a mask alone."""

    def change(usual: Any, self: Any, ids: torch.Tensor, **more: Any) -> Any:
        cache = more.get("past_key_values")
        if more.get("attention_mask") is None:
            more["attention_mask"] = torch.ones(
                len(ids), ids.shape[1] + (cache.get_seq_length() if cache else 0)
            ).long()
        return usual(self, ids, **more)

    around(patch, modeling("bloom").BloomModel, "forward", change)
    return made("bloom", n_head=6, hidden_size=96)


def of_slopes(slopes: torch.Tensor, mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    places = (mask.cumsum(-1) - 1) * mask
    return (slopes[:, None] * places[:, None, :]).reshape(-1, 1, mask.shape[1]).to(dtype)


@planted("the slopes: made by the formula for powers of two")
def bloom_makes_slopes_on_the_instance(patch: Patch) -> Any:
    model, slopes = bloom_with_masks(patch), 2.0 ** (-8 * torch.arange(1, 7) / 6)
    model.transformer.build_alibi_tensor = lambda mask, heads, dtype: of_slopes(slopes, mask, dtype)
    return model


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_round_is_named_in_the_first_line(name: str, monkeypatch: Patch) -> None:
    FAULTS.must_be_named(name, monkeypatch)


@pytest.mark.parametrize(
    ("name", "fields"),
    [("llama", {}), ("qwen3", {}), ("mistral", {}), ("gpt_oss", {}), ("opt", {}), ("llama4_text", {}),
     ("t5", {"num_decoder_layers": 3}), ("bart", {}), ("bloom", {"n_head": 6, "hidden_size": 96})],
)  # fmt: skip
def test_a_good_twin_raises_no_fault(name: str, fields: dict[str, Any]) -> None:
    assert not (report := posenc.check.all(made(name, **fields))).faults, report


def test_xlnet_sees_all_by_design_and_its_generate_is_left_out() -> None:
    library = peer("transformers")
    sizes = {
        "vocab_size": 97,
        "d_model": 64,
        "n_layer": 2,
        "n_head": 4,
        "d_inner": 96,
        "initializer_range": 0.2,
    }
    report = posenc.check.all(seeded(library.XLNetLMHeadModel, library.XLNetConfig(**sizes)))
    found = {each.what: each for each in report.findings}
    assert not report.faults
    assert found["who sees whom"].says == "as meant: full"
    assert found["generate"].verdict == "left out"
    assert "a token of its own" in found["generate"].says


def test_biases_that_cannot_be_read_are_said_to_be_left_out(monkeypatch: Patch) -> None:
    model, slopes = bloom_with_masks(monkeypatch), torch.tensor(posenc.alibi_slopes(6))
    model.transformer.build_alibi_tensor = lambda mask, heads, dtype: of_slopes(slopes, mask, dtype).expand(
        -1, mask.shape[1], -1
    )  # a row for each query
    found = {each.what: each for each in posenc.check.all(model).findings}["slopes of ALiBi"]
    assert found.verdict == "left out"
    assert "no slope or bias for each head" in found.says
