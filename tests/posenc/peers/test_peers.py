"""What the book says, held against other people's libraries (the extra `peers`)."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Any

import missing
import pytest
import torch

from posenc import alibi_slopes, apply_rotary, dot_product_attention, sinusoidal_frequencies, t5_bias
from posenc.masks import check_padding, masked_mean, positions_from_mask
from posenc.nn import AlibiAttention, AlibiBias, LearnedEncoding, RotaryEmbedding, SinusoidalEncoding, T5Bias
from posenc.relative import t5_bucket
from posenc.rotary import (
    apply_rotary_axes,
    apply_xpos,
    axial_frequencies,
    dynamic_ntk_frequencies,
    linear_frequencies,
    llama3_frequencies,
    longrope_attention_factor,
    longrope_frequencies,
    mrope_coordinates,
    mrope_frequencies,
    proportional_frequencies,
    yarn_attention_factor,
    yarn_frequencies,
)


def peer(name: str) -> Any:
    """A peer's module; without it these tests are skipped, except where a skipped test would go unnoticed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        missing.skip_or_fail("peers", f"no {name}: pip install 'posenc[peers]'")


transformers = peer("transformers")

IDS = [torch.arange(3, 3 + n) for n in (5, 2, 7)]
SIZES: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
# Larger than usual: at the usual 0.02 an untrained model hardly reacts to anything, pads included.
SIZES |= {"intermediate_size": 32, "initializer_range": 0.5}
GPT2_SIZES = {"vocab_size": 50, "n_embd": 16, "n_layer": 2, "n_head": 2, "bos_token_id": 1, "eos_token_id": 2}


