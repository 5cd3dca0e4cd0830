"""What others do not know of Chinese: a line break is no word break, emphasis is a dot below a character.

Titles of papers, which Markdown writes as emphasis too, are in English: marked so, they stay in italics, and
a screen reader can say them. jieba, which cuts Chinese text for the search, learns the words of the book.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from press.pages import CHINESE

if TYPE_CHECKING:
    from press.book import Book

# Ideographs, Chinese punctuation and full-width forms, and the quotation marks and dashes that both use.
_CHINESE = "[\u2e80-\u303f\u3400-\u9fff\uf900-\ufaff\uff00-\uffef“”‘’…—]"
_INLINE = "(?:a|b|code|del|em|i|ins|mark|span|strong)"
_GAP = rf"((?:</{_INLINE}>)*)[ \t]*\n[ \t]*((?:<{_INLINE}\b[^>]*>)*)"
# Between Chinese characters; and beside a Chinese mark, which has its own space, whatever stands there.
_BREAK = re.compile(
    rf"(?<={_CHINESE}){_GAP}(?={_CHINESE})|(?<=[，。：；？！、（）]){_GAP}(?=[^\s<])|(?<=[^\s>]){_GAP}(?=[，。：；？！、）])"
)
_VERBATIM = re.compile(r"(<pre\b.*?</pre>|<svg\b.*?</svg>)", re.DOTALL)


def mended(html: str) -> str:
    """A page of the Chinese book."""
    return in_english(joined(html))


def joined(html: str) -> str:
    """The page without line breaks between Chinese characters; code and drawings stay as they are.

    >>> joined("<p>第一行，\\n第二<b>行</b>\\n<b>第</b>三行\\nend</p>")
    '<p>第一行，第二<b>行</b><b>第</b>三行\\nend</p>'
    >>> joined("<p>用 posenc，\\nNumPy 也用 <code>a</code>\\n。")
    '<p>用 posenc，NumPy 也用 <code>a</code>。'
    >>> joined("<pre>第一\\n第二</pre>")
    '<pre>第一\\n第二</pre>'
    """
    pieces = _VERBATIM.split(html)
    return "".join(_BREAK.sub(_kept, piece) if k % 2 == 0 else piece for k, piece in enumerate(pieces))


def _kept(gap: re.Match[str]) -> str:
    """The tags around a break."""
    return "".join(group or "" for group in gap.groups())


def in_english(html: str) -> str:
    """The page with what is emphasised and has no Chinese in it marked as English.

    >>> in_english("<p><em>Attention Is All You Need</em>，<em>重点</em></p>")
    '<p><em lang="en">Attention Is All You Need</em>，<em>重点</em></p>'
    """
    return re.sub(
        r"<em>(?=[^<]*[A-Za-z]{2}[^<]*</em>)(?![^<]*[\u3400-\u9fff][^<]*</em>)", '<em lang="en">', html
    )


def cut(text: str) -> str:
    """A text whose Chinese is cut into words, as Material's search cuts it."""
    if not CHINESE.search(text):
        return text
    import jieba  # it takes its time

    between = "\u200b"
    words = re.compile("[\u3400-\u9fff]+")
    return words.sub(lambda run: f"{between}{between.join(jieba.cut(run[0]))}{between}", text).strip(between)


def learn_words(book: Book, names: Iterable[str]) -> None:
    """Teach jieba the words by which pages are looked up."""
    for name in names:
        if name.endswith(".md"):
            for tag in book.meta(name).get("tags", []):
                if CHINESE.search(str(tag)):
                    import jieba  # it takes its time

                    jieba.add_word(str(tag))
