"""What a page is besides HTML: a script of all its code, and a Markdown twin."""

import pytest
from press import BookError, exports, pages

PAGE = """---
title: T
description: d
---

# T {#t}

```python
x = 1
```

## In `code` and $x$ {#code}

<!--pytest-codeblocks:cont-->

```python
print(x)
```

<!--pytest-codeblocks:expected-output-->

```text
1
```

```python
from posenc import plot

plot.waveforms()
```

<!-- figure: Waves. -->
<!-- description: They rise. -->
<!-- holds: top(p1.solid) == 1 -->

[a](b.md) [lab](labs/c.md#d)
"""


def test_a_script_has_a_cell_for_each_block_and_shows_its_drawings() -> None:
    page = pages.parse(PAGE)
    code = exports.script(page, "en")
    head, _, rest = code.partition("# ///\n")
    assert head.endswith('dependencies = ["posenc[plot]POSENC-SOURCE"]\n')
    assert rest.startswith('"""All code of the chapter “T”, block by block.')
    assert "# %% T\nx = 1\n\nprint(x)\n" in code
    assert "# %% In code and x\nfrom posenc import plot\n" in code
    assert code.endswith('import matplotlib.pyplot as plt\n\nplt.show()\nplt.close("all")\n')
    assert exports.script(pages.parse("# T {#t}\n\nText.\n"), "en") == ""
    with pytest.raises(BookError, match="make no script: invalid syntax"):
        exports.script(pages.parse("```python\nx = = 1\n```\n"), "en")


def test_a_markdown_twin_says_what_its_page_says() -> None:
    twin = exports.markdown(pages.parse(PAGE), "zh")
    assert twin.startswith('---\ntitle: "T"\ndescription: "d"\n---\n\n# T {#t}\n')
    assert "<!--" not in twin
    assert "\n*图：Waves.* They rise.\n" in twin
    assert "[a](b.md) [lab](labs/c.md#d)" in twin
    assert "\n\n\n" not in twin