def seeded(kind: str, **sizes: Any) -> torch.nn.Module:
    """A small randomly initialised model, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = getattr(transformers, f"{kind}Config")(**sizes)
        return getattr(transformers, f"{kind}Model")(config).eval()


@pytest.fixture(params=[torch.float32, torch.float64], ids=str)
def bert(request: pytest.FixtureRequest) -> torch.nn.Module:
    return seeded("Bert", **SIZES).to(request.param)


# --- Padding ------------------------------------------------------------------------------------------------


def masked(model: torch.nn.Module) -> Any:
    """A model of Hugging Face as the book calls it."""
    return lambda ids, mask: model(input_ids=ids, attention_mask=(~mask).long()).last_hidden_state


def test_bert_passes_on_the_right_and_counts_its_positions_by_place(bert: torch.nn.Module) -> None:
    report = check_padding(masked(bert), IDS)
    assert report.right.ok
    assert not report.left.ok
    assert report.left.change > 0.1
    assert report.left.content <= report.left.tolerance


def test_bert_passes_on_both_sides_with_positions_from_the_mask(bert: torch.nn.Module) -> None:
    def model(ids: torch.Tensor, padding_mask: torch.Tensor) -> Any:
        real, positions = (~padding_mask).long(), positions_from_mask(padding_mask)
        return bert(input_ids=ids, attention_mask=real, position_ids=positions).last_hidden_state

    assert check_padding(model, IDS).ok
    assert check_padding(lambda i, m: masked_mean(model(i, m), m), IDS).ok


def test_bert_without_its_mask_is_caught(bert: torch.nn.Module) -> None:
    report = check_padding(lambda ids, mask: bert(ids).last_hidden_state, IDS)
    for change in (report.right, report.left):
        assert change.change > 0.1
        assert "what the pads hold gets in" in str(change)


def test_mean_over_all_places_is_caught(bert: torch.nn.Module) -> None:
    assert not check_padding(lambda ids, mask: masked(bert)(ids, mask).mean(dim=1), IDS).right.ok


def test_an_inverted_mask_is_caught_without_a_bias() -> None:
    """Llama has no bias and its pads are zeros here: the mask turned round, only what they hold can tell."""
    llama = seeded("Llama", **SIZES, pad_token_id=0)
    assert check_padding(masked(llama), IDS).ok
    left = check_padding(lambda ids, mask: masked(llama)(ids, ~mask), IDS).left
    assert left.inverted
    assert not left.ok


def test_gpt2_needs_position_ids_on_the_left() -> None:
    model = seeded("GPT2", **GPT2_SIZES, initializer_range=0.5)
    report = check_padding(masked(model), IDS)
    assert report.right.ok
    assert not report.left.ok

    def counted(ids: torch.Tensor, padding_mask: torch.Tensor) -> Any:
        positions = positions_from_mask(padding_mask)
        return model(input_ids=ids, attention_mask=(~padding_mask).long(), position_ids=positions)[0]

    assert check_padding(counted, IDS).ok


def test_relative_positions_do_not_care_for_the_side() -> None:
    sizes = {"vocab_size": 50, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        t5 = transformers.T5EncoderModel(transformers.T5Config(**sizes)).eval()
    assert check_padding(masked(t5), IDS).ok
    assert check_padding(masked(seeded("Llama", **SIZES)), IDS).ok


# --- Rotary embedding ---------------------------------------------------------------------------------------


def queries(*shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    q, k = torch.randn(2, *shape, generator=torch.Generator().manual_seed(0))
    return q, k


def close(ours: Any, theirs: Any, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(torch.as_tensor(ours), torch.as_tensor(theirs), rtol=0, atol=tolerance)


def test_llama_is_half() -> None:
    llama = peer("transformers.models.llama.modeling_llama")
    config = transformers.LlamaConfig(hidden_size=64, num_attention_heads=2)
    q, k = queries(2, 3, 50, 32)
    cos, sin = llama.LlamaRotaryEmbedding(config)(q, torch.arange(50)[None].expand(2, -1))
    for ours, theirs in zip(
        RotaryEmbedding(32, layout="half")(q, k), llama.apply_rotary_pos_emb(q, k, cos, sin), strict=True
    ):
        close(ours, theirs)
        with pytest.raises(AssertionError):
            close(RotaryEmbedding(32)(q, k)[0], theirs)


def test_llama_4_is_interleaved() -> None:
    llama4 = peer("transformers.models.llama4.modeling_llama4")
    q, k = queries(2, 50, 3, 32)  # heads after the sequence
    code = torch.polar(
        torch.ones(50, 16), torch.arange(50)[:, None] * torch.from_numpy(sinusoidal_frequencies(32)).float()
    )
    theirs = llama4.apply_rotary_emb(q, k, code[None].expand(2, -1, -1))
    for x, turned in zip((q, k), theirs, strict=True):
        close(apply_rotary(x, torch.arange(50)[None, :, None]), turned)


def test_gpt_neox_is_half_and_partial() -> None:
    neox = peer("transformers.models.gpt_neox.modeling_gpt_neox")
    config = transformers.GPTNeoXConfig(hidden_size=64, num_attention_heads=2)
    assert config.rope_parameters["partial_rotary_factor"] == 0.25
    q, k = queries(1, 2, 50, 32)
    cos, sin = neox.GPTNeoXRotaryEmbedding(config)(q, torch.arange(50)[None])
    theirs = neox.apply_rotary_pos_emb(q, k, cos, sin)
    for x, turned in zip((q, k), theirs, strict=True):
        close(apply_rotary(x, 50, layout="half", rotary_dim=8), turned)


def test_gpt_j_is_interleaved() -> None:
    gptj = peer("transformers.models.gptj.modeling_gptj")
    config = transformers.GPTJConfig()
    assert (config.rotary_dim, config.n_embd // config.n_head) == (64, 256)
    sin, cos = gptj.create_sinusoidal_positions(50, 32).chunk(2, dim=-1)
    q, _ = queries(2, 50, 3, 32)
    close(
        apply_rotary(q, torch.arange(50)[None, :, None]), gptj.apply_rotary_pos_emb(q, sin[None], cos[None])
    )


SHORT, LONG = torch.linspace(1, 1.5, 16).tolist(), torch.linspace(1, 40, 16).tolist()
LENGTH = {"original_max_position_embeddings": 1024}
ROPE_TYPES: list[tuple[dict[str, Any], int | None, Any, float]] = [
    ({"rope_type": "linear", "factor": 8.0}, None, linear_frequencies(32, 8, base=5e5), 1.0),
    (
        {"rope_type": "dynamic", "factor": 4.0}, 9000,
        dynamic_ntk_frequencies(32, 4, 9000, original_length=4096, base=5e5), 1.0,
    ),
    (
        {"rope_type": "dynamic", "factor": 4.0}, 100,
        dynamic_ntk_frequencies(32, 4, 100, original_length=4096, base=5e5), 1.0,
    ),
    (
        {"rope_type": "yarn", "factor": 4.0, **LENGTH}, None,
        yarn_frequencies(32, 4, original_length=1024, base=5e5), yarn_attention_factor(4),
    ),
    (
        {"rope_type": "yarn", "factor": 40.0, **LENGTH, "beta_fast": 16.0, "beta_slow": 2.0,
         "truncate": False, "mscale": 1.0, "mscale_all_dim": 0.7}, None,
        yarn_frequencies(32, 40, original_length=1024, base=5e5, beta_fast=16, beta_slow=2, truncate=False),
        yarn_attention_factor(40, mscale=1.0, mscale_all_dim=0.7),
    ),
    *(  # the ramp would end, or start, outside the pairs
        (
            {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": n, "rope_theta": base},
            None,
            yarn_frequencies(32, 4, original_length=n, base=base), yarn_attention_factor(4),
        )
        for n, base in ((4096, 10.0), (128, 5e5))
    ),
    *(
        (
            {"rope_type": "longrope", "factor": 4.0, **LENGTH, "short_factor": SHORT, "long_factor": LONG},
            n,
            longrope_frequencies(32, SHORT, LONG, n, original_length=1024, base=5e5),
            longrope_attention_factor(4, original_length=1024),
        )
        for n in (1024, 1025)
    ),
    (
        {"rope_type": "llama3", "factor": 8.0, **LENGTH, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
        None,
        llama3_frequencies(32, 8, original_length=1024, base=5e5), 1.0,
    ),
    (
        {"rope_type": "proportional", "factor": 2.0, "partial_rotary_factor": 0.25}, None,
        proportional_frequencies(32, 0.25, factor=2, base=5e5), 1.0,
    ),
    *(
        (
            {"rope_type": "proportional", "factor": 1.0, "partial_rotary_factor": share}, None,
            proportional_frequencies(32, share, base=5e5), 1.0,
        )
        for share in (0.1, 0.3, 0.6, 0.99)
    ),
]  # fmt: skip


@pytest.mark.parametrize(("parameters", "length", "omega", "factor"), ROPE_TYPES)
def test_scaled_frequencies(
    parameters: dict[str, Any], length: int | None, omega: Any, factor: float
) -> None:
    functions = peer("transformers.modeling_rope_utils").ROPE_INIT_FUNCTIONS
    config = transformers.LlamaConfig(
        hidden_size=64, num_attention_heads=2, max_position_embeddings=4096,
        rope_parameters={"rope_theta": 5e5, **parameters},
    )  # fmt: skip
    theirs, their_factor = functions[parameters["rope_type"]](config, seq_len=length)
    torch.testing.assert_close(torch.from_numpy(omega).float(), theirs, rtol=2e-6, atol=0)
    assert factor == pytest.approx(their_factor, rel=1e-12)


def test_every_scaled_rope_type_is_held_against_ours() -> None:
    functions = peer("transformers.modeling_rope_utils").ROPE_INIT_FUNCTIONS
    assert {parameters["rope_type"] for parameters, *_ in ROPE_TYPES} == set(functions)


def test_qwen2_vl_has_three_coordinates_and_is_half() -> None:
    qwen = peer("transformers.models.qwen2_vl.modeling_qwen2_vl")
    config = transformers.Qwen2VLTextConfig(
        hidden_size=256, num_attention_heads=2, rope_parameters={"rope_type": "default", "rope_theta": 1e4}
    )
    places = torch.from_numpy(mrope_coordinates([5, (1, 4, 6), 3, (2, 3, 3), 4]))
    q, k = queries(1, 2, len(places), 128)
    cos, sin = qwen.Qwen2VLRotaryEmbedding(config)(q, places.T[:, None])
    theirs = qwen.apply_rotary_pos_emb(q, k, cos, sin)
    omega = mrope_frequencies(128, (16, 24, 24))
    for x, turned in zip((q, k), theirs, strict=True):
        close(apply_rotary_axes(x, places, omega, layout="half"), turned)


def test_qwen2_vl_counts_text_and_images_as_we_do() -> None:
    config = transformers.Qwen2VLConfig()
    config.vision_config.spatial_merge_size = 1
    qwen = peer("transformers.models.qwen2_vl.modeling_qwen2_vl").Qwen2VLModel
    parts: list[Any] = [5, (1, 4, 6), 3, (1, 7, 2), 4]
    kinds = torch.cat([torch.full((p,), 0) if isinstance(p, int) else torch.ones(p[1] * p[2]) for p in parts])
    model = qwen.__new__(qwen)
    torch.nn.Module.__init__(model)
    model.config = config
    images = torch.tensor([p for p in parts if not isinstance(p, int)])
    theirs, _ = model.get_rope_index(torch.zeros(1, len(kinds), dtype=torch.long), kinds.int()[None], images)
    assert torch.equal(theirs[:, 0].T, torch.from_numpy(mrope_coordinates(parts)))


@pytest.mark.parametrize("per_grid", [0.25, 0.5, 1.0, 2.4])
def test_qwen2_5_vl_counts_time_in_seconds_and_rounds_down(per_grid: float) -> None:
    """As the chapter on time has it: floor(tokens_per_second · seconds), 2 a second in the released models."""
    config = transformers.Qwen2_5_VLConfig()
    config.vision_config.spatial_merge_size, config.vision_config.tokens_per_second = 1, 2
    qwen = peer("transformers.models.qwen2_5_vl.modeling_qwen2_5_vl").Qwen2_5_VLModel
    model = qwen.__new__(qwen)
    torch.nn.Module.__init__(model)
    model.config = config
    frames, text = 7, 3
    kinds = torch.tensor([0] * text + [2] * frames * 4)[None]
    theirs, _ = model.get_rope_index(
        torch.zeros_like(kinds), kinds.int(), video_grid_thw=torch.tensor([[frames, 2, 2]]),
        second_per_grid_ts=torch.tensor([per_grid]),
    )  # fmt: skip
    seconds = torch.arange(frames) * per_grid
    assert theirs[0, 0, text::4].tolist() == (text + (2 * seconds).floor()).tolist()


def test_qwen2_5_omni_counts_40_ms_and_whisper_20() -> None:
    assert transformers.Qwen2_5OmniThinkerConfig().position_id_per_seconds == 25
    assert transformers.WhisperConfig().max_source_positions == 30 * 50


def test_qwen2_vl_vision_is_axial_and_half() -> None:
    qwen = peer("transformers.models.qwen2_vl.modeling_qwen2_vl")
    config = transformers.Qwen2VLConfig().vision_config
    grid = torch.cartesian_prod(torch.arange(3), torch.arange(4))
    dim = config.embed_dim // config.num_heads
    q, k = queries(12, 2, dim)  # heads after the sequence
    cos, sin = qwen.Qwen2VLVisionRotaryEmbedding(config)(q, grid)
    theirs, _ = qwen.apply_rotary_pos_emb_vision(q, k, cos, sin)
    ours = apply_rotary_axes(q.transpose(0, 1), grid, axial_frequencies(dim, 2), layout="half")
    close(ours.transpose(0, 1), theirs)


def test_xpos_of_rotary_embedding_torch() -> None:
    theirs = peer("rotary_embedding_torch").RotaryEmbedding(32, use_xpos=True)
    q, k = queries(1, 2, 50, 32)
    expected = theirs.rotate_queries_and_keys(q, k)
    for ours, turned in zip(apply_xpos(q, k, 50, center=25), expected, strict=True):
        close(ours, turned.detach())


def test_axial_frequencies_of_rotary_embedding_torch() -> None:
    package = peer("rotary_embedding_torch")
    angles = package.RotaryEmbedding(16).get_axial_freqs(3, 5)
    q, _ = queries(2, 3, 5, 32)
    theirs = package.apply_rotary_emb(angles, q)
    grid = torch.cartesian_prod(torch.arange(3), torch.arange(5))
    ours = apply_rotary_axes(q.flatten(1, 2), grid, axial_frequencies(32, 2))
    close(ours.unflatten(1, (3, 5)), theirs.detach())


# --- T5 -----------------------------------------------------------------------------------------------------


def t5_attention(bidirectional: bool) -> Any:
    """Its first self-attention layer, of an encoder or of a decoder."""
    config = transformers.T5Config(d_model=24, d_kv=8, num_heads=3, dropout_rate=0.0)
    config.is_decoder = not bidirectional
    t5 = peer("transformers.models.t5.modeling_t5")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0).eval()


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(
    ("num_buckets", "max_distance"), [(32, 128), (64, 128), (16, 20), (128, 800), (40, 333)]
)
def test_buckets_of_t5(bidirectional: bool, num_buckets: int, max_distance: int) -> None:
    k = torch.arange(-10_000, 10_001)
    sizes: dict[str, Any] = {"num_buckets": num_buckets, "max_distance": max_distance}
    theirs = t5_attention(True)._relative_position_bucket(k, bidirectional, **sizes)
    assert torch.equal(t5_bucket(k, bidirectional=bidirectional, **sizes), theirs)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_bias_of_t5_with_its_checkpoint_and_while_decoding(bidirectional: bool) -> None:
    theirs = t5_attention(bidirectional)
    ours = T5Bias(3, bidirectional=bidirectional)
    ours.load_state_dict(theirs.relative_attention_bias.state_dict())
    assert torch.equal(ours(200), theirs.compute_bias(200, 200)[0])
    assert torch.equal(ours(2, 150), theirs.compute_bias(2, 150, past_seen_tokens=148)[0])


def test_t5_adds_its_bias_to_scores_that_are_not_scaled() -> None:
    theirs, x = t5_attention(True), queries(1, 30, 24)[0]
    expected = theirs(x)[0]
    q, k, v = (m(x).unflatten(-1, (3, 8)).transpose(1, 2) for m in (theirs.q, theirs.k, theirs.v))
    bias = t5_bias(theirs.relative_attention_bias.weight, 30)
    output, _ = dot_product_attention(q, k, v, bias=bias[None], scale=1.0)
    close(theirs.o(output.transpose(1, 2).flatten(-2)), expected)


# --- A model of transformers that holds our layers --------------------------------------------------------


def model_of_transformers() -> torch.nn.Module:
    """A PreTrainedModel with tables that are fixed and tables that are trained."""

    class Config(transformers.PretrainedConfig):  # type: ignore[misc, name-defined, unused-ignore]
        model_type = "posenc-test"

    class Model(transformers.PreTrainedModel):  # type: ignore[misc, name-defined, unused-ignore]
        config_class = Config

        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.mix = torch.nn.Linear(8, 8)
            self.places, self.rows = (
                SinusoidalEncoding(8, 50, dropout=0.0),
                LearnedEncoding(8, 50, dropout=0.0),
            )
            self.rotary, self.halves = RotaryEmbedding(8, 50), RotaryEmbedding(8, 50, layout="half")
            self.bias, self.t5, self.attention = AlibiBias(2), T5Bias(2), AlibiAttention(2)
            self.post_init()

        def _init_weights(self, module: torch.nn.Module) -> None:
            pass

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.rows(self.places(self.mix(x).flatten(0, 1))).view_as(x)
            q, k = self.halves(*self.rotary(x, x))
            length = x.shape[-2]
            return self.attention(q, k, x) + (self.bias(length).exp() + self.t5(length)).to(x.dtype) @ x

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Model(Config()).eval()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_from_pretrained_spoils_no_table(dtype: torch.dtype, tmp_path: Path) -> None:
    """It makes the model on meta, and fills what the checkpoint does not hold with what is in memory."""
    model: Any = model_of_transformers()
    model.save_pretrained(tmp_path)
    held = [torch.full((60_000,), 7.0) for _ in range(20)]
    del held  # so that there is something in memory
    other = type(model).from_pretrained(tmp_path, dtype=dtype)
    x = torch.randn(2, 2, 9, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    assert torch.equal(other(x), model.to(dtype)(x))
    assert other.bias(4).device.type == "cpu"


# --- ALiBi --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [8, 12, 40])
def test_bloom_adds_m_times_u(heads: int) -> None:
    """Row by row the same but for a constant, m · t, that softmax does not see."""
    bloom = peer("transformers.models.bloom.modeling_bloom")
    theirs = bloom.build_alibi_tensor(torch.ones(1, 50), heads, torch.float32)
    m, t = alibi_slopes(heads, like=theirs)[:, None, None], torch.arange(50.0)[:, None]
    close(AlibiBias(heads, causal=False)(50).tril(), (theirs - m * t).float().tril())


@pytest.mark.parametrize("heads", [8, 12, 40])
def test_mpt_counts_from_the_last_key(heads: int) -> None:
    theirs = peer("transformers.models.mpt.modeling_mpt").build_mpt_alibi_tensor(heads, 50)
    close(AlibiBias(heads)(1, 50), theirs)


@pytest.mark.parametrize("heads", [8, 12, 40])
def test_x_transformers_is_symmetric(heads: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports
        package = peer("x_transformers.x_transformers")
    theirs = package.AlibiPositionalBias(heads)
    ours = AlibiBias(heads, causal=False)
    close(ours(50), theirs(50, 50))
    close(ours(3, 40), package.AlibiPositionalBias(heads)(3, 40))
    t = torch.tensor([[0, 1, 2], [7, 8, 10]])
    close(ours(query_positions=t), theirs.forward_custom_pos(t))


def test_attention_of_bloom() -> None:
    bloom = peer("transformers.models.bloom.modeling_bloom")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layer = bloom.BloomAttention(transformers.BloomConfig(hidden_size=48, n_head=6), layer_idx=0).eval()
    x, _ = queries(2, 40, 48)
    bias = bloom.build_alibi_tensor(torch.ones(2, 40), 6, torch.float32)
    later = torch.full((40, 40), -torch.inf).triu(1)
    theirs, _ = layer(x, torch.zeros_like(x), bias, later)
    q, k, v = layer._reshape(layer.query_key_value(x))
    close(layer.dense(AlibiAttention(6)(q, k, v).transpose(1, 2).flatten(-2)), theirs)


def test_attention_of_mpt() -> None:
    mpt = peer("transformers.models.mpt.modeling_mpt")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layer = mpt.MptAttention(transformers.MptConfig(d_model=48, n_heads=6), layer_idx=0).eval()
    x, _ = queries(2, 40, 48)
    later = torch.ones(40, 40, dtype=torch.bool).triu(1)
    theirs, _ = layer(x, mpt.build_mpt_alibi_tensor(6, 40), attention_mask=later)
    q, k, v = (part.unflatten(-1, (6, 8)).transpose(1, 2) for part in layer.Wqkv(x).chunk(3, dim=-1))
    close(layer.out_proj(AlibiAttention(6)(q, k, v).transpose(1, 2).flatten(-2)), theirs)


def test_falcon_adds_its_bias_before_the_scale() -> None:
    """So its slopes are the published ones over sqrt(d), and rounded to bfloat16 besides."""
    falcon = peer("transformers.models.falcon.modeling_falcon")
    sizes: dict[str, Any] = {"hidden_size": 128, "num_attention_heads": 8, "alibi": True}
    config = transformers.FalconConfig(**sizes, multi_query=False, attn_implementation="eager")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layer = falcon.FalconAttention(config, layer_idx=0).eval()
    x, _ = queries(2, 40, 128)
    bias = falcon.build_alibi_tensor(torch.ones(2, 40, dtype=torch.long), 8, torch.float32)
    later = torch.full((2, 1, 40, 40), -torch.inf).triu(1)
    with torch.random.fork_rng(devices=[]):
        theirs = layer(x, bias, later)[0]
    q, k, v = (part.transpose(1, 2) for part in layer._split_heads(layer.query_key_value(x)))
    for slopes, same in ((alibi_slopes(8) / 4, True), (alibi_slopes(8), False)):
        ours = layer.dense(AlibiAttention(8, slopes=slopes)(q, k, v).transpose(1, 2).flatten(-2))
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-5) == same
