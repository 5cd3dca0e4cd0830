"""The blocks that a reader takes along: a method as plain code, with the name of its file and its licence.

They stand at the ends of chapters; what makes a block one of them is its first line:

    # rope.py: MIT licence, posenc authors
"""

from __future__ import annotations

import re

from .page import Page, Unit

_HEAD = re.compile(r"# (\w+)\.py(?:: MIT licence, posenc authors|：MIT 许可证，posenc 作者)\n")


def snippets(page: Page) -> dict[str, Unit]:
    """The blocks of a page that are to be taken along, by name.

    >>> from .page import parse
    >>> fence = "```python\\n# {}.py: MIT licence, posenc authors\\n```\\n"
    >>> list(snippets(parse(fence.format("rope") + fence.format("alibi"))))
    ['rope', 'alibi']
    """
    return {match[1]: unit for unit in page.blocks if (match := _HEAD.match(unit.code))}
