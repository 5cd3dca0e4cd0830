"""Right and wrong solutions of the exercises that begin the book, and how a solution is tried at all."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from posenc.exercises import EXERCISES, check
from posenc.exercises.__main__ import main
from posenc.exercises.checking import compared
from tests.posenc.exercises.tables import Table, held


def _attend(
    q: Any, k: Any, v: Any, root: float | None = None, axis: int = -1, first: int | None = None
) -> Any:
    scores = q @ k.T / (root or k.shape[1] ** 0.5)
    own = np.arange(len(q)) + (len(k) - len(q) if first is None else first)
    scores[np.arange(len(k)) > own[:, None]] = -np.inf
    e = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True) @ v


def _overflows(q: Any, k: Any, v: Any) -> Any:
    e = np.tri(len(k))[len(k) - len(q) :] * np.exp(q @ k.T / k.shape[1] ** 0.5)
    return e / e.sum(axis=1, keepdims=True) @ v


TABLE: Table = {
    "primer-attend": (
        _attend,
        [
            ("not divided by √d", lambda q, k, v: _attend(q, k, v, root=1)),
            ("runs over the queries", lambda q, k, v: _attend(q, k, v, axis=0)),
            ("counts the rows of q from 0", lambda q, k, v: _attend(q, k, v, first=0)),
            ("sees the next one", lambda q, k, v: _attend(q, k, v, first=len(k) - len(q) + 1)),
            ("sees later ones", lambda q, k, v: _attend(q, k, v, first=9)),
            ("overflows", _overflows),
        ],
    ),
    "primer-split-heads": (
        lambda x, h: x.reshape(*x.shape[:2], h, -1).transpose(0, 2, 1, 3),
        [
            ("mixes tokens", lambda x, h: x.reshape(len(x), h, x.shape[1], -1)),
            ("still stands behind", lambda x, h: x.reshape(*x.shape[:2], h, -1)),
            ("every second column", lambda x, h: x.reshape(*x.shape[:2], -1, h).transpose(0, 3, 1, 2)),
            ("last two axes", lambda x, h: x.reshape(*x.shape[:2], h, -1).transpose(0, 2, 3, 1)),
            ("has shape (3, 2, 2, 4)", lambda x, h: x.reshape(*x.shape[:2], h, -1).swapaxes(0, 1)),
        ],
    ),
    "order-error": (
        lambda f, x, order: np.abs(f(x[order]) - f(x)[order]).max(),
        [
            ("reorder the second", lambda f, x, order: np.abs(f(x[order]) - f(x)).max()),
            ("inverse of order", lambda f, x, order: np.abs(f(x[order]) - f(x)[np.argsort(order)]).max()),
            ("can be negative", lambda f, x, order: (f(x[order]) - f(x)[order]).max()),
            ("the mean of the differences", lambda f, x, order: np.abs(f(x[order]) - f(x)[order]).mean()),
            ("called with", lambda f, x, order: np.abs(f(x[:, order]) - f(x)[:, order]).max()),
        ],
    ),
    "naive-binary": (
        lambda t, bits: t[:, None] >> np.arange(bits) & 1,
        [
            ("order of writing", lambda t, bits: t[:, None] >> np.arange(bits)[::-1] & 1),
            ("counted from 1", lambda t, bits: t[:, None] + 1 >> np.arange(bits) & 1),
            ("leaves fractions", lambda t, bits: t[:, None] / 2.0 ** np.arange(bits) % 2),
            ("digits above", lambda t, bits: t[:, None] >> np.arange(bits)),
            ("holds no numbers", lambda t, bits: [f"{each:0{bits}b}" for each in t]),
        ],
    ),
}  # fmt: skip


test_each_mistake_gets_its_sentence = held("begin", TABLE)


# --- What all exercises share -------------------------------------------------------------------------------


def test_a_solution_that_fails_or_returns_nothing_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert not check("naive-binary", lambda t: t)
    assert "called with an array of shape (5,), 3, binary_code raised TypeError: " in capsys.readouterr().out
    assert not check("naive-binary", lambda t, bits: None, lang="zh")
    assert (
        capsys.readouterr().out
        == "还不对：调用 binary_code 没有返回值，参数：形状为 (5,) 的数组、3。是不是少了 `return`？\n"
    )
    assert check("naive-binary", TABLE["naive-binary"][0])
    assert capsys.readouterr().out == "Right.\n"


@pytest.mark.parametrize(
    ("name", "solution", "lang", "error", "says"),
    [
        ("naive-binery", len, "en", ValueError, "got 'naive-binery': naive-binary"),
        ("naive-binary", 3, "en", TypeError, "solution must be a function, got 3"),
        ("naive-binary", len, "fr", ValueError, "lang must be 'en' or 'zh', got 'fr'"),
    ],
)
def test_what_check_refuses(name: str, solution: Any, lang: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        check(name, solution, lang=lang)


def test_a_mistake_that_is_right_by_chance_is_not_named() -> None:
    said = "This is wrong.", "错了。"
    assert compared([1.0, 2], [1, 2], "f()", [([1, 2], *said)]) is None
    assert compared([1, 3], [1, 2], "f()", [([1, 3], *said)]) == said
    assert compared(2, 1, "f()") == ("f() is 2, and should be 1.", "f() 是 2，应当是 1。")


def test_at_home_a_file_is_tried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()} == EXERCISES.keys()
    (tmp_path / "my.py").write_text("def binary_code(t, bits):\n    return t[:, None] >> range(bits) & 1\n")
    assert main(["naive-binary", str(tmp_path / "my.py")]) == 0
    (tmp_path / "my.py").write_text("def binary_code(t, bits):\n    return t\n")
    assert main(["naive-binary", str(tmp_path / "my.py"), "--lang", "zh"]) == 1
    assert "还不对：" in capsys.readouterr().out
    for arguments in (
        ["x"],
        ["naive-binary"],
        ["order-error", str(tmp_path / "my.py")],
        ["order-error", "no.py"],
    ):
        with pytest.raises(SystemExit, match="2"):
            main(arguments)
