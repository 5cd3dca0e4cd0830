"""What all pictures share: size, colours that hold on light and dark pages, words in two languages."""

from __future__ import annotations

import contextlib
import math
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.ticker import NullFormatter

Lang = Literal["en", "zh"]

# Narrow enough that labels stay readable when a phone scales the picture down.
WIDTH = 4.8

# At least 3:1 against both white and the dark page; every use pairs a colour with a line style or a label.
BLUE, ORANGE, GREEN, PURPLE, GOLD, GREY = "#0072b2", "#d55e00", "#008a65", "#b0578d", "#a07800", "#767676"
COLORS = (BLUE, ORANGE, GREEN, PURPLE, GOLD, GREY)
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P")

# Words that pictures use, one place for both languages.
WORDS: dict[str, tuple[str, str]] = {
    "Gaussian": ("Gaussian", "高斯"),
    "above 0": ("above 0", "大于 0"),
    "accuracy": ("accuracy", "准确率"),
    "add a bias": ("add a bias", "加偏置"),
    "add a code": ("add a code", "加位置编码"),
    "all / all": ("all losses / all places", "全部损失 / 全部位置"),
    "attention weight": ("attention weight", "注意力权重"),
    "audio": ("audio", "音频"),
    "base number": ("base {}", "基数 {}"),
    "below 0": ("below 0", "小于 0"),
    "bias": ("bias", "偏置"),
    "bias alone": ("bias alone", "只有偏置"),
    "biases": ("ALiBi, T5", "ALiBi 和 T5"),
    "bidirectional": ("bidirectional", "双向"),
    "bucket": ("bucket", "桶"),
    "causal": ("causal", "因果"),
    "causal mask": ("causal mask", "因果掩码"),
    "chance": ("chance", "随机猜测"),
    "change": ("change since the start", "与起点之差"),
    "code": ("code", "编码"),
    "code distance": ("distance of the codes", "编码距离"),
    "column": ("column", "列"),
    "content score": ("content score", "内容分数"),
    "contiguous": ("contiguous", "连续"),
    "cosine": ("cosine", "余弦"),
    "dimension": ("dimension", "维度"),
    "distance": ("distance t − u", "距离 t − u"),
    "energy share": ("share of the energy", "位置占能量的份额"),
    "entropy": ("entropy, nats", "熵（奈特）"),
    "equal weights": ("equal weights", "权重相等"),
    "error of the map": ("error of the map", "映射的误差"),
    "first rise": ("first rise after k = {}", "k = {} 之后首次回升"),
    "fitted on": ("fitted here", "拟合所用窗口"),
    "frames": ("frames", "视频帧"),
    "gain": ("gain", "增益"),
    "head number": ("head {}", "头 {}"),
    "hide keys": ("hide keys", "遮住键"),
    "highest score": ("highest score", "最高分"),
    "how far back": ("how far back", "往回数多远"),
    "in every layer": ("in every layer", "每层都做"),
    "independent": ("q and k independent", "q 与 k 独立"),
    "input": ("input", "输入"),
    "join heads": ("join the heads", "把各头拼起来"),
    "kernel share": ("K(k) / K(0)", "K(k) / K(0)"),
    "key": ("key", "键"),
    "key distance": ("distance of the key", "键的距离"),
    "key mask": ("key mask", "键填充掩码"),
    "key position": ("key position u", "键的位置 u"),
    "largest": ("largest", "最大"),
    "largest change": ("largest change of a real output", "真实输出的最大变化"),
    "layer number": ("layer {}", "第 {} 层"),
    "leak": ("attention on pads", "落在填充上的注意力"),
    "leak in": ("in", "流入"),
    "leak out": ("out", "流出"),
    "left by place": ("left, counted by place", "左填充，按所在列计数"),
    "left from mask": ("left, counted from the mask", "左填充，按掩码计数"),
    "loss": ("loss", "损失"),
    "make q, k, v": ("make q, k, v", "算出 q、k、v"),
    "mean": ("mean", "均值"),
    "mean cosine": ("mean cosine of all pairs", "各频率对余弦的均值"),
    "mean score": ("mean score ± standard deviation", "平均分数 ± 标准差"),
    "met in training": ("met in training", "训练中见过"),
    "nearest frame": ("nearest frame", "最近的一帧"),
    "never met": ("never met", "从未见过"),
    "no mask": ("no mask", "无掩码"),
    "number of keys": ("number of keys n", "键的个数 n"),
    "number of pads": ("number of pads", "填充的个数"),
    "number of positions": ("number of positions", "位置数"),
    "offset": ("offset k", "偏移 k"),
    "once": ("once", "只做一次"),
    "one period": ("one period", "一个周期"),
    "one step": ("one step", "相邻一步"),
    "other position": ("position u", "位置 u"),
    "pair": ("pair", "频率对"),
    "peak": ("peak", "峰值"),
    "perplexity": ("perplexity", "困惑度"),
    "position": ("position t", "位置 t"),
    "position code": ("position code", "位置编码"),
    "query": ("query", "查询"),
    "query position": ("query position t", "查询的位置 t"),
    "rank": ("rank", "进程编号"),
    "read right": ("share read correctly", "读对的比例"),
    "real / all": ("real losses / all places", "真实损失 / 全部位置"),
    "real / real": ("real losses / real tokens", "真实损失 / 真实词元数"),
    "relative weight": ("weight / own weight", "权重 / 自身权重"),
    "right by place": ("right, counted by place", "右填充，按所在列计数"),
    "ring step": ("step of the ring", "环的第几步"),
    "ring time": ("time {}", "用时 {}"),
    "rotary": ("rotary", "旋转位置编码"),
    "row": ("row", "行"),
    "row number": ("row of the table", "表的行"),
    "same index": ("frame of the same index", "序号相同的一帧"),
    "same vector": ("q = k", "q = k"),
    "scaled score": ("score / largest |score|", "分数 / 最大绝对值"),
    "scaled value": ("value / largest |value|", "取值 / 最大绝对值"),
    "score": ("score", "分数"),
    "score fall": ("score − own score", "分数 − 自身分数"),
    "score needed": ("score needed", "所需分数"),
    "scores": ("scores q · k / √head_dim", "分数 q · k / √head_dim"),
    "seconds": ("time t, seconds", "时间 t（秒）"),
    "share of training": ("share of training texts", "占训练文本的比例"),
    "similarity": ("dot product / largest", "点积 / 最大值"),
    "sine": ("sine", "正弦"),
    "sinusoidal, learned": ("sinusoidal, learned", "正弦、可学习表"),
    "slope": ("slope {}", "斜率 {}"),
    "smallest distance": ("smallest distance of two codes", "编码间最小距离"),
    "softmax, mix": ("softmax, mix the values", "softmax，混合各个值"),
    "speed ratio": ("new frequency / old", "新频率 / 旧频率"),
    "step": ("step {}", "第 {} 步"),
    "striped": ("striped", "条带"),
    "sum": ("sum", "相加结果"),
    "text length": ("length of the text", "文本长度"),
    "token embedding": ("token embedding", "词嵌入"),
    "token ids": ("token ids", "词元编号"),
    "training length": ("training length", "训练长度"),
    "training step": ("training step", "训练步数"),
    "turn": ("turn", "转角"),
    "turn q and k": ("turn q and k", "转动 q 和 k"),
    "value": ("value", "取值"),
    "wavelength": ("wavelength", "波长"),
    "wavelength before": ("wavelength before scaling", "缩放前的波长"),
    "weight": ("weight", "权重"),
    "width": ("width", "宽度"),
    "with content": ("with content", "加上内容"),
    "with output mask": ("with output mask", "有输出掩码"),
    "without output mask": ("without output mask", "无输出掩码"),
    "words": ("words", "词"),
    "zero": ("zero", "零"),
    "zigzag": ("zigzag", "折返"),
}

