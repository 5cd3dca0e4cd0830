"""Pictures of relative position biases."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from posenc._arrays import Array
from posenc._checks import integer
from posenc.plot._checks import as_labelled
from posenc.plot._curves import shade
from posenc.plot._figures import new_panels, quiet
from posenc.plot._labels import name_all, title
from posenc.plot._style import BLUE, Lang, picture


@picture
def bias_curves(biases: Mapping[str, Array], *, trained: int | None = None, lang: Lang = "en") -> Figure:
    """The bias that one query, the last of the keys, gives to each key: a panel for each scheme.

    Each curve is moved so that its largest value is 0: a constant changes no weight.

    Args:
        biases: label to bias (n,) of the offsets −(n − 1), ..., 0, one to six of them.
        trained: length of the sentences it was trained on, if that is to be marked; at least 1.

    Source: a picture of this book, drawn in relative.md#three-back.
    """
    shown = as_labelled("biases", biases, ("n",))
    if trained is not None:
        trained = integer("trained", trained, minimum=1)
    figure, axes, _ = new_panels(len(shown), 0.5, 1.5, sharex=True)
    for ax, (label, values) in zip(axes, shown.items(), strict=True):
        k = np.arange(1 - values.size, 1)
        if trained is not None and trained < values.size:
            shade(ax, k[0], 0.5 - trained)
        ax.plot(k, values - values.max(), color=BLUE, marker=".", markersize=3, linewidth=1)
        title(quiet(ax), label)
    return name_all(figure, lang, "offset", "bias")
