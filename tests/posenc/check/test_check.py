"""posenc.check: each fault that happens is found in a tiny model with its cause, and good models are left in peace."""

import itertools
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import posenc.check
from posenc.check.__main__ import main
from posenc.rotary import apply_rotary, yarn_frequencies
from tests.posenc.check.tiny import LIMIT, WORDS, Tiny
from tests.posenc.refusals import refused


class Config:
    """What the checks read of a configuration."""

    max_position_embeddings, vocab_size = LIMIT, WORDS


class RopeConfig(Config):
    rope_theta = 100.0


def tiny(way: str, fault: str = "") -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: Any = Tiny(way, fault)
    model.config = RopeConfig() if way == "rope" else Config()
    return model


# A fault, which finding says it first, and in which words.
FAULTS = {
    ("rope", "newest at 0"): ("one token at a time", "new tokens get position 0"),
    ("table", "newest at 0"): ("one token at a time", "new tokens get position 0"),
    ("rope", "one too far"): ("one token at a time", "the position after their own"),
    ("rope", "chunks begin at 0"): ("a prefill in chunks", "those of the second chunk begin at 0 again"),
    ("rope", "crop forgets to count back"): ("a cache cut back", "how the cache counts after crop"),
    ("table", "positions of the first row"): ("pads on the left", "positions of the first row count for all"),
    ("rope", "keys turned back"): ("shift", "in different directions"),
    ("rope", "two layouts"): ("shift", "by different layouts"),
    ("rope", "values turned"): ("shift", "values that are turned"),
    ("rope", "cached keys turned twice"): ("one token at a time", "turned twice"),
    ("rope", "cache crosses the batch"): ("one token at a time", "keys or values change rows"),
    ("rope", "cache is not used"): ("one token at a time", "each token sees itself alone"),
    ("rope", "newest first"): ("a prefill in chunks", "its tokens see later ones"),
    ("rope", "no mask in later chunks"): ("a prefill in chunks", "its tokens see later ones"),
    ("rope", "sees one ahead"): ("who sees whom", "each query sees one key too many"),
    ("rope", "pads are seen"): ("pads on the left", "what the pads hold gets in"),
    ("rope", "mask the wrong way round"): ("a mask of ones", "the wrong way round"),
    ("rope", "softmax of nothing"): ("pads on the left", "queries without any key"),
    ("rope", "positions in the model's format"): ("in bfloat16", "integers above 256"),
    ("rope", "frequencies cast with the model"): ("in float16", ".to() rounds it"),
    ("table", "clamped"): ("beyond the last position", "a clamp"),
    ("table", "wrapped"): ("beyond the last position", "a remainder"),
}


@pytest.mark.parametrize(("way", "fault"), FAULTS)
def test_a_fault_is_found_with_its_cause(way: str, fault: str) -> None:
    what, words = FAULTS[way, fault]
    report = posenc.check.all(tiny(way, fault))
    found = [finding for finding in report.findings if finding.verdict in ("FAULT", "note")]
    found = [finding for finding in found if fault.startswith("frequencies") or not finding.ok]
    assert found, report
    assert (found[0].what, words in found[0].look) == (what, True), report
    assert str(report).splitlines()[0].startswith("FAULT" if not report.ok else "note")


@pytest.mark.parametrize("way", ["rope", "table", "none"])
def test_a_right_model_is_left_in_peace(way: str) -> None:
    model = tiny(way)
    report = posenc.check.all(model, compiled=way == "rope")  # the compiler finds in it all that others have
    assert report.ok, report
    notes = [finding.what for finding in report.findings if finding.verdict == "note"]
    assert notes == ["pads on the left"] * (way == "table"), report
    tried = {finding.what for finding in report.findings if finding.verdict == "ok"}
    assert {"order", "who sees whom", "one token at a time", "a cache cut back"} <= tried
    assert ("torch.compile" in tried) == (way == "rope")


def test_without_positions_a_model_of_one_layer_sees_no_order() -> None:
    model = tiny("none")
    del model.layers[1]
    (found,) = posenc.check.check_order(model).faults
    assert "stays the same" in found.says


