"""Chinese typography that a style sheet cannot give.

A line break in the source is no word break in Chinese: lines are joined without a space. What is stressed in
Latin letters, the title of a paper say, is marked as English, for italics instead of the dots of Chinese.
"""

from __future__ import annotations

import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

# Ideographs, Chinese punctuation and full-width forms, and the quotation marks and dashes that both use.
_CHINESE = "[\u2e80-\u303f\u3400-\u9fff\uf900-\ufaff\uff00-\uffef“”‘’…—]"
_INLINE = "(?:a|b|code|del|em|i|ins|mark|strong)"
_BREAK = re.compile(
    rf"(?<={_CHINESE})((?:</{_INLINE}>)*)[ \t]*\n[ \t]*((?:<{_INLINE}\b[^>]*>)*)(?={_CHINESE})"
)
_FOREIGN = re.compile(r"<em>(?=[^<]*[A-Za-z])([^<\u2e80-\u9fff]+)</em>")
_VERBATIM = re.compile(r"(<pre\b.*?</pre>|<svg\b.*?</svg>)", re.DOTALL)


@event_priority(50)  # before the search index takes the text
def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Mends the pages of the Chinese book."""
    return joined(marked(html)) if config.theme["language"] == "zh" else html


def joined(html: str) -> str:
    """The page without line breaks between Chinese characters; code and drawings stay as they are.

    >>> joined("<p>第一行，\\n第二<b>行</b>\\n<b>第</b>三行\\nend</p>")
    '<p>第一行，第二<b>行</b><b>第</b>三行\\nend</p>'
    >>> joined("<pre>第一\\n第二</pre>")
    '<pre>第一\\n第二</pre>'
    """
    pieces = _VERBATIM.split(html)
    return "".join(_BREAK.sub(r"\1\2", piece) if k % 2 == 0 else piece for k, piece in enumerate(pieces))


def marked(html: str) -> str:
    """The page with stressed words of another language marked as such.

    >>> marked("<em>YaRN: Window Extension</em>，<em>位置</em>，<em>RoPE 的</em>")
    '<em lang="en">YaRN: Window Extension</em>，<em>位置</em>，<em>RoPE 的</em>'
    """
    return _FOREIGN.sub(r'<em lang="en">\1</em>', html)
