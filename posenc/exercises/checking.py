"""How a solution is tried: what is wrong with it is said in one sentence, in English and in Chinese."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

Said = tuple[str, str]
"""A sentence in English and the same in Chinese, with the same numbers."""

WORDS = {"en": ("Right.", "Not yet: {}"), "zh": ("对了。", "还不对：{}")}


@dataclass(frozen=True)
class Exercise:
    """An exercise in code: its id, its page, the name of the function that it asks for, and what tries one."""

    id: str
    page: str
    wanted: str
    tries: Callable[[Callable[..., Any]], Said | None]

    def said(self, solution: Callable[..., Any]) -> Said | None:
        """What is wrong with a solution; None where it is right."""
        try:
            return self.tries(_watched(solution, self.wanted))
        except _NotYetError as found:
            return found.said


EXERCISES: dict[str, Exercise] = {}
"""All exercises in code by their ids; the modules of this package fill it."""


def exercise(id: str) -> Callable[[Callable[[Callable[..., Any]], Said | None]], Callable[..., Said | None]]:
    """Enters a function that tries solutions; it is called as the function that the reader writes.

    It gets the reader's function, and may simply call it: an error in it, or a call that returns nothing, ends the
    trial with a sentence. It returns None where the solution is right, else the most helpful sentence it can.
    """

    def enter(tries: Callable[[Callable[..., Any]], Said | None]) -> Callable[..., Said | None]:
        EXERCISES[id] = Exercise(id, tries.__module__.rpartition(".")[2], tries.__name__, tries)
        return tries

    return enter


def check(name: str, solution: Callable[..., Any], lang: str = "en") -> bool:
    """Tries a solution, prints `Right.` or `Not yet: …` with what to look at, and returns whether it is right.

    Args:
        name: of the exercise, as it stands on its page.
        solution: the function that the exercise asks for.
        lang: "en" or "zh", the language of the sentence.

    Returns:
        Whether the solution is right.

    Raises:
        ValueError: for a name that is that of no exercise in code; the message names the nearest one.

    >>> check("primer-split-heads", lambda x, heads: None)
    Not yet: split_heads returned nothing when called with an array of shape (2, 3, 8), 2: is there a `return`?
    False

    Source: the exercises of this book, exercises/index.md#in-code.
    """
    if name not in EXERCISES:
        near = difflib.get_close_matches(str(name), EXERCISES, n=1) or [
            "python -m posenc.exercises lists them"
        ]
        raise ValueError(f"name must be that of an exercise in code, got {name!r}: {near[0]}")
    if not callable(solution):
        raise TypeError(f"solution must be a function, got {solution!r}: pass it without calling it")
    if lang not in WORDS:
        raise ValueError(f"lang must be 'en' or 'zh', got {lang!r}")
    right, wrong = WORDS[lang]
    said = EXERCISES[name].said(solution)
    print(wrong.format(said[lang == "zh"]) if said else right)
    return said is None


# --- For whoever writes a check -----------------------------------------------------------------------------


def compared(got: Any, wanted: Any, call: str, mistakes: Iterable[tuple[Any, str, str]] = ()) -> Said | None:
    """What is wrong with the result of a call: the mistake whose result it is, else where it differs.

    Args:
        got: what the reader's function gave.
        wanted: the right result.
        call: as a reader would write it: "code_of(3, 4)".
        mistakes: results of likely mistakes, each with its sentence in English and in Chinese; those that are
            right by chance are left out.

    >>> compared([1, 2, 4], [1, 2, 3], "f(x)")[0]
    'f(x)[2] is 4, and should be 3.'
    """
    wanted = np.asarray(wanted)
    try:
        found = np.asarray(got.detach() if hasattr(got, "detach") else got)
        kinds = "biuf" if wanted.dtype.kind in "biuf" else wanted.dtype.kind
        if found.dtype.kind not in kinds:
            raise TypeError
    except (TypeError, ValueError):
        what = type(got).__name__
        return f"{call} is of type {what}, which holds no numbers.", f"{call} 的类型是 {what}，里面不是数。"
    if same(found, wanted):
        return None
    for result, en, zh in mistakes:
        if same(found, result) and not same(result, wanted):
            return en, zh
    if found.shape != wanted.shape:
        return (
            f"{call} has shape {found.shape}, and should have {wanted.shape}.",
            f"{call} 的形状是 {found.shape}，应当是 {wanted.shape}。",
        )
    at = tuple(
        int(i) for i in np.argwhere(~np.isclose(found, wanted, rtol=1e-6, atol=1e-9, equal_nan=True))[0]
    )
    place = f"{call}[{', '.join(map(str, at))}]" if at else call
    is_, should = (f"{value[at]:.4g}" for value in (found, wanted))
    return f"{place} is {is_}, and should be {should}.", f"{place} 是 {is_}，应当是 {should}。"


def same(one: Any, other: Any) -> bool:
    """Whether two results have one shape and, up to rounding, the same numbers."""
    one, other = np.asarray(one), np.asarray(other)
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-6, atol=1e-9, equal_nan=True)


# --- The reader's function ----------------------------------------------------------------------------------


class _NotYetError(Exception):
    """Ends a trial with a sentence."""

    def __init__(self, said: Said) -> None:
        super().__init__(said[0])
        self.said = said


def _watched(solution: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The reader's function on copies of its arguments; where it fails or returns nothing the trial ends."""

    def call(*args: Any) -> Any:
        try:
            with np.errstate(all="ignore"):
                result = solution(*copy.deepcopy(args))
        except Exception as error:
            _stop(name, args, f"{type(error).__name__}: {error}")
        return result if result is not None else _stop(name, args)

    return call


def _stop(name: str, args: tuple[Any, ...], error: str = "") -> NoReturn:
    en, zh = (comma.join(_shown(arg, lang) for arg in args) for lang, comma in (("en", ", "), ("zh", "、")))
    if error:
        raise _NotYetError(
            (f"called with {en}, {name} raised {error}", f"调用 {name} 时出错，参数：{zh}。{error}")
        )
    said = f"{name} returned nothing when called with {en}: is there a `return`?"
    raise _NotYetError((said, f"调用 {name} 没有返回值，参数：{zh}。是不是少了 `return`？"))


def _shown(arg: Any, lang: str) -> str:
    if hasattr(arg, "shape") and arg.shape:
        return (
            f"an array of shape {tuple(arg.shape)}" if lang == "en" else f"形状为 {tuple(arg.shape)} 的数组"
        )
    if callable(arg):
        return "a function" if lang == "en" else "一个函数"
    return repr(arg)