def test_what_is_meant_can_be_said() -> None:
    model = tiny("rope", "no causal mask")
    assert posenc.check.check_mask(model).ok
    (found,) = posenc.check.check_mask(model, meant="causal").faults
    assert found.says.startswith("output 0 sees token 1")
    ids = torch.arange(12)[None]
    assert posenc.check.check_mask(tiny("rope"), ids, meant=torch.ones(12, 12, dtype=torch.bool).triu(1)).ok
    assert not posenc.check.check_mask(
        tiny("rope"), ids, meant=torch.ones(12, 12, dtype=torch.bool).triu(-3)
    ).ok


class Packed(nn.Module):
    """One layer of attention with RoPE whose mask and positions are what `fault` leaves of them."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.tiny, self.fault = tiny("table" if fault == "counts on" else "rope"), fault
        self.eval()

    def forward(self, ids: torch.Tensor, position_ids: torch.Tensor | None = None) -> torch.Tensor:
        position_ids = torch.arange(ids.shape[1]).expand(ids.shape) if position_ids is None else position_ids
        if self.fault == "one text":
            return self.tiny(ids)[0]
        cuts = [*(position_ids[0] == 0).nonzero().flatten().tolist(), ids.shape[1]]
        parts = [slice(a, b) for a, b in itertools.pairwise(cuts)]
        places = torch.arange(ids.shape[1]).expand(ids.shape) if self.fault == "counts on" else position_ids
        return torch.cat([self.tiny(ids[:, part], position_ids=places[:, part])[0] for part in parts], dim=1)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("", ""),
        ("one text", "the mask: it is causal alone"),
        ("counts on", "positions: they must begin at 0"),
    ],
)
def test_packed_documents_are_kept_apart(fault: str, words: str) -> None:
    (found,) = posenc.check.check_mask(Packed(fault), IDS, documents=(7, 9, 8)).findings
    assert (found.ok, words in found.look) == (not fault, True), found


class Loaded(nn.Module):
    """An embedding times a buffer that a state dict does not hold."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, 4)
        self.register_buffer("inv_freq", 100.0 ** -torch.arange(0, 1, 0.25), persistent=fault != "garbage")
        self.eval()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.embed(ids) * self.inv_freq


def test_a_buffer_that_is_not_in_the_state_dict_is_named() -> None:
    (fine,) = posenc.check.check_loading(Loaded()).findings[1:]
    (found,) = posenc.check.check_loading(Loaded("garbage")).findings[1:]
    assert (fine.verdict, found.verdict, found.look.partition(":")[0]) == ("ok", "note", "inv_freq")


def test_frequencies_are_those_of_the_configuration() -> None:
    class Config:
        vocab_size = WORDS

        def to_dict(self) -> dict[str, Any]:
            return {"model_type": "llama", "head_dim": 8, "rope_theta": 100.0}

    model: Any = Loaded()
    model.config = Config()
    looks = []
    for change in (
        lambda x: x,
        lambda x: x.bfloat16(),
        lambda x: x**2,
        lambda x: x * torch.tensor([1.0, 0.9, 1.1, 1.0]),
        lambda x: x * 0,
    ):
        model.inv_freq = change(100.0 ** -torch.arange(0, 1, 0.25))
        looks.append(posenc.check.check_loading(model).findings[0].look)
    wanted = [
        "",
        "inv_freq: it is rounded to bfloat16",
        "inv_freq: the frequencies are those of base 10000, not 100",
        "inv_freq: other frequencies",
        "inv_freq holds garbage",
    ]
    assert all(words in look for words, look in zip(wanted, looks, strict=True)), looks


def test_a_model_that_counts_from_elsewhere_is_told() -> None:
    def from_two(input_ids: torch.Tensor, position_ids: torch.Tensor | None = None) -> torch.Tensor:
        places = torch.arange(2, 2 + input_ids.shape[1]) if position_ids is None else position_ids
        return torch.stack([input_ids * 0.01, places.expand_as(input_ids) * 1.0], dim=-1)

    (found,) = [each for each in posenc.check.check_shift(from_two, IDS).findings if each.verdict == "note"][
        :1
    ]
    assert found.says == "without positions given it counts from 2"


def test_a_length_in_python_is_one_graph_each() -> None:
    class Lengths(nn.Module):
        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return ids[..., None] * float(len(str("x" * ids.shape[1]))) ** torch.arange(2)

    report = posenc.check.check_compile(Lengths().eval(), IDS)
    assert (report.findings[0].verdict, int(report.findings[0].number)) == ("note", 6)


