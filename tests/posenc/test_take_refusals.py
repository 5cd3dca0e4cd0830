"""What blocks to take along refuse, each in a line: what would otherwise be wrong in silence, or end obscurely."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import taken
import torch


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).to(dtype)


class Case(NamedTuple):
    block: str
    what: str
    call: Callable[[SimpleNamespace], Any]
    message: str
    silent: bool = True  # without the refusal there would be a result


def add(block: SimpleNamespace, x: torch.Tensor, offset: int = 0, max_len: int = 5000) -> Any:
    return block.SinusoidalEncoding(8, max_len, dropout=0.0)(x, offset)


def stretch(block: SimpleNamespace, table: torch.Tensor, old: tuple[int, int] = (4, 4)) -> Any:
    return block.resize_image_table(table, old, (6, 6))


CASES = [
    Case("sinusoidal", "odd width", lambda b: b.SinusoidalEncoding(5), "even.* 5,"),
    Case("sinusoidal", "no width", lambda b: b.SinusoidalEncoding(0), "even.* 0,"),
    Case("sinusoidal", "negative base", lambda b: b.SinusoidalEncoding(8, base=-2.0), "above 0.* -2"),
    Case("sinusoidal", "width 1", lambda b: add(b, random(1, 6, 1)), r"\(1, 6, 1\) is not"),
    Case("sinusoidal", "no batch", lambda b: add(b, random(8, 8)), r"\(8, 8\) is not \(batch, seq, 8"),
    Case("sinusoidal", "heads", lambda b: add(b, random(2, 6, 6, 8)), r"is not \(batch, seq, 8"),
    Case("sinusoidal", "integers", lambda b: add(b, torch.ones(1, 6, 8).long()), "int64: embed"),
    Case("sinusoidal", "booleans", lambda b: add(b, torch.ones(1, 6, 8) > 0), "bool: embed"),
    Case("sinusoidal", "beyond", lambda b: add(b, random(1, 6, 8), max_len=5), r"0\.\.5.* 5", silent=False),
    Case("sinusoidal", "one row for all", lambda b: add(b, random(1, 6, 8), max_len=1), r"0\.\.5.* 1"),
    Case("sinusoidal", "the last for all", lambda b: add(b, random(1, 6, 8), 4999), "5004.* 5000"),
    Case("sinusoidal", "before 0", lambda b: add(b, random(1, 6, 8), -6), "-6", silent=False),
    Case("learned_table", "width 1", lambda b: b.LearnedTable(9, 8)(random(1, 6, 1)), r"1, 6, 1\) is not"),
    Case("learned_table", "no batch", lambda b: b.LearnedTable(9, 8)(random(8, 8)), r"8, 8\) is not"),
    Case("learned_table", "integers", lambda b: b.LearnedTable(9, 8)(torch.ones(1, 6, 8).int()), "int32"),
    Case(
        "learned_table",
        "the last for all",
        lambda b: b.LearnedTable(9, 8)(random(1, 6, 8), 8),
        "8..13, 9 rows",
    ),
    Case("learned_table", "before 0", lambda b: b.LearnedTable(9, 8)(random(1, 1, 8), -2), "positions -2"),
    Case("image_table", "integers", lambda b: stretch(b, torch.ones(17, 4).long()), "int64"),
    Case("image_table", "no class token", lambda b: stretch(b, random(16, 4)), "16 rows", silent=False),
    Case("image_table", "two of them", lambda b: stretch(b, random(18, 4)), "18 rows", silent=False),
]
OWN = sorted({case.block for case in CASES})


def refusals(tree: ast.AST) -> list[ast.If]:
    """The conditions under which a block does nothing but raise."""
    return [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise)
    ]


class Permissive(ast.NodeTransformer):
    """Takes the refusals out of a block."""

    def visit_If(self, node: ast.If) -> Any:
        return ast.Pass() if isinstance(node.body[0], ast.Raise) else self.generic_visit(node)


@cache
def block(name: str, *, permissive: bool = False) -> SimpleNamespace:
    tree = ast.parse(taken.codes()[name])
    if permissive:
        tree = ast.fix_missing_locations(Permissive().visit(tree))
        return taken.pasted(ast.unparse(tree))
    return taken.pasted(taken.codes()[name])


def names(case: Case) -> str:
    return f"{case.block}: {case.what}"


@pytest.mark.parametrize("case", CASES, ids=names)
def test_it_is_refused(case: Case) -> None:
    with pytest.raises((ValueError, TypeError), match=case.message):
        case.call(block(case.block))


@pytest.mark.parametrize("case", CASES, ids=names)
def test_the_refusal_is_needed(case: Case) -> None:
    """Without it there is a result, which is wrong, or an error that does not say what to do."""
    if case.silent:
        case.call(block(case.block, permissive=True))
    else:
        with pytest.raises(Exception, match=r"^(?!.*" + case.message + ")"):
            case.call(block(case.block, permissive=True))


@pytest.mark.parametrize("name", OWN)
def test_every_refusal_has_a_case(name: str) -> None:
    wanted = {node.body[0].lineno for node in refusals(ast.parse(taken.codes()[name]))}
    met = set()
    for case in CASES:
        if case.block == name:
            with pytest.raises((ValueError, TypeError)) as caught:
                case.call(block(name))
            met.add(traceback.extract_tb(caught.tb)[-1].lineno)
    assert met == wanted
