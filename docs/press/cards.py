"""The picture that others show beside a link to a page: its title over sines and cosines of its positions, as a PNG.

A build draws those that are not kept yet in one process, which alone needs posenc and matplotlib.
"""

import base64
import io
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

from press import BookError, cache

FOLDER = "cards"
SIZE = 1200, 630  # pixels, which those who show links ask for


def write(site: Path, titles: Mapping[str, str], book: str) -> None:
    """Writes a card for each page, by its name without suffix, into the folder `cards` of its book."""
    store = cache.Store("cards")
    looks = cache.digest(files=[Path(__file__), cache.PACKAGE / "plot" / "_style.py"])
    keys = {name: cache.key(looks, title, book) for name, title in titles.items()}
    if missing := [*dict.fromkeys((titles[n], book) for n, key in keys.items() if store.get(key) is None)]:
        command = [sys.executable, "-m", __name__]
        done = subprocess.run(command, input=json.dumps(missing), capture_output=True, text=True)
        if done.returncode:
            raise BookError(f"the cards could not be drawn:\n{done.stderr}")
        for (title, _), drawn in zip(missing, json.loads(done.stdout), strict=True):
            store.put(cache.key(looks, title, book), drawn)
    for name, key in keys.items():
        target = site / FOLDER / f"{name}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(base64.b64decode(store.get(key) or ""))
    store.prune()


def drawn(wanted: Iterable[tuple[str, str]]) -> list[str]:
    """A PNG for each title and name of its book, in base64. All have the same curves: only the words are drawn anew."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    from posenc import sinusoidal_encoding
    from posenc.plot import _style

    fonts = ["DejaVu Sans", *filter(None, [_style.chinese_font()])]
    figure = Figure(figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0.02, 1, 0.4), frame_on=False, xticks=[], yticks=[], xmargin=0)
    positions = np.linspace(0, 60, 1200)
    for curve, color in zip(sinusoidal_encoding(positions, 8, base=40).T[::2], _style.COLORS, strict=False):
        axes.plot(positions, curve, color=color, linewidth=4)
    canvas.draw()
    curves = canvas.copy_from_bbox(figure.bbox)
    colors, cards = None, []
    for title, book in wanted:
        canvas.restore_region(curves)
        for height, words, size, weight, color in (
            (0.68, textwrap.fill(title, 28), 48, "bold", "#212121"),
            (0.90, book, 26, "normal", "#00695c"),
        ):
            text = figure.text(
                0.06, height, words, size=size, weight=weight, color=color, family=fonts, va="center"
            )
            figure.draw_artist(text)
            text.remove()
        image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        colors = colors or image.quantize(32)  # those of the first are those of all
        png = io.BytesIO()
        image.quantize(palette=colors, dither=Image.Dither.NONE).save(png, "PNG")
        cards.append(base64.b64encode(png.getvalue()).decode())
    return cards


if __name__ == "__main__":
    json.dump(drawn(json.load(sys.stdin)), sys.stdout)