# --- Layouts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize(("base", "rotary_dim"), [(10000.0, 64), (500000.0, 32)])
@pytest.mark.parametrize(("sign", "start"), [(1, 0), (-1, 0), (1, 1)])
def test_a_layout_is_proved(layout: Any, base: float, rotary_dim: int, sign: int, start: int) -> None:
    found = posenc.check.check_layout(
        lambda x, at: apply_rotary(x, sign * (at - start), layout=layout, base=base, rotary_dim=rotary_dim)
    )
    assert (found.layout, found.direction, found.base, found.rotary_dim) == (layout, sign, base, rotary_dim)
    assert found.start == start
    assert found.ok


def test_layouts_that_do_not_fit_are_named() -> None:
    mixed = posenc.check.check_layout(lambda x, at: (apply_rotary(x, at), apply_rotary(x, at, layout="half")))
    assert mixed.faults[0].says == "queries: layout interleaved; keys: layout half"
    opposite = posenc.check.check_layout(lambda x, at: (apply_rotary(x, at), apply_rotary(x, -at)))
    assert opposite.faults[0].says.endswith("keys: layout interleaved, turned the other way")
    assert posenc.check.check_layout(lambda x, at: x).faults[0].says == "nothing is turned"
    yarn = yarn_frequencies(64, 4, original_length=4096)
    assert "no single base" in str(
        posenc.check.check_layout(lambda x, at: apply_rotary(x, at, frequencies=yarn))
    )

    def tiled(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        angles = torch.cat([at[:, None] * 100.0 ** -torch.arange(0, 1, 2 / x.shape[-1])] * 2, dim=-1)
        other = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
        return x * angles.cos() + other * angles.sin()

    assert "this is no rotation" in str(posenc.check.check_layout(tiled).faults[0])


# --- Refusals, and the command ------------------------------------------------------------------------------

IDS = torch.randint(0, WORDS, (2, 24), generator=torch.Generator().manual_seed(1))


ORDER, GOOD = posenc.check.check_order, tiny("rope")
test_refusals = refused([
    (lambda: ORDER(3, IDS), TypeError, "model must be a module or a function"),
    (lambda: ORDER(GOOD, IDS[:, :4]), ValueError, "ids must be a tensor"),
    (lambda: ORDER(lambda ids: ids), ValueError, "ids must be given"),
    (lambda: ORDER(lambda ids: ids, IDS), TypeError, "model must give floating outputs"),
    (lambda: ORDER(lambda ids: ids.sum(1, True) * 1.0, IDS), ValueError, "model must give an output for each token"),
    (lambda: ORDER(lambda ids: ids[..., None] / 0.0, IDS), ValueError, "model must give finite outputs"),
    (lambda: ORDER(lambda ids: torch.rand(2, 24, 3), IDS), ValueError, "the same outputs twice"),
    (lambda: posenc.check.all(tiny("rope").train()), ValueError, "call its eval"),
    (lambda: posenc.check.check_mask(GOOD, IDS, meant="left"), ValueError, "meant must be 'causal'"),
    (lambda: posenc.check.check_precision(lambda ids: ids, IDS), TypeError, "model must be a torch module"),
    (lambda: posenc.check.check_mask(GOOD, IDS, documents=[24]), ValueError, "documents must be at least two"),
    (lambda: posenc.check.check_loading(lambda ids: ids, IDS), TypeError, "model must be a torch module"),
    (lambda: posenc.check.check_length(GOOD, IDS, limit=2), ValueError, "limit must be"),
    (lambda: posenc.check.check_layout(lambda x, at: x[..., :2]), ValueError, "turn must give x of shape"),
    (lambda: posenc.check.check_layout(3), TypeError, "turn must be a function"),  # type: ignore[arg-type]
])  # fmt: skip


def test_the_command_has_an_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(
        "from tests.posenc.check.tiny import Tiny\n"
        "def good(): return Tiny('none')\ndef bad(): return Tiny('none', 'sees one ahead')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name, status, words in (
        ("good", 0, "ok        order"),
        ("bad", 1, "FAULT     who sees whom"),
        ("no", 2, "no"),
    ):
        assert main([f"mine:{name}"]) == status
        assert words in "".join(capsys.readouterr())
