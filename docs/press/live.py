"""Figures that can be moved by hand: the element that a drawing of the build stands in.

    <live-shift-rotation class="live" style="--h:230;--rows:3" k="3"><figure class="plot">…</figure>…

Its module, theme/live/shift-rotation.js, is fetched when the reader comes near. Without it the drawing stays.
"""

import re
from html import escape

from press import BookError
from press.cache import ROOT
from press.pages import Figure

FOLDER = ROOT / "docs" / "theme" / "live"
SHARED = ("figure", "index", "posenc")  # modules that are no figures
_ROOM = re.compile(r"static box = \[346, (\d+)\];\s+static rows = (\d+);")


def module(name: str) -> str:
    """The text of a figure's module, "" where there is none."""
    path = FOLDER / f"{name}.js"
    return path.read_text(encoding="utf-8") if path.is_file() and name not in SHARED else ""


def wrapped(drawing: str, figure: Figure) -> str:
    """The drawing in the element of its live comment, if it has one, which keeps the room that it will need."""
    if not figure.live:
        return drawing
    room = _ROOM.search(module(figure.live))
    if room is None:
        raise BookError(
            f"live: {figure.live}: docs/theme/live/{figure.live}.js must say how much room it needs: "
            "static box = [346, 200]; static rows = 2;"
        )
    name, values = f"live-{figure.live}", "".join(f' {key}="{escape(value)}"' for key, value in figure.values)
    style = f"--h:{room[1]};--rows:{room[2]}"
    return f'<{name} class="live" style="{style}"{values}>{drawing}</{name}>'
