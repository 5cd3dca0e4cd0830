"""Figures that can be moved by hand: the element that a drawing of the build stands in.

    <live-shift-rotation class="live" style="--h:230;--rows:3" k="3"><figure class="plot">…</figure>…

Its module, theme/live/shift-rotation.js, is fetched when the reader comes near. Without it the drawing stays.
What only the package knows, results of its trainings, stands in an attribute: `HANDED_ON`.
"""

import json
import re
from collections.abc import Callable
from html import escape

from press import BookError
from press.cache import ROOT
from press.pages import Figure

FOLDER = ROOT / "docs" / "theme" / "live"
SHARED = ("figure", "index", "posenc")  # modules that are no figures
# The schemes of the sweep that the chapter has, and that its figure lets readers choose.
SWEPT = (
    "none", "none_logn", "sinusoidal", "sinusoidal_offset", "learned", "learned_offset", "rotary", "rotary_linear",
    "rotary_ntk", "rotary_yarn", "rotary_window", "rotary_share_base", "rotary_small_base", "xpos", "hybrid",
    "alibi", "alibi_short", "t5",
)  # fmt: skip
_ROOM = re.compile(r"static box = \[346, (\d+)\];\s+static rows = (\d+);(?:\s+static wide = (\d+);)?")


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
    handed = [(name, made()) for name, made in HANDED_ON.get(figure.live, {}).items()]
    values = "".join(f' {key}="{escape(value)}"' for key, value in [*figure.values, *handed])
    name = f"live-{figure.live}"
    style = f"--h:{room[1]};--rows:{room[2]}" + f";--wide:{room[3]}" * bool(room[3])
    return f'<{name} class="live" style="{style}"{values}>{drawing}</{name}>'


def sweep() -> str:
    """What the package's sweep of lengths has of the chapter's schemes, as JSON.

    `scores` in thousandths: scheme, task, seed, length. `unfinished` by task, also for a scheme that begins with the
    weights of such a one.

    Read without `extrapolation_results`: the machinery needs nothing of posenc.
    """
    file = ROOT / "posenc" / "experiments" / "extrapolation" / "results.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    tasks, steps = list(data["chance"]), data["settings"]["steps"]
    begins = {name: data["schemes"][name].get("begins", name) for name in SWEPT}
    usual = [run for run in data["runs"] if run["size"] == "usual"]
    scores = {
        (run["scheme"], run["task"]): [[round(1000 * score) for score in row] for row in run["scores"]]
        for run in usual
        if run["steps"] == steps
    }
    longer = {(run["scheme"], run["task"]) for run in usual if run["steps"] != steps}
    handed_on = {
        "lengths": data["lengths"],
        "steps": steps,
        "chance": data["chance"],
        "floor": data["floor"],
        "begins": {name: first for name, first in begins.items() if name != first},
        "unfinished": {task: [name for name in SWEPT if (begins[name], task) in longer] for task in tasks},
        "scores": {name: [scores[name, task] for task in tasks] for name in SWEPT},
    }
    return json.dumps(handed_on, separators=(",", ":"))


HANDED_ON: dict[str, dict[str, Callable[[], str]]] = {"length-sweep": {"sweep": sweep}}
"""What figures get from the package: attributes by name."""
