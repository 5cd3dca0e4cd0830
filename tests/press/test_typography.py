"""Chinese typography: the book has no fault, the linter sees all of its Chinese, and each rule can fail."""

from pathlib import Path

import pytest
from press import made
from press.check import typography
from press.check.typography import Text, faults


def test_all_chinese_of_the_book_is_read() -> None:
    texts = typography.texts()
    paths = {text.path for text in texts}

    def kinds(path: str) -> set[str]:
        return {text.kind for text in texts if text.path == path}

    zh = typography.ROOT / "docs" / "zh"
    pages = [*zh.rglob("*.md"), *(typography.ROOT / "docs" / "labs").glob("*.py")]
    assert {path.relative_to(typography.ROOT).as_posix() for path in pages} <= paths
    assert {"README.md", "docs/home/index.md", "docs/theme/main.html", "docs/theme/404.html"} <= paths
    assert {"docs/sites/zh/mkdocs.yml", "posenc/plot/_style.py", "docs/press/exports.py"} <= paths
    assert kinds("docs/zh/order.md") == {"title", "prose", "caption", "code", "output"}
    assert kinds("docs/labs/masks.py") >= {"title", "prose", "caption"}
    # every line of a chapter with Chinese in it is looked at, but for that in formulas and comments
    source = made.filled((zh / "masks.md").read_text(encoding="utf-8"), zh, docstrings=False).split("\n")
    read = {text.line for text in texts if text.path == "docs/zh/masks.md"}
    missed = [line for n, line in enumerate(source, 1) if typography.HAN.search(line) and n not in read]
    assert [line for line in missed if "\\text" not in line] == []


GOOD = [
    "用 posenc 画图，宽度 $d$ 取 64，`dim` 是偶数。",
    "他说：“位置编码”就是这样（见下一章）——没有别的……",
    "旋转位置编码 (RoPE) 与角频率 $\\omega$ 的关系。",
    "GPT-2 (2019)、BERT 和 T5：12 层，100% 命中？对！",
    "**一句话。** 然后是正文，**重点**在此，**“引文”**。",
    "斜率 1/2：1000 个键，见 3.5 节，−1 到 +1。",
    "一个[链接](order.md#a)，*强调*的字。",
    "“狗咬人”和“人咬狗”，$x_t$、$y_t$ 都一样。",
    "底数 10000，公式 $131{,}072$，代码 `1,024`，形状 (2, 128, 64)。",
    "```text\n位置 131,072\n```",  # what a block prints stays as it prints it
]


@pytest.mark.parametrize("line", GOOD)
def test_good_chinese_passes(line: str) -> None:
    assert [fault for text in typography.of_markdown(line, "a.md") for fault in faults(text)] == []


BAD = [
    ("用posenc画图", "用 posenc 画图"),
    ("宽度$d$取 64", "宽度 $d$ 取 64"),
    ("调用`dim`即可", "调用 `dim` 即可"),
    ("角频率ω的值", "角频率 ω 的值"),
    ("共12层", "共 12 层"),
    ("满100%的分", "满 100% 的分"),
    ("**粗体**abc", "粗体 abc"),
    ("[链接](a.md)abc", "链接 abc"),
    ("你好,世界", "你好，世界"),
    ("取 $a$, 再取", "$a$，再取"),
    ("他说: 好", "他说：好"),
    ("一对: `x`", "一对：`x`"),
    ("先加;再乘", "先加；再乘"),
    ("是吗?", "是吗？"),
    ("真好!", "真好！"),
    ("到此为止.", "到此为止。"),
    ("编码(位置)相加", "编码（位置）相加"),
    ("旋转（RoPE）编码", "旋转 (RoPE) 编码"),
    ("旋转(RoPE)编码", "旋转 (RoPE) 编码"),
    ("结果： 64", "结果：64"),
    ("结果 ：64", "结果：64"),
    ("好，。", "好。"),
    ("他说“好。”。", "他说“好”。"),
    ("叫「词袋」的", "叫“词袋”的"),
    ('叫"词袋"的', "叫“词袋”的"),
    ("这个 “词袋” 的", "这个“词袋”的"),
    ("位置 编码", "位置编码"),
    ("共 131,072 个词元", "共 131072 个词元"),
    ("底数 1,000,000 时", "底数 1000000 时"),
    ("位置--编码", "位置——编码"),
    ("位置 —— 编码", "位置——编码"),
    ("如此...", "如此……"),
    ("共１２层", "共 12 层"),
    ("**预测：**哪个高", "**预测**：哪个高"),
    ("这叫**“词袋”**吗", "这叫“**词袋**”吗"),
]


