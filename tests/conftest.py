"""Every test draws without a screen and leaves no figure and no style behind."""

from collections.abc import Iterator

import blocktests
import matplotlib
import matplotlib.pyplot as plt
import pytest
from hypothesis import settings

# The first call into torch, or a busy machine, is slow; that is no fault of what is tested.
settings.register_profile("posenc", deadline=None)
settings.load_profile("posenc")
blocktests.install()
plt.switch_backend("agg")


@pytest.fixture(autouse=True)
def _no_figure_left() -> Iterator[None]:
    with matplotlib.rc_context():
        yield
    plt.close("all")