# Fonts with Chinese glyphs that systems ship; the first one found is used.
CHINESE_FONTS = (
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "SimHei",
)


def word(key: str, lang: Lang) -> str:
    """The word for `key` in the language of the picture."""
    return WORDS[key][0 if lang == "en" else 1]


def chinese_font() -> str | None:
    """The first of CHINESE_FONTS that is installed, None where none is."""
    return _known_font() or _installed_font()


def _known_font() -> str | None:
    known = {font.name for font in font_manager.fontManager.ttflist}
    return next((name for name in CHINESE_FONTS if name in known), None)


@cache
def _installed_font() -> str | None:
    """Matplotlib keeps its list of fonts from its first run on: once, look for what was installed since."""
    known = {font.fname for font in font_manager.fontManager.ttflist}
    for path in set(font_manager.findSystemFonts()) - known:
        with contextlib.suppress(Exception):  # a broken font file is none of ours
            font_manager.fontManager.addfont(path)
    return _known_font()


def check_lang(lang: str, ax: Axes | None = None) -> None:
    """ValueError unless lang is "en" or "zh"; for Chinese, give matplotlib a font that has it.

    TypeError unless ax is axes or None.

    The font stays in rcParams["font.family"], so that labels which the caller adds afterwards show as well.
    Axes that the caller has made before know nothing of it yet: pass them as `ax`.
    """
    if lang not in ("en", "zh"):
        raise ValueError(f'lang must be "en" or "zh", got {lang!r}')
    if ax is not None and not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib Axes or None, got {type(ax).__name__}")
    if lang == "zh":
        use_chinese_font(ax)


def use_chinese_font(ax: Axes | None) -> None:
    """A font for Chinese labels, whatever the language of the picture: see `check_lang`."""
    family = list(plt.rcParams["font.family"])
    found = chinese_font()
    if found is not None and found not in family and "sans-serif" in family:
        # Latin letters keep their font; matplotlib falls back glyph by glyph.
        plt.rcParams["font.family"] = [*family, found]
    if ax is not None:
        for text in ax.findobj(Text):
            text.set_fontfamily(plt.rcParams["font.family"])


def has_chinese(labels: Sequence[str]) -> bool:
    """Whether a label holds a character of full width."""
    return any(unicodedata.east_asian_width(character) in "WF" for label in labels for character in label)


