"""The answers as a Markdown table whose rows can be linked to, in either language."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from posenc.experiments.choosing.answers import FAR, TASKS, Answers

__all__ = ["scheme_table"]


def scheme_table(answers: Iterable[Answers], *, lang: Literal["en", "zh"] = "en") -> str:
    """A Markdown table with a row for each scheme, `#row-rotary`, and a column for each answer, `#column-shift`.

    The heads of the columns are links to what they ask, `#asks-shift`.

    Args:
        answers: of `compare_schemes`.
        lang: "en" or "zh", the language of its words.

    Returns:
        Markdown.

    Raises:
        ValueError: lang is neither "en" nor "zh".

    >>> from posenc.experiments.choosing import CANDIDATES, measure_scheme
    >>> table = scheme_table([measure_scheme(CANDIDATES["t5"])])
    >>> table.splitlines()[2].split(" | ")[:4]
    ['| [T5](relative.md#t5){#row-t5}', 'yes', 'yes', 'yes']

    Source: measured in this book, tables.md#table.
    """
    if lang not in _WORDS:
        raise ValueError(f'lang must be "en" or "zh", got {lang!r}')
    words = _WORDS[lang]
    asked = {name: "tasks" if name in TASKS else f"asks-{name}" for name in _HEAD}
    head = [f"[{words[name]}](#{asked[name]}){{#column-{name}}}" for name in _HEAD[1:]]
    rows = [[words["scheme"], *head], ["---"] * len(_HEAD)]
    rows += [_cells(each, words) for each in answers]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cells(found: Answers, words: dict[str, str]) -> list[str]:
    cells = {
        "scheme": f"[{words[found.name]}]({found.section}){{#row-{found.name.replace('_', '-')}}}",
        "shift": _yes(found.shift, words),
        "direction": _yes(found.direction, words),
        "cached": _yes(found.cached, words),
        "pairs": words[found.pairs],
        "fused": _yes(found.fused, words),
        "change": _yes(found.change, words),
        "norm": _yes(found.norm, words),
        "defined": words["any"] if found.defined == FAR else _count(found.defined),
        **{task: _held(found, which) for which, task in enumerate(TASKS)},
        "memory": _NONE if found.memory is None else _ratio(found.memory),
        "cost": _NONE if found.cost is None else _percent(found.cost).replace("%", words["%"]),
        "parameters": f"{found.parameters:,}",
        "enters": words[found.enters],
        "tokens": words[found.tokens],
    }
    return [cells[name] for name in _HEAD]


_NONE = "–"


def _yes(answer: bool | None, words: dict[str, str]) -> str:
    return _NONE if answer is None else words["yes" if answer else "no"]


def _count(number: int | None) -> str:
    return _NONE if number is None else f"{number:,}"


def _held(found: Answers, which: int) -> str:
    if found.held is None:
        return _NONE
    tuned = "" if found.tuned is None else f" → {found.tuned[which]}"
    return f"{found.held[which]}{'*' if found.longer and found.longer[which] else ''}{tuned}"


def _ratio(ratio: float) -> str:
    return f"{ratio:.1f}" if 0 < ratio < 10 else f"{ratio:,.0f}"


def _percent(share: float) -> str:
    if 0 < share < 1e-4:
        return "< 0.01%"
    return f"{100 * share:.{'2g' if share < 1 else '0f'}}%".replace("-", "−")


_HEAD = (
    *("scheme", "shift", "direction", "cached", "pairs", "fused", "change", "norm"),
    *("defined", *TASKS, "memory", "cost", "parameters", "enters", "tokens"),
)

_WORDS = {
    "en": {
        # the questions
        "scheme": "Scheme",
        "tokens": "Tokens",
        "enters": "Way in",
        "shift": "Shift",
        "norm": "Norm",
        "direction": "Direction",
        "parameters": "Parameters",
        "memory": "Memory",
        "cost": "Cost",
        "defined": "Defined",
        "back": "Back",
        "copy": "Copy",
        "sort": "Sort",
        "cached": "Cache",
        "pairs": "Pairs",
        "fused": "Fused",
        "change": "Change",
        # the answers
        "yes": "yes",
        "no": "no",
        "offsets": "by offset",
        "any": "any",
        "%": " %",
        "line": "line",
        "grid": "grid",
        "time": "time",
        "graph": "graph",
        "code": "code",
        "turn": "q and k",
        "score": "score",
        "mask": "mask",
        # the schemes
        "none": "causal mask alone",
        "none_logn": "log n on the scores",
        "integer": "integers",
        "scaled": "positions from 0 to 1",
        "one_hot": "one-hot",
        "sinusoidal": "sinusoidal",
        "sinusoidal_offset": "sinusoidal, random starts",
        "periodic": "sinusoidal, one period",
        "rbf": "bumps",
        "learned": "learned table",
        "learned_clamped": "learned, clamped",
        "learned_stretched": "learned, interpolated",
        "learned_offset": "learned, random starts",
        "rotary": "RoPE",
        "rotary_half": "RoPE on half the width",
        "rotary_proportional": "proportional RoPE",
        "rotary_large_base": "RoPE, trained with a large base",
        "rotary_matched": "RoPE, base by the trained length",
        "rotary_base": "RoPE, base enlarged",
        "rotary_linear": "RoPE, linear",
        "rotary_ntk": "RoPE, NTK",
        "rotary_dynamic": "RoPE, dynamic NTK",
        "rotary_yarn": "RoPE, YaRN",
        "rotary_llama3": "RoPE, Llama 3",
        "rotary_longrope": "RoPE, LongRoPE",
        "rotary_logn": "RoPE, log n on the scores",
        "rotary_dropped": "RoPE, dropped after training",
        "rotary_alternating": "RoPE in every other layer",
        "xpos": "xPos",
        "xpos_near": "xPos, fading within the trained length",
        "alibi": "ALiBi",
        "alibi_short": "ALiBi, slopes by the trained length",
        "table": "a number for each offset",
        "t5": "T5",
        "kerple": "KERPLE",
        "fire": "FIRE",
        "shaw": "Shaw",
        "forget_gate": "forget gate",
        "cope": "CoPE",
        "window": "RoPE in a sliding window",
        "rotary_window": "RoPE, window after training",
        "rotary_sinks": "RoPE, window and sinks",
        "hybrid": "RoPE in windows, full layers without",
        "grid_code": "grid code",
        "grid_table": "learned table of a grid",
        "rotary_axial": "axial RoPE",
        "rotary_mixed": "mixed RoPE",
        "mrope": "M-RoPE",
        "time_code": "code of times",
        "rotary_time": "RoPE in seconds",
        "calendar": "code of a calendar",
        "anchors": "distances to anchors",
        "laplacian": "eigenvectors",
        "walks": "random walks",
        "graph_distance": "distance as a bias",
    },
    "zh": {
        "scheme": "方案",
        "tokens": "词元排成",
        "enters": "加在",
        "shift": "平移不变",
        "norm": "模长不变",
        "direction": "分得清左右",
        "parameters": "参数",
        "memory": "内存",
        "cost": "计算",
        "defined": "定义到",
        "back": "回看",
        "copy": "复制",
        "sort": "排序",
        "cached": "可缓存",
        "pairs": "逐对的数",
        "fused": "可融合",
        "change": "变长要改",
        "yes": "是",
        "no": "否",
        "offsets": "按偏移",
        "any": "任意",
        "%": "%",
        "line": "线",
        "grid": "网格",
        "time": "时间",
        "graph": "图",
        "code": "输入",
        "turn": "查询和键",
        "score": "分数",
        "mask": "掩码",
        "none": "只有因果掩码",
        "none_logn": "分数乘以 log n",
        "integer": "整数",
        "scaled": "0 到 1 的位置",
        "one_hot": "独热",
        "sinusoidal": "正弦位置编码",
        "sinusoidal_offset": "正弦，随机起点",
        "periodic": "正弦，同一周期",
        "rbf": "鼓包",
        "learned": "可学习表",
        "learned_clamped": "可学习表，钳位",
        "learned_stretched": "可学习表，插值",
        "learned_offset": "可学习表，随机起点",
        "rotary": "RoPE（旋转）",
        "rotary_half": "RoPE，只转一半宽度",
        "rotary_proportional": "RoPE，只转快的几对",
        "rotary_large_base": "RoPE，用大底数训练",
        "rotary_matched": "RoPE，底数按训练长度",
        "rotary_base": "RoPE，改大底数",
        "rotary_linear": "RoPE，线性",
        "rotary_ntk": "RoPE，NTK",
        "rotary_dynamic": "RoPE，动态 NTK",
        "rotary_yarn": "RoPE，YaRN",
        "rotary_llama3": "RoPE，Llama 3",
        "rotary_longrope": "RoPE，LongRoPE",
        "rotary_logn": "RoPE，分数乘以 log n",
        "rotary_dropped": "RoPE，训练后去掉",
        "rotary_alternating": "RoPE，隔层使用",
        "xpos": "xPos（带衰减的旋转）",
        "xpos_near": "xPos，训练长度内就衰减",
        "alibi": "ALiBi（线性偏置）",
        "alibi_short": "ALiBi，斜率按训练长度",
        "table": "每个偏移一个数",
        "t5": "T5（分桶）",
        "kerple": "KERPLE（两个数的公式）",
        "fire": "FIRE（小网络）",
        "shaw": "Shaw（偏移的向量）",
        "forget_gate": "遗忘门",
        "cope": "CoPE（按内容计数）",
        "window": "RoPE，滑动窗口",
        "rotary_window": "RoPE，训练后加窗口",
        "rotary_sinks": "RoPE，窗口加注意力汇",
        "hybrid": "窗口层用 RoPE，全局层不用",
        "grid_code": "网格的编码",
        "grid_table": "网格的可学习表",
        "rotary_axial": "轴向 RoPE",
        "rotary_mixed": "混合 RoPE",
        "mrope": "M-RoPE（多轴）",
        "time_code": "时间的编码",
        "rotary_time": "以秒转动的 RoPE",
        "calendar": "日历的编码",
        "anchors": "到锚点的距离",
        "laplacian": "特征向量",
        "walks": "随机游走",
        "graph_distance": "距离作偏置",
    },
}
