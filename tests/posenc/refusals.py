"""A table of refusals is a test: what is called, the error it ends in, and words that name argument, value and cure."""

from collections.abc import Callable
from typing import Any

import pytest

Refusal = tuple[Callable[[], Any], type[Exception], str]


def refused(cases: list[Refusal]) -> Callable[..., None]:
    """The test of these cases, for a name that begins with test_."""

    @pytest.mark.parametrize(("call", "error", "says"), cases)
    def test(call: Callable[[], Any], error: type[Exception], says: str) -> None:
        with pytest.raises(error, match=says):
            call()

    return test