def new_figure(
    height: float, *, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure of the book's width, `height` inches high, and its axes in reading order."""
    figure, axes = plt.subplots(
        rows, columns, figsize=(WIDTH, height), squeeze=False, layout="constrained", **options
    )
    return figure, list(axes.flat)


def given_or_new(ax: Axes | None, height: float) -> Axes:
    """The axes of the caller, or those of a new figure."""
    return new_figure(height)[1][0] if ax is None else ax


def new_panels(
    n: int, margin: float, height: float, *, square: bool = False, **options: Any
) -> tuple[Figure, list[Axes], Axes | list[Axes]]:
    """A figure with n panels in two columns, or one alone; the panels, and where a bar of colours goes.

    A row is `height` inches high, or, if its panels are square, as high as they are with all of them that
    wide. The bar goes into the cell that an odd number leaves, or else beside all.
    """
    columns = min(2, n)
    rows = -(-n // columns)
    side = height / columns if square else height
    figure, axes = new_figure(margin + side * rows, rows=rows, columns=columns, **options)
    for ax in axes[n:]:
        ax.set_axis_off()
    return figure, axes[:n], axes[-1] if n < len(axes) else axes


def even_scale(*tables: np.ndarray) -> float:
    """The largest absolute value of all tables, for colours from minus that to that; 1 if all are 0."""
    return max(float(np.abs(table).max(initial=0)) for table in tables) or 1.0


def signed_map(ax: Axes, table: np.ndarray, most: float) -> AxesImage:
    """A table in colours from blue at −most to red at most; white is 0."""
    return ax.imshow(table, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto", interpolation="none")


def framed(ax: Axes) -> Axes:
    """With a box around the data: a map has light cells, which end nowhere on a light page."""
    ax.spines[:].set_visible(True)
    return ax


def shade(ax: Axes, left: float, right: float, label: str | None = None) -> None:
    """A grey field from left to right. Its edges are drawn, for the field is fainter than a line may be."""
    ax.axvspan(left, right, facecolor=to_rgba(GREY, 0.2), edgecolor=GREY, linewidth=0.8, label=label)


def legend_above(ax: Axes) -> Legend:
    """A legend over the axes, where it covers nothing, in as many columns as the width of the book allows."""
    labels = ax.get_legend_handles_labels()[1]
    # In em, which for 10 pt are 7.2 to the inch: the letters, and the handle with the gaps beside it.
    ems = [sum(1 if unicodedata.east_asian_width(c) in "WF" else 0.54 for c in label) + 4 for label in labels]
    columns = len(labels)
    while columns > 1 and sum(max(column) for column in np.array_split(ems, columns)) > 7.2 * WIDTH:
        columns -= 1
    return ax.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1), ncols=max(columns, 1), frameon=False, fontsize=10,
        handlelength=2.2, columnspacing=1.2, borderaxespad=0.3,
    )  # fmt: skip


def color_bar(
    image: ScalarMappable,
    axes: Axes | Sequence[Axes],
    label: str,
    ticks: Sequence[float],
    shrink: float = 0.9,
) -> Colorbar:
    """What the colours of a map mean: a bar with a name and a few numbers, on the right of the axes.

    In axes without an axis, a cell of a grid that no map needs, it lies instead.
    """
    figure = (axes if isinstance(axes, Axes) else axes[0]).figure
    if isinstance(axes, Axes) and not axes.axison:
        place = axes.inset_axes((0.05, 0.5, 0.9, 0.08))
        bar = figure.colorbar(image, cax=place, orientation="horizontal", label=label)
    else:
        bar = figure.colorbar(image, ax=axes, label=label, shrink=shrink, aspect=25, pad=0.02)
    if bar.solids is not None:
        bar.solids.set_rasterized(True)  # one picture, and not a path for each shade
    bar.set_ticks(list(ticks), labels=[f"{tick:.3g}".replace("-", "−") for tick in ticks])
    return bar


def on_cell(image: AxesImage, value: float) -> str:
    """White or a black that no page turns light, whichever can be read better in a cell of a map."""
    rgb = np.asarray(image.to_rgba(np.array([value])))[0, :3]
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    luminance = linear @ (0.2126, 0.7152, 0.0722)
    # The contrast with white is 1.05 / (luminance + 0.05), that with black (luminance + 0.05) / 0.05 (WCAG).
    return "white" if (luminance + 0.05) ** 2 < 1.05 * 0.05 else "#010101"


def quiet(ax: Axes) -> Axes:
    """Without the box around the data: only the two axes that carry numbers."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def number(value: float) -> str:
    """A short text for a wavelength or a count: 6.28, 62.8, 628, 60 611."""
    if not math.isfinite(value):
        return str(value)
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{digits}f}".replace(",", " ")


def plain_ticks(*axes: Axis) -> None:
    """Powers of ten as plain numbers: matplotlib would set them as formulas, which a Chinese font lacks."""
    for axis in axes:
        axis.set_major_formatter(lambda x, _: f"{x:,.0f}".replace(",", " ") if x >= 1 else f"{x:g}")
        axis.set_minor_formatter(NullFormatter())
