"""Pictures of what a model knows about order."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from posenc._arrays import Array
from posenc.order import same_bag
from posenc.plot._checks import as_numbers
from posenc.plot._figures import given_or_new
from posenc.plot._maps import color_bar, even_scale, signed_map
from posenc.plot._style import GREY, ORANGE, Lang, picture, word

# Height of a strip, and of the gap between the two rows that the lines cross, in units of one column.
STRIP, GAP = 0.16, 0.62


@picture
def order_blindness(
    first: Sequence[str],
    first_outputs: Array,
    second: Sequence[str],
    second_outputs: Array,
    *,
    ax: Axes | None = None,
    lang: Lang = "en",
) -> Axes:
    """Two orders of the same tokens, and what a model makes of each: output vectors as strips of colour.

    A line joins a token to the same token in the other order, and the two means over all tokens: grey and
    solid where the two vectors are equal to 1e-6, orange and dashed where they differ. Of a token that occurs several
    times, the first is joined to the first, and so on.

    Args:
        first, second: the tokens in the two orders.
        first_outputs, second_outputs: the output vectors, shape (n, d), a row for each token.

    Source: a picture of this book, drawn in order.md#pooling.
    """
    if len(first) == 0 or not same_bag(first, second):
        raise ValueError(f"first and second must hold the same tokens, got {list(first)} and {list(second)}")
    n = len(first)
    above = as_numbers("first_outputs", first_outputs, (n, "d"))
    below = as_numbers("second_outputs", second_outputs, above.shape)
    ax = given_or_new(ax, 2.6)
    # The mean of each row of vectors stands behind them, half a column apart.
    columns = [*range(n), n + 0.3]
    above, below = np.vstack([above, above.mean(axis=0)]), np.vstack([below, below.mean(axis=0)])
    most = even_scale(above, below)
    high, low = GAP + STRIP, 0.0
    for y, vectors, tokens, side in ((high, above, first, 1), (low, below, second, -1)):
        for x, vector, label in zip(columns, vectors, [*tokens, word("mean", lang)], strict=True):
            box = (x - 0.4, x + 0.4, y - STRIP / 2, y + STRIP / 2)
            image = signed_map(ax, vector[None], most, extent=box)
            ax.add_patch(_frame(box))
            place = "bottom" if side > 0 else "top"
            ax.text(x, y + side * (STRIP / 2 + 0.03), label, ha="center", va=place, fontsize=11)
    for t, u in enumerate([*_partners(first, second), n]):
        equal = np.allclose(above[t], below[u], rtol=0, atol=1e-6)
        ax.plot(
            (columns[t], columns[u]),
            (high - STRIP / 2, low + STRIP / 2),
            color=GREY if equal else ORANGE,
            linestyle="-" if equal else (0, (4, 3)),
            linewidth=1.6,
        )
    ax.set(xlim=(-0.5, columns[-1] + 0.5), ylim=(low - STRIP / 2 - 0.22, high + STRIP / 2 + 0.22))
    ax.set(aspect="auto", xticks=[], yticks=[])
    color_bar(image, ax, word("value", lang), (-most, 0, most), shrink=0.7)
    ax.set_frame_on(False)
    return ax


def _partners(first: Sequence[str], second: Sequence[str]) -> list[int]:
    """For each token of first, where the same token stands in second; the k-th goes with the k-th."""
    seen: Counter[str] = Counter()
    places = []
    for token in first:
        hits = [u for u, other in enumerate(second) if other == token]
        places.append(hits[seen[token]])
        seen[token] += 1
    return places


def _frame(box: tuple[float, float, float, float]) -> Rectangle:
    left, right, bottom, top = box
    return Rectangle((left, bottom), right - left, top - bottom, fill=False, edgecolor=GREY, linewidth=0.8)
