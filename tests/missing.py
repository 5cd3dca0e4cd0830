"""What a machine may lack: tests that need it are skipped there, and fail where they must not be skipped."""

import os
from typing import NoReturn

import pytest


def skip_or_fail(what: str, how: str) -> NoReturn:
    """Skip, saying `how` to get what is missing; fail where POSENC_REQUIRE="browser fonts peers runtime" names it."""
    if what in os.environ.get("POSENC_REQUIRE", "").split():
        pytest.fail(f"POSENC_REQUIRE={os.environ['POSENC_REQUIRE']}, and there is {how}", pytrace=False)
    pytest.skip(how, allow_module_level=True)
