"""The picture of the primer: where a position can enter attention."""

from matplotlib.axes import Axes

from posenc.plot._figures import given_or_new
from posenc.plot._style import BLUE, GREY, WIDTH, Lang, picture, word

# From token ids to the output of attention: each step, the shape that leaves it, whether a position enters.
STEPS = (
    ("token ids", "(batch, seq)", False),
    ("token embedding", "(batch, seq, dim)", False),
    ("add a code", "(batch, seq, dim)", True),
    ("make q, k, v", "(batch, heads, seq, head_dim)", False),
    ("turn q and k", "(batch, heads, seq, head_dim)", True),
    ("scores", "(batch, heads, seq, seq)", False),
    ("add a bias", "(batch, heads, seq, seq)", True),
    ("hide keys", "(batch, heads, seq, seq)", True),
    ("softmax, mix", "(batch, heads, seq, head_dim)", False),
    ("join heads", "(batch, seq, dim)", False),
)
# What enters there, and its shape.
ENTRIES = (
    ("sinusoidal, learned", "(seq, dim)"),
    ("rotary", "(seq, head_dim / 2)"),
    ("biases", "(heads, seq, seq)"),
    ("causal mask", "(seq, seq)"),
)
ONCE = 3  # steps before the first layer

# In points: half the height of a box, from one box to the next, its left and right side.
HALF, PITCH, LEFT, RIGHT = 11, 47, 22, 172


@picture
def position_entries(*, ax: Axes | None = None, lang: Lang = "en") -> Axes:
    """The steps from token ids to the output of attention, and the four at which a position can enter.

    The shape of what is passed on stands beside every arrow. A step that is there for the position alone has
    a dashed frame and an arrow from the right, with the shape of what enters.

    Source: a picture of this book, drawn in primer.md#entries.
    """
    height = PITCH * len(STEPS) + 4
    ax = given_or_new(ax, height / 72)
    ax.set(xlim=(0, 72 * WIDTH), ylim=(height, 0))
    ax.axis("off")
    middle = (LEFT + RIGHT) / 2
    arrow = {"arrowstyle": "-|>", "color": GREY, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
    entries = iter(enumerate(ENTRIES, start=1))
    for row, (name, shape, optional) in enumerate(STEPS):
        y = PITCH * row + HALF + 1
        x = [LEFT, RIGHT, RIGHT, LEFT, LEFT]
        sides = [y - HALF, y - HALF, y + HALF, y + HALF, y - HALF]
        ax.plot(
            x, sides, color=BLUE if optional else GREY, linestyle="--" if optional else "-", linewidth=1.2
        )
        ax.text(middle, y, word(name, lang), ha="center", va="center", fontsize=11)
        ax.annotate("", (middle, y + PITCH - HALF), xytext=(middle, y + HALF), arrowprops=arrow)
        ax.text(middle + 6, y + PITCH / 2, shape, va="center", fontsize=10)
        if optional:
            number, (what, size) = next(entries)
            ax.annotate(
                "", (RIGHT, y), xytext=(RIGHT + 28, y), arrowprops={**arrow, "color": BLUE, "linestyle": "--"}
            )
            ax.text(RIGHT + 33, y, f"{number}  {word(what, lang)}\n{size}", va="center", fontsize=10)
    for first, last, name in ((0, ONCE, "once"), (ONCE, len(STEPS), "in every layer")):
        top, bottom = PITCH * first + 1, PITCH * last - PITCH + 2 * HALF + 1
        ax.plot([LEFT - 8, LEFT - 8], [top, bottom], color=GREY, linewidth=3)
        # Latin words lie on their side, Chinese ones stand.
        words, turn = (word(name, lang), 90) if lang == "en" else ("\n".join(word(name, lang)), 0)
        ax.text(LEFT - 12, (top + bottom) / 2, words, rotation=turn, ha="right", va="center", fontsize=10)
    return ax
