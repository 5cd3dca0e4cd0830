"""The pictures of README.md. Draw them anew with: python tests/readme_images.py"""

import functools
import io
import re
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from posenc import plot, sinusoidal_encoding

FOLDER = Path(__file__).parent.parent / "docs" / "home" / "images"


def waveforms() -> Figure:
    return plot.waveforms(64, pairs=[0, 4, 8], n=64)


def heat_map() -> Figure:
    plot.heat_map(sinusoidal_encoding(64, 64))
    return plt.gcf()


@functools.cache
def drawn() -> dict[str, str]:
    """Each picture by file name: small SVG that looks the same wherever it is drawn."""
    # Not the style of whoever calls, and no random ids, dates or machine fonts in the file.
    style = {**mpl.rcParamsDefault, "svg.fonttype": "none", "svg.hashsalt": "posenc", "path.simplify": True}
    style.pop("backend", None)
    result = {}
    for function in (waveforms, heat_map):
        with mpl.rc_context(style):
            figure = function()
            buffer = io.StringIO()
            figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, facecolor="white")
            plt.close(figure)
        # Two decimals of a point are enough for an eye, and half the size.
        svg = re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", buffer.getvalue())
        result[f"{function.__name__}.svg"] = svg
    return result


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, svg in drawn().items():
        (FOLDER / name).write_text(svg, encoding="utf-8")
