"""A picture of what appeared when."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from posenc.plot._checks import as_number, check_count, check_labelled
from posenc.plot._figures import given_or_new, quiet
from posenc.plot._labels import legend_above, name_axes
from posenc.plot._style import COLORS, GREY, MARKERS, Lang, picture


@picture
def timeline(events: Mapping[str, Mapping[str, float]], *, ax: Axes | None = None, lang: Lang = "en") -> Axes:
    """When what appeared: a row an event, the earliest on top, with a mark and a colour for its kind.

    Args:
        events: the name of each event and its year, by kind, one to six kinds; 2017.5 is the middle of 2017.

    Source: a picture of this book, drawn in references.md#timeline.
    """
    check_labelled("events", events)
    dated: list[tuple[float, str, str]] = []
    for kind, named in events.items():
        check_labelled(f"events[{kind!r}]", named, 40)
        dated += [
            (as_number(f"events[{kind!r}][{name!r}]", year), kind, name) for name, year in named.items()
        ]
    check_count("events", len(dated), 40)
    dated.sort(key=lambda event: event[0])
    ax = given_or_new(ax, 1.1 + 0.2 * len(dated))
    ax.grid(axis="x", color=GREY, linewidth=0.4)
    middle = (dated[0][0] + dated[-1][0]) / 2
    for kind, color, mark in zip(events, COLORS, MARKERS, strict=False):
        places = [(year, row) for row, (year, its_kind, _) in enumerate(dated) if its_kind == kind]
        ax.plot(*zip(*places, strict=True), color=color, marker=mark, linestyle="none", label=kind)
    for row, (year, _, name) in enumerate(dated):
        side, align = (7, "left") if year <= middle else (-7, "right")  # where there is room
        ax.annotate(
            name,
            (year, row),
            xytext=(side, 0),
            textcoords="offset points",
            ha=align,
            va="center",
            fontsize=10,
        )
    ax.set(ylim=(len(dated) - 0.5, -0.5), yticks=())
    ax.xaxis.set_major_locator(MaxNLocator(7, integer=True, steps=[1, 2, 5, 10]))
    ax.spines["left"].set_visible(False)
    legend_above(name_axes(quiet(ax), lang, "year"))
    return ax
