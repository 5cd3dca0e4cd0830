"""What all pictures share in looks and words: colours for light and dark pages, two languages, a Chinese font."""

import contextlib
import functools
import unicodedata
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar

import matplotlib.pyplot as plt
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

Lang = Literal["en", "zh"]
Arguments = ParamSpec("Arguments")
Drawing = TypeVar("Drawing", Axes, Figure)

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
    "attention weight": ("attention weight", "注意力权重"),
    "audio": ("audio", "音频"),
    "base number": ("base {}", "基数 {}"),
    "below 0": ("below 0", "小于 0"),
    "bias": ("bias", "偏置"),
    "bias alone": ("bias alone", "只有偏置"),
    "biases": ("ALiBi, T5", "ALiBi 和 T5"),
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
    "error of the map": ("error of the map", "映射的误差"),
    "first rise": ("first rise after k = {}", "k = {} 之后首次回升"),
    "fitted on": ("fitted here", "拟合所用窗口"),
    "frames": ("frames", "视频帧"),
    "gain": ("gain", "增益"),
    "head number": ("head {}", "头 {}"),
    "hide keys": ("hide keys", "遮住键"),
    "highest score": ("highest score", "最高分"),
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
    "latest token": ("latest token read", "最新读入的词元"),
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
    "relative weight": ("weight / own weight", "权重 / 自身权重"),
    "right by place": ("right, counted by place", "右填充，按所在列计数"),
    "ring step": ("step of the ring", "环的第几步"),
    "ring time": ("time {}", "用时 {}"),
    "rotary": ("rotary", "旋转位置编码"),
    "row": ("row", "行"),
    "same index": ("frame of the same index", "序号相同的一帧"),
    "same vector": ("q = k", "q = k"),
    "scaled score": ("score / largest |score|", "分数 / 最大绝对值"),
    "scaled value": ("value / largest |value|", "取值 / 最大绝对值"),
    "score": ("score", "分数"),
    "score fall": ("score − own score", "分数 − 自身分数"),
    "scores": ("scores q · k / √head_dim", "分数 q · k / √head_dim"),
    "seconds": ("time t, seconds", "时间 t（秒）"),
    "sine": ("sine", "正弦"),
    "sinusoidal, learned": ("sinusoidal, learned", "正弦、可学习表"),
    "slope": ("slope {}", "斜率 {}"),
    "slot": ("slot of the cache", "缓存的格子"),
    "smallest distance": ("smallest distance of two codes", "编码间最小距离"),
    "softmax, mix": ("softmax, mix the values", "softmax，混合各个值"),
    "step": ("step {}", "第 {} 步"),
    "striped": ("striped", "条带"),
    "sum": ("sum", "相加结果"),
    "text length": ("length of the text", "文本长度"),
    "token embedding": ("token embedding", "词嵌入"),
    "token ids": ("token ids", "词元编号"),
    "training length": ("training length", "训练长度"),
    "turn": ("turn", "转角"),
    "turn q and k": ("turn q and k", "转动 q 和 k"),
    "value": ("value", "取值"),
    "wavelength": ("wavelength", "波长"),
    "weight": ("weight", "权重"),
    "width": ("width", "宽度"),
    "with content": ("with content", "加上内容"),
    "with output mask": ("with output mask", "有输出掩码"),
    "without output mask": ("without output mask", "无输出掩码"),
    "words": ("words", "词"),
    "year": ("year", "年份"),
    "zero": ("zero", "零"),
    "zigzag": ("zigzag", "折返"),
}

# Fonts with Chinese glyphs that systems ship; the first one found is used.
CHINESE_FONTS = (
    "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans CJK JP",
    "Source Han Sans SC", "WenQuanYi Micro Hei", "SimHei",
)  # fmt: skip


def word(key: str, lang: Lang) -> str:
    """The word for `key` in the language of the picture."""
    return WORDS[key][0 if lang == "en" else 1]


def picture(draw: Callable[Arguments, Drawing]) -> Callable[Arguments, Drawing]:
    """A picture, which refuses another `lang` or `ax` by name and finds a font for its Chinese words."""

    @functools.wraps(draw)
    def drawn(*args: Arguments.args, **options: Arguments.kwargs) -> Drawing:
        lang, ax = options.get("lang", "en"), options.get("ax")
        if lang not in ("en", "zh"):
            raise ValueError(f'lang must be "en" or "zh", got {lang!r}')
        if ax is not None and not isinstance(ax, Axes):
            raise TypeError(f"ax must be matplotlib Axes or None, got {type(ax).__name__}")
        result = draw(*args, **options)
        _find_font(result if isinstance(result, Figure) else result.get_figure())
        return result

    return drawn


def _find_font(figure: Any) -> None:
    """Chinese words get an installed font; matplotlib's settings stay as the caller has them."""
    if "sans-serif" not in plt.rcParams["font.family"]:
        return  # the caller has chosen a font
    texts = figure.findobj(Text)
    if any(wide(character) for text in texts for character in text.get_text()):
        found = chinese_font()
        for text in texts:
            family = text.get_fontfamily()
            if found is not None and found not in family:
                # Latin letters keep their font; matplotlib falls back glyph by glyph.
                text.set_fontfamily([*family, found])


def wide(character: str) -> bool:
    """Whether a character is as wide as it is high, as Chinese ones are."""
    return unicodedata.east_asian_width(character) in "WF"


def chinese_font() -> str | None:
    """The first of CHINESE_FONTS that is installed, None where none is."""
    return _known_font() or _installed_font()


def _known_font() -> str | None:
    known = {font.name for font in font_manager.fontManager.ttflist}
    return next((name for name in CHINESE_FONTS if name in known), None)


@functools.cache
def _installed_font() -> str | None:
    """Matplotlib keeps its list of fonts from its first run on: once, look for what was installed since."""
    known = {font.fname for font in font_manager.fontManager.ttflist}
    for path in set(font_manager.findSystemFonts()) - known:
        with contextlib.suppress(Exception):  # a broken font file is none of ours
            font_manager.fontManager.addfont(path)
    return _known_font()
