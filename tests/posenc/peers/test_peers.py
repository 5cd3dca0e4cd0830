"""What the book says, held against other people's libraries (the extra `peers`)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from posenc import alibi_slopes, dot_product_attention, t5_bias
from posenc.masks import check_padding, masked_mean, positions_from_mask
from posenc.nn import AlibiAttention, AlibiBias, LearnedEncoding, RotaryEmbedding, SinusoidalEncoding, T5Bias
from posenc.relative import t5_bucket
from posenc.rotary import (
    dynamic_ntk_frequencies,
    linear_frequencies,
    llama3_frequencies,
    longrope_attention_factor,
    longrope_frequencies,
    proportional_frequencies,
    yarn_attention_factor,
    yarn_frequencies,
)
from tests.peers import close, modeling, peer, random, seeded

transformers = peer("transformers")

IDS = [torch.arange(3, 3 + n) for n in (5, 2, 7)]
# Larger than usual: at the usual 0.02 an untrained model hardly reacts to anything, pads included.
SIZES: dict[str, Any] = {
    "vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "initializer_range": 0.5,
}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "BertModel": SIZES,
    "LlamaModel": SIZES | {"pad_token_id": 0},
    "GPT2Model": {
        "vocab_size": 50, "n_embd": 16, "n_layer": 2, "n_head": 2, "bos_token_id": 1, "eos_token_id": 2,
        "initializer_range": 0.5,
    },
    "T5EncoderModel": {
        "vocab_size": 50, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2,
    },
}  # fmt: skip


def model_of(name: str) -> Any:
    config = getattr(transformers, name.replace("Encoder", "").replace("Model", "Config"))
    return seeded(getattr(transformers, name), config(**MODELS[name]))


# --- Padding ------------------------------------------------------------------------------------------------

Wrapped = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def masked(model: Any) -> Wrapped:
    """A model of Hugging Face as the book calls it."""
    return lambda ids, mask: model(input_ids=ids, attention_mask=(~mask).long())[0]


def counted(model: Any) -> Wrapped:
    """With positions from the mask."""

    def run(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return model(input_ids=ids, attention_mask=(~mask).long(), position_ids=positions_from_mask(mask))[0]

    return run


def pooled(model: Any) -> Wrapped:
    return lambda ids, mask: masked_mean(counted(model)(ids, mask), mask)


def pooled_with_pads(model: Any) -> Wrapped:
    return lambda ids, mask: counted(model)(ids, mask).mean(dim=1)


def bare(model: Any) -> Wrapped:
    return lambda ids, mask: model(input_ids=ids)[0]


@pytest.mark.parametrize(
    ("name", "wrap", "right", "left"),
    [
        ("BertModel", masked, True, False),  # it counts its positions by place
        ("BertModel", counted, True, True),
        ("BertModel", pooled, True, True),
        ("BertModel", pooled_with_pads, False, False),
        ("BertModel", bare, False, False),
        ("GPT2Model", masked, True, False),
        ("GPT2Model", counted, True, True),
        ("LlamaModel", masked, True, True),  # relative positions do not care for the side
        ("T5EncoderModel", masked, True, True),
    ],
)
def test_padding_gets_in(name: str, wrap: Callable[[Any], Wrapped], right: bool, left: bool) -> None:
    report = check_padding(wrap(model_of(name)), IDS)
    assert (report.right.ok, report.left.ok) == (right, left)
    for found in (report.right, report.left):
        assert found.ok or found.change > 0.01
        assert ("what the pads hold gets in" in str(found)) == (wrap in (bare, pooled_with_pads))


def test_an_inverted_mask_is_caught_without_a_bias() -> None:
    """Llama has no bias and its pads are zeros here: the mask turned round, only what they hold can tell."""
    left = check_padding(lambda ids, mask: masked(model_of("LlamaModel"))(ids, ~mask), IDS).left
    assert left.inverted
    assert not left.ok


# --- Rotary embedding ---------------------------------------------------------------------------------------


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
    *(  # a step, as in Kimi K2
        (
            {"rope_type": "yarn", "factor": 32.0, **LENGTH, "beta_fast": 1.0, "beta_slow": 1.0, "truncate": whole},
            None,
            yarn_frequencies(32, 32, original_length=1024, base=5e5, beta_fast=1, truncate=whole),
            yarn_attention_factor(32),
        )
        for whole in (True, False)
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


@pytest.mark.parametrize("per_grid", [0.25, 0.5, 1.0, 2.4])
def test_qwen2_5_vl_counts_time_in_seconds_and_rounds_down(per_grid: float) -> None:
    """As the chapter on time has it: floor(tokens_per_second · seconds), 2 a second in the released models."""
    config = transformers.Qwen2_5_VLConfig()
    config.vision_config.spatial_merge_size, config.vision_config.tokens_per_second = 1, 2
    qwen = modeling("qwen2_5_vl").Qwen2_5_VLModel
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


# --- T5 -----------------------------------------------------------------------------------------------------


def t5_attention(bidirectional: bool) -> Any:
    """Its first self-attention layer, of an encoder or of a decoder."""
    config = transformers.T5Config(d_model=24, d_kv=8, num_heads=3, dropout_rate=0.0)
    config.is_decoder = not bidirectional
    return seeded(modeling("t5").T5Attention, config, has_relative_attention_bias=True, layer_idx=0)


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
    theirs, x = t5_attention(True), random(1, 30, 24)
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

    return seeded(Model, Config())


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
def test_biases_of_bloom_mpt_and_x_transformers(heads: int) -> None:
    """Bloom adds m · u: the same but for m · t, a constant in each row. MPT counts from the last key."""
    ours = AlibiBias(heads, causal=False)
    bloom = modeling("bloom").build_alibi_tensor(torch.ones(1, 50), heads, torch.float32)
    m, t = alibi_slopes(heads, like=bloom)[:, None, None], torch.arange(50.0)[:, None]
    close(ours(50).tril(), (bloom - m * t).float().tril())
    close(AlibiBias(heads)(1, 50), modeling("mpt").build_mpt_alibi_tensor(heads, 50))
    symmetric = peer("x_transformers.x_transformers").AlibiPositionalBias
    places = torch.tensor([[0, 1, 2], [7, 8, 10]])
    close(ours(50), symmetric(heads)(50, 50))
    close(ours(3, 40), symmetric(heads)(3, 40))
    close(ours(query_positions=places), symmetric(heads).forward_custom_pos(places))


def test_falcon_adds_its_bias_before_the_scale() -> None:
    """So its slopes are the published ones over sqrt(d), and rounded to bfloat16 besides."""
    falcon = modeling("falcon")
    sizes: dict[str, Any] = {"hidden_size": 128, "num_attention_heads": 8, "alibi": True}
    config = transformers.FalconConfig(**sizes, multi_query=False, attn_implementation="eager")
    layer = seeded(falcon.FalconAttention, config, layer_idx=0)
    x = random(2, 40, 128)
    bias = falcon.build_alibi_tensor(torch.ones(2, 40, dtype=torch.long), 8, torch.float32)
    later = torch.full((2, 1, 40, 40), -torch.inf).triu(1)
    with torch.random.fork_rng(devices=[]):
        theirs = layer(x, bias, later)[0]
    q, k, v = (part.transpose(1, 2) for part in layer._split_heads(layer.query_key_value(x)))
    for slopes, same in ((alibi_slopes(8) / 4, True), (alibi_slopes(8), False)):
        ours = layer.dense(AlibiAttention(8, slopes=slopes)(q, k, v).transpose(1, 2).flatten(-2))
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-5) == same


@torch.no_grad()
def test_minimax_decays_by_the_slopes_of_alibi() -> None:
    """One decay a head, e to the minus slope for each step back; weaker from layer to layer."""
    sizes: dict[str, Any] = {"hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": 4}
    config, x = transformers.MiniMaxConfig(**sizes), random(1, 9, 64)
    make = modeling("minimax").MiniMaxLightningAttention
    layer, second = (seeded(make, config, layer_idx=i) for i in (0, 1))
    assert (second.slope_rate < 0.7 * layer.slope_rate).all()
    layer.norm = layer.out_proj = torch.nn.Identity()
    theirs = layer(x, None, None)[0] / torch.sigmoid(layer.output_gate(x))
    q, k, v = layer.act_fn(layer.qkv_proj(x)).unflatten(-1, (8, 24)).transpose(1, 2).split(8, dim=-1)
    back = torch.arange(9)[:, None] - torch.arange(9)
    for slopes, same in ((alibi_slopes(8, like=x), True), (second.slope_rate.flatten(), False)):
        decay = torch.exp(-slopes.float()[:, None, None] * back).tril()
        ours = ((decay * (q @ k.mT)) @ v).transpose(1, 2).flatten(-2)
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-4) == same
