"""Without a browser or a peer a test is skipped, and fails where POSENC_REQUIRE names it."""

import missing
import pytest


@pytest.mark.parametrize("required", ["", "peers", "brow"])
def test_it_is_skipped(monkeypatch: pytest.MonkeyPatch, required: str) -> None:
    monkeypatch.setenv("POSENC_REQUIRE", required)
    with pytest.raises(pytest.skip.Exception, match="apt-get"):
        missing.skip_or_fail("browser", "no browser: apt-get install chromium")


@pytest.mark.parametrize("required", ["browser", "browser peers"])
def test_it_fails_where_it_is_required(monkeypatch: pytest.MonkeyPatch, required: str) -> None:
    monkeypatch.setenv("POSENC_REQUIRE", required)
    with pytest.raises(pytest.fail.Exception, match=f"POSENC_REQUIRE={required}, and there is no browser"):
        missing.skip_or_fail("browser", "no browser: apt-get install chromium")
