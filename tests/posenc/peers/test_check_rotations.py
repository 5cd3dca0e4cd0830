"""Faults in rotations: angles, frequencies, pairs, and which layers turn."""

from typing import Any

import pytest
import torch

import posenc
import posenc.check
from tests.peers import modeling, peer
from tests.posenc.peers.faulty import Faults, made, replace, watched
from tests.posenc.peers.small import (
    LONG,
    SHARES,
    causal,
    grows,
    phi3_longrope,
    reads_pictures,
)

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.slow

FAULTS = Faults()
planted, replaced, changed = FAULTS.planted, FAULTS.replaced, FAULTS.changed
OTHER = {"sliding_attention": "full_attention", "full_attention": "sliding_attention"}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 8.0, "original_max_position_embeddings": 64}
MSCALES = {"mscale": 1.0, "mscale_all_dim": 1.0}


def turned(module: Any, cos: torch.Tensor, sin: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    turned: torch.Tensor = k * cos[:, None] + module.rotate_half(k) * sin[:, None]
    return turned


@replaced("rounded", "gpt_neox.GPTNeoXRotaryEmbedding.forward", max_position_embeddings=2048)
def neox_multiplies_angles_under_autocast(_usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
    """As older releases did, which had to switch autocast off for it."""
    angles = (self.inv_freq[:, None].float() @ position_ids[:, None].float()).mT.repeat(1, 1, 2)
    return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


@replaced("some without position are turned", "smollm3.SmolLM3Attention.__init__", num_hidden_layers=4)
def smollm3_reads_no_rope_layers_the_wrong_way(usual: Any, self: Any, *given: Any, **more: Any) -> None:
    usual(self, *given, **more)
    self.use_rope = not self.use_rope


@replaced("those of texts of more than 64 tokens", "phi3.Phi3RotaryEmbedding.forward", phi3_longrope)
def phi3_takes_the_long_factors_for_all_texts(usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
    with_a_long_text = torch.cat([position_ids, 0 * position_ids[:, :1] + 99], 1)
    return [each[:, :-1] for each in usual(self, x, with_a_long_text)]


@replaced("rounded", "llama.LlamaRotaryEmbedding.forward")
def positions_in_bfloat16(usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
    """Whatever the model's format, positions pass through bfloat16 before they are multiplied."""
    return usual(self, x, position_ids.bfloat16())


@replaced("turned twice", "llama.apply_rotary_pos_emb")
def keys_turned_twice(usual: Any, q: Any, k: Any, cos: Any, sin: Any, **more: Any) -> Any:
    q, k = usual(q, k, cos, sin, **more)
    return q, turned(modeling("llama"), cos, sin, k)


@replaced(
    "columns 4 to 7",
    "gpt_neox.apply_rotary_pos_emb",
    rope_parameters={"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5},
)
def keys_turn_the_last_columns(usual: Any, q: Any, k: Any, cos: Any, sin: Any, **more: Any) -> Any:
    """GPT-NeoX turns the first columns of queries, and with the fault the last ones of keys."""
    q, _ = usual(q, k, cos, sin, **more)
    kept, last = k.split([k.shape[-1] - cos.shape[-1], cos.shape[-1]], dim=-1)
    return q, torch.cat([kept, turned(modeling("gpt_neox"), cos, sin, last)], dim=-1)


@changed("frequencies", "llama", rope_parameters={"rope_type": "default", "rope_theta": 500000.0})
def one_layer_with_another_base(model: Any) -> None:
    """The second layer has a rotary embedding of its own, whose base nobody set."""
    attention = model.model.layers[1].self_attn
    attention.rotary_emb = modeling("llama").LlamaRotaryEmbedding(made("llama").config)
    forward = attention.forward

    def faulty(hidden_states: Any, position_embeddings: Any, position_ids: Any = None, **more: Any) -> Any:
        own = attention.rotary_emb(hidden_states, position_ids)
        return forward(hidden_states, position_embeddings=own, position_ids=position_ids, **more)

    attention.forward = faulty


@changed("inv_freq", "llama", max_position_embeddings=8192)
def the_whole_model_in_half_precision(model: Any) -> None:
    """.half() also rounds the frequencies, which from_pretrained(dtype=float16) would not."""
    model.half()


@replaced(
    "those of full_attention layers",
    "gemma3.Gemma3RotaryEmbedding.forward",
    "gemma3_text",
    layer_types=[*OTHER],
)
def gemma3_angles_exchanged(usual: Any, self: Any, x: Any, at: Any, kind: Any) -> Any:
    """Layers with a window get the angles of those without, and the other way round."""
    return usual(self, x, at, OTHER[kind])


@replaced("keys: pairs are half", "deepseek_v3.apply_rotary_pos_emb_interleave")
def deepseek_keys_by_halves(usual: Any, q: Any, k: Any, cos: Any, sin: Any) -> Any:
    """Its function puts the columns of pairs into halves first, now those of queries alone; then both turn alike."""
    return usual(q, k, cos, sin)[0], modeling("deepseek_v3").apply_rotary_pos_emb(q, k, cos, sin)[1]


@replaced("positions of new tokens", "llama.apply_rotary_pos_emb")
def llama_turns_new_tokens_the_other_way(usual: Any, q: Any, k: Any, cos: Any, sin: Any, **more: Any) -> Any:
    return usual(q, k, cos, sin if q.shape[2] > 1 else -sin, **more)


@replaced("keys: not turned", "qwen3.apply_rotary_pos_emb")
def qwen3_turns_queries_alone(usual: Any, q: Any, k: Any, cos: Any, sin: Any, **more: Any) -> Any:
    return (usual(q, k, cos, sin, **more)[0], k)


@replaced("a clamp", "gpt_neox.GPTNeoXRotaryEmbedding.forward")
def neox_has_angles_as_long_as_the_first_text(usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
    self.longest = getattr(self, "longest", int(position_ids.max()))
    return usual(self, x, position_ids.clamp(max=self.longest))


@planted("inv_freq")
def llama_is_loaded_without_its_frequencies(patch: Patch) -> Any:
    """from_pretrained leaves empty memory where nothing in the file belongs."""
    model = made("llama")

    def faulty(usual: Any, self: Any, module: Any) -> None:
        if hasattr(module, "inv_freq"):
            module.inv_freq.data.fill_(0.0)
        else:
            usual(self, module)

    replace(patch, "llama.LlamaPreTrainedModel._init_weights", faulty)
    return model


@planted("after the rotation")
def qwen3_norms_what_is_turned(patch: Patch) -> Any:
    model = made("qwen3")
    with torch.no_grad():
        for layer in model.model.layers:
            for norm in (layer.self_attn.q_norm, layer.self_attn.k_norm):
                norm.weight.copy_(torch.linspace(0.25, 1.75, 8))

    def faulty(usual: Any, module: Any, q: Any, k: Any, *given: Any, **more: Any) -> Any:
        return usual(module, *(x * module.q_norm.weight for x in (q, k)), *given, **more)

    replace(patch, "qwen3.eager_attention_forward", faulty)
    return model


@replaced("an earlier call", "olmo2.Olmo2RotaryEmbedding.forward")
def olmo2_keeps_angles_by_length(usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
    kept = self.__dict__.setdefault("kept", {})
    n = position_ids.shape[1]
    cos, sin = kept.setdefault(n, usual(self, x, position_ids[:1]))
    return cos.to(x.dtype), sin.to(x.dtype)


@replaced("some without position are turned", "smollm3.SmolLM3Attention.__init__", num_hidden_layers=4)
def smollm3_turns_all_layers(usual: Any, self: Any, *given: Any, **more: Any) -> None:
    usual(self, *given, **more)
    self.use_rope = 1


@replaced(
    "are rounded to float16",
    "mistral.MistralRotaryEmbedding.forward",
    sliding_window=None,
    initializer_range=0.2,
)
def mistral_makes_angles_in_float16(_usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
    angles = (position_ids[..., None].half() * self.inv_freq.half()).repeat(1, 1, 2)
    return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


@replaced("it lacks the factor 1.459", "deepseek_v3.yarn_apply_mscale", rope_parameters=YARN | MSCALES)
def deepseek_leaves_out_mscale(_usual: Any, _parameters: Any, scaling: Any) -> Any:
    return scaling


@replaced("are rounded to bfloat16", "qwen3.Qwen3RotaryEmbedding.forward", initializer_range=0.2)
def qwen3_makes_angles_in_bfloat16(_usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
    angles = (position_ids[..., None].float() * self.inv_freq).bfloat16().float().repeat(1, 1, 2)
    return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


@changed("some without position are turned", "llama4_text")
def llama4_turns_all_layers(model: Any) -> None:
    for layer in model.model.layers:
        layer.self_attn.use_rope = 1


@replaced("are rounded to bfloat16", "llama.LlamaRotaryEmbedding.forward")
def llama_makes_angles_in_16_bits(_usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
    angles = position_ids[..., None].to(torch.bfloat16) * self.inv_freq.to(torch.bfloat16)
    both = torch.cat([angles, angles], -1)
    return both.cos().to(x.dtype), both.sin().to(x.dtype)


@planted("dynamic")
def llama_changes_its_base_as_it_writes(patch: Patch) -> Any:
    scaling = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}
    return made("llama", max_position_embeddings=24, rope_parameters=scaling)


@changed("factor", "llama", rope_parameters=YARN)
def llama_has_the_factor_of_yarn_twice(model: Any) -> None:
    model.model.rotary_emb.attention_scaling **= 2


@changed(
    "spread over the whole head, not over the columns that are turned",
    "gpt_neox",
    rope_parameters=SHARES,
)
def neox_spreads_frequencies_over_the_whole_head(model: Any) -> None:
    rotary = model.gpt_neox.rotary_emb
    count = len(rotary.inv_freq)
    rotary.inv_freq = 1e4 ** (-torch.arange(count) / (2 * count))


@changed(
    "the frequencies are those of full_attention layers",
    "gemma3_text",
    layer_types=["sliding_attention", "full_attention"],
)
def gemma3_has_one_base_for_all_layers(model: Any) -> None:
    rotary = model.model.rotary_emb
    rotary.sliding_attention_inv_freq = rotary.full_attention_inv_freq.clone()


@replaced("angles are laid out for the other kind of pairs", "cohere2.Cohere2RotaryEmbedding.forward")
def cohere_repeats_angles_by_halves(_usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
    angles = position_ids[..., None].float() * self.inv_freq
    both = torch.cat([angles, angles], -1)
    return both.cos().to(x.dtype), both.sin().to(x.dtype)


@replaced(
    "the frequencies are those of base 10000",
    "smollm3.SmolLM3RotaryEmbedding.compute_default_rope_parameters",
    rope_parameters={"rope_type": "default", "rope_theta": 2e6},
)
def smollm3_ignores_its_base(usual: Any, config: Any = None, *given: Any, **more: Any) -> Any:
    config.rope_parameters["rope_theta"], kept = 10000.0, config.rope_parameters["rope_theta"]
    found = usual(config, *given, **more)
    config.rope_parameters["rope_theta"] = kept
    return found


@replaced("cos and sin are exchanged", "olmo2.apply_rotary_pos_emb")
def olmo2_swaps_cos_and_sin(usual: Any, q: Any, k: Any, cos: Any, sin: Any, **more: Any) -> Any:
    return usual(q, k, sin, cos, **more)


@replaced("layout interleaved", "phi3.apply_rotary_pos_emb")
def phi3_pairs_neighbours_in_keys(usual: Any, q: Any, k: Any, cos: Any, sin: Any, **more: Any) -> Any:
    q, _ = usual(q, k, cos, sin, **more)
    half = cos.shape[-1] // 2
    c, s = (x[:, None, :, :half].repeat_interleave(2, -1) for x in (cos, sin))
    a, b = k[..., ::2], k[..., 1::2]
    return q, k * c + torch.stack([-b, a], -1).flatten(-2) * s


@planted("values that are turned")
def llama_turns_values(patch: Patch) -> Any:
    model = made("llama")
    angles = watched(patch, "llama.LlamaRotaryEmbedding.forward")

    def hook(module: Any, given: Any, found: Any) -> Any:
        v = found.unflatten(-1, (-1, 8)).transpose(1, 2)
        v = modeling("llama").apply_rotary_pos_emb(v, v, *angles[0])[0]
        return v.transpose(1, 2).flatten(-2)

    for layer in model.model.layers:
        layer.self_attn.v_proj.register_forward_hook(hook)
    return model


@replaced("are rounded", "qwen3.Qwen3RotaryEmbedding.forward", max_position_embeddings=8192)
def qwen3_positions_in_float16(usual: Any, self: Any, x: Any, at: Any) -> Any:
    return usual(self, x, at.half())


@replaced("an earlier call", "glm4.Glm4RotaryEmbedding.forward")
def glm4_keeps_angles_by_length(usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
    kept = self.__dict__.setdefault("kept", {})
    n = position_ids.shape[1]
    if n not in kept:
        kept[n] = usual(self, x, position_ids)
    return kept[n]


@changed(
    "without the factor 1.139",
    "llama",
    rope_parameters=YARN | {"factor": 4.0, "original_max_position_embeddings": 128},
)
def llama_forgets_the_factor_of_yarn(model: Any) -> None:
    model.model.rotary_emb.attention_scaling = 1.0


@changed("their keys in layer 1", "olmo2")
def olmo2_counts_from_0_in_one_layer(model: Any) -> None:
    attention = model.model.layers[1].self_attn
    forward = attention.forward

    def faulty(hidden_states: Any, position_embeddings: Any = None, **more: Any) -> Any:
        own = model.model.rotary_emb(hidden_states, torch.arange(hidden_states.shape[1])[None])
        return forward(hidden_states=hidden_states, position_embeddings=own, **more)

    attention.forward = faulty


@changed("some without position are turned", "cohere2", layer_types=["sliding_attention", "full_attention"])
def cohere2_turns_layers_without_position(model: Any) -> None:
    model.model.layers[1].self_attn.sliding_window = 512


@replaced(
    "their keys in layer 0", "gemma3.Gemma3RotaryEmbedding.forward", "gemma3_text", layer_types=[*OTHER]
)
def gemma3_exchanges_angles_while_decoding(usual: Any, self: Any, x: Any, at: Any, kind: Any) -> Any:
    return usual(self, x, at, OTHER[kind] if at.shape[1] == 1 else kind)


@changed(
    "8 columns are turned, not 4",
    "phi3",
    rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
)
def phi3_turns_all_columns(model: Any) -> None:
    whole = made("phi3")
    model.model.rotary_emb = whole.model.rotary_emb


@changed(
    "the frequencies are those of base 10000 without the scaling",
    "olmo2",
    rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
)
def olmo2_ignores_its_scaling(model: Any) -> None:
    model.model.rotary_emb = made("olmo2").model.rotary_emb


@replaced("not shared by the two columns", "qwen3.Qwen3RotaryEmbedding.forward")
def qwen3_repeats_angles_for_neighbours(usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
    def half(t: Any) -> Any:
        return t[..., : t.shape[-1] // 2].repeat_interleave(2, -1)

    return tuple(map(half, usual(self, x, position_ids)))


@replaced("those of sliding_attention layers", "modernbert.ModernBertRotaryEmbedding.forward")
def modernbert_exchanges_its_bases(usual: Any, self: Any, x: Any, at: Any, kind: Any) -> Any:
    return usual(self, x, at, OTHER[kind])


@replaced("pairs are half", "glm4.apply_rotary_pos_emb")
def glm4_pairs_by_halves(_usual: Any, q: Any, k: Any, cos: Any, sin: Any, **more: Any) -> Any:
    n = cos.shape[-1]
    return tuple(torch.cat([turned(modeling("llama"), cos, sin, x[..., :n]), x[..., n:]], -1) for x in (q, k))


@changed("the frequencies stand in the opposite order", "llama")
def llama_has_its_frequencies_backwards(model: Any) -> None:
    rotary = model.model.rotary_emb
    rotary.inv_freq = rotary.inv_freq.flip(0)


@planted("one ahead of those of keys")
def deepseek_queries_stand_one_ahead(patch: Patch) -> Any:
    held = {}

    def kept(usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
        held["ahead"] = usual(self, x, position_ids + 1)
        return usual(self, x, position_ids)

    def faulty(usual: Any, q: Any, k: Any, cos: Any, sin: Any, **more: Any) -> Any:
        return usual(q, q, *held["ahead"], **more)[0], usual(k, k, cos, sin, **more)[1]

    replace(patch, "deepseek_v3.DeepseekV3RotaryEmbedding.forward", kept)
    replace(patch, "deepseek_v3.apply_rotary_pos_emb_interleave", faulty)
    return made("deepseek_v3")


@replaced("are rounded", "mistral.MistralRotaryEmbedding.forward")
def mistral_makes_angles_in_its_format(_usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
    angles = position_ids[..., None].to(x.dtype) * self.inv_freq.to(x.dtype)
    angles = torch.cat([angles, angles], -1)
    return angles.cos(), angles.sin()


@planted("two axes are exchanged")
def qwen3_turns_by_the_number_of_the_head(patch: Patch) -> Any:
    model = made("qwen3")

    def by_head(x: Any) -> Any:
        cos, sin = model.model.rotary_emb(x, torch.arange(x.shape[1])[None])
        return x * cos[:, :, None] + modeling("qwen3").rotate_half(x) * sin[:, :, None]

    replace(patch, "qwen3.apply_rotary_pos_emb", lambda _usual, q, k, *_, **__: (by_head(q), by_head(k)))
    return model


@replaced(
    "angles that are not shared by the two columns of a pair",
    "llama.LlamaRotaryEmbedding.forward",
    make=causal,
)
def llama_repeats_angles_of_neighbours(_usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
    angles = (position_ids[..., None].float() * self.inv_freq.float()).repeat_interleave(2, -1)
    return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


@replaced(
    "the frequencies are those of texts of more than 128 tokens",
    "phi3.Phi3RotaryEmbedding.forward",
    make=causal,
    original_max_position_embeddings=128,
    rope_parameters=LONG,
)
def phi3_has_long_factors_at_every_length(_usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
    make = peer("transformers").modeling_rope_utils.ROPE_INIT_FUNCTIONS["longrope"]
    angles = position_ids[..., None].float() * make(self.config, x.device, seq_len=129)[0].float()
    angles = torch.cat((angles, angles), dim=-1)
    return tuple((f(angles) * self.attention_scaling).to(x.dtype) for f in (torch.cos, torch.sin))


@replaced(
    "spread over the whole head, not over the columns that are turned",
    "stablelm.StableLmRotaryEmbedding.compute_default_rope_parameters",
    make=causal,
    rope_parameters=SHARES,
)
def stablelm_divides_by_the_whole_head(_usual: Any, config: Any, **_: Any) -> Any:
    return 1e4 ** -(torch.arange(0, 8, 2).float() / 16), 1.0


@replaced(
    "frequencies or angles that are rounded to the short format",
    "qwen3.Qwen3RotaryEmbedding.forward",
    make=causal,
    head_dim=16,
    max_position_embeddings=8192,
)
def qwen3_rounds_frequencies(_usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
    angles = position_ids[..., None].float() * self.inv_freq.to(x.dtype)
    angles = torch.cat((angles, angles), dim=-1).float()
    return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


@replaced(
    "some without position are turned",
    "smollm3.SmolLM3Attention.__init__",
    make=causal,
    num_hidden_layers=4,
    no_rope_layers=[1, 1, 1, 0],
)
def smollm3_turns_the_layer_without_rotation(usual: Any, self: Any, *given: Any, **more: Any) -> None:
    usual(self, *given, **more)
    self.use_rope = 1


@replaced("turns them unlike", "olmo2.apply_rotary_pos_emb")
def olmo2_leaves_keys_of_one_head(usual: Any, q: Any, k: Any, cos: Any, sin: Any, **more: Any) -> Any:
    q, turned = usual(q, k, cos, sin, **more)
    return q, torch.cat([turned[:, :1], k[:, 1:]], 1)


def test_positions_that_are_ignored_are_named(monkeypatch: Patch) -> None:
    def faulty(usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
        return usual(self, x, torch.arange(x.shape[1])[None])

    replace(monkeypatch, "llama.LlamaRotaryEmbedding.forward", faulty)
    report = posenc.check.check_rotation(made("llama"))
    assert "given change nothing" in report.faults[0].look, report


def test_a_tower_for_pictures_has_frequencies_of_its_own() -> None:
    wrong = reads_pictures()
    rotary = wrong.model.language_model.rotary_emb
    rotary.inv_freq = rotary.original_inv_freq = 5000.0 ** -(torch.arange(8) / 8)
    found = posenc.check.all(wrong).faults[0]
    assert found.what == "frequencies"
    assert "language_model.rotary_emb.inv_freq: the frequencies are those of base 5000" in found.look


@changed("a factor 1.277, of which the configuration says nothing", grows)
def ministral_has_a_factor_that_nobody_said(model: Any) -> None:
    model.model.rotary_emb.attention_scaling = 1.277


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_in_the_first_line(name: str, monkeypatch: Patch) -> None:
    FAULTS.must_be_named(name, monkeypatch)


def test_layers_that_are_turned_are_named_where_another_is_left_out() -> None:
    model = made("smollm3", num_hidden_layers=4)
    for number, layer in enumerate(model.model.layers):
        layer.self_attn.use_rope = int(number % 4 != 0)
    first = posenc.check.all(model).faults[0]
    assert "layers 1, 2, 3 are turned" in f"{first.look} {first.says}", first