@pytest.mark.parametrize(("line", "right"), BAD)
def test_bad_chinese_is_named_with_place_and_cure(line: str, right: str) -> None:
    found = [fault for text in typography.of_markdown(f"\n\n{line}\n", "a.md") for fault in faults(text)]
    assert found
    assert all(fault.startswith("a.md:3: '") for fault in found)
    # both rules and autocorrect may have a say; one of them gives the cure, in whole or in part
    cures = [fault.split("' should be '")[1].rpartition("' (")[0] for fault in found]
    assert any(cure in right or right in cure for cure in cures), found


PLACES = {
    "docs/zh/a.md": """\
---
title: 一章
description: 说明,有错
---

# 标题(有错) {#a}

段落,有错。

$$
x = \\text{若,} y
$$

!!! note "标题,有错"
    缩进的正文,有错。

    ```python
    # 注释,有错
    print(f"结果,{1}，有错")
    ```

    <!--pytest-codeblocks:expected-output-->

    ```text
    结果,1    好,错
    ```

<!-- 不是给读者看的,注释 -->

| 表 | 格,有错 |
|---|---|

```python
x = 1
```

<!-- figure: 图注,有错。 -->
<!-- description: 说明,有错。 -->
""",
    "docs/labs/b.py": """\
# ---
# title-zh: 实验,有错
# ---

# %% [markdown] lang="zh"
# # 标题 {#b}
#
# 正文,有错。

# %%
x = 1  # 注释,有错

# %% [markdown] lang="zh"
# 图：一条线,有错。
""",
    "docs/sites/zh/mkdocs.yml": "nav:\n  - 首页,有错: index.md\n",
    "docs/theme/main.html": "<p>{{ '第 %d 章,错 %d 章' if zh else 'x, y' }}</p>\n<p>正文,有错</p>\n",
    "posenc/plot/_style.py": '"""说明,不读。"""\nLABELS = {"a": ("b, c", "标签,有错")}\n',
    "docs/press/exports.py": 'A = ("x, y", "“{0}”一章,有错")\n',
    "README.md": "# Book, in English\n\n## 中文\n\n这是,有错。\n",
    "mkdocs.yml": "site_name: 书,有错\n",
}


@pytest.mark.parametrize("path", PLACES)
def test_a_fault_is_found_wherever_chinese_stands(tmp_path: Path, path: str) -> None:
    for name in ("README.md", "mkdocs.yml", "docs/sites/zh/mkdocs.yml", path):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(PLACES[path] if name == path else "", encoding="utf-8")
    texts = typography.texts(tmp_path)
    assert [typography.texts(tmp_path, only) for only in ([path], [])] == [texts, []]
    found = [fault for text in texts for fault in faults(text)]
    wrong = {number for number, line in enumerate(PLACES[path].split("\n"), 1) if "错" in line}
    assert {int(fault.split(":")[1]) for fault in found if "autocorrect" not in fault} == wrong, found
    assert all(fault.startswith(f"{path}:") for fault in found)


def test_values_are_not_words() -> None:
    assert not faults(Text("a.md", 1, "a `中文,code` 与 $\\text{若,}$ 无关", "prose"))
    assert not list(faults(Text("a.md", 1, "plain English, with a comma", "prose")))
