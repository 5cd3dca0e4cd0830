"""What a search finds first: the pages that are about the word, in Chinese as in English.

A chapter names in its front matter the words by which it is looked up: `tags: [RoPE, rotary]`. They are
single words, so that 因果掩码 is found by its parts, and each belongs to one page, which Material's search
puts before all others. Here

- they are words for jieba, too (chinese.py), which cuts Chinese text for the index, and would make two of 分桶;
- a name, `rope_theta`, is one word, and as a tag it begins with NAME, which segmented.js puts before a query: a search
  for `rope` would rank the page above those on RoPE;
- they stay with the page: Material gives them to each of its sections as well, which would all be found;
- Material's search worker gets another way to cut a query (segmented.js): its own never looks at the last
  character, and gives up at a stop word, so that 编码 finds whatever begins with 编, and 可学习 nothing;
- a query loses the words that no index has, "a", "the", but the last one, which may still be typed: as beginnings of
  words they found whatever has a tag that begins with an a;
- each row of the table of claims is an entry of its own; it comes before the chapters, and so does an exercise, where
  most words of its name have been entered (segmented.js);
- the index is also written as a script: a page opened from disk may not fetch a file;
- beside it lie the words of the other book and their pages (elsewhere.js): where this book has nothing, book.js
  leads there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from press import BookError, chinese, labs, pages
from press.formulas import to_mathml, to_text
from press.languages import LANGUAGES
from press.material import CUT, HAN, IDS, QUERY, SCORE
from press.said import rows_of

if TYPE_CHECKING:
    from press.book import Book

NAME = "\u2060"  # shows nothing
INDEX = "search/search_index.json"
ELSEWHERE = "search/elsewhere.js"
_NAMED = (
    r"matchData:\1})=>{let \2=this.map.get(\3);\4"
    r"score:\5*(1+\6(\7,2))*named(\8,\1.metadata,this.map.get(\3)),terms:\8}"
)
_FORMULA = re.compile(r"\$([^$]+)\$")


def read_index(site: Path) -> dict[str, Any]:
    """The search index that Material has written."""
    found: dict[str, Any] = json.loads((site / INDEX).read_text(encoding="utf-8"))
    return found


def write_index(site: Path, entries: list[dict[str, Any]]) -> None:
    """Write the index with these entries, the tags of pages taken from their sections; as a script, too."""
    index = read_index(site) | {"docs": [tagged(entry) for entry in entries]}
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    (site / INDEX).write_text(text, encoding="utf-8")
    (site / INDEX).with_suffix(".js").write_text(f"var __index = {text}\n", encoding="utf-8")


def write_elsewhere(site: Path, book: Book) -> None:
    """Write what the pages of the other book are called and looked up by: their address, title and tags."""
    for language in LANGUAGES.keys() - {book.language}:
        heads = {
            name: pages.front_matter(labs.text(folder / name))[0]
            for folder in [book.folder.parent / language]
            for name in book.contents
            # what a name of the reference is called, its chapter is called, too
            if not name.startswith("api/") and labs.source(folder / name).is_file()
        }
        found = {
            "book": language,
            "pages": [
                [f"{name.removesuffix('.md')}.html", str(head["title"]), *map(str, head.get("tags", []))]
                for name, head in heads.items()
                if "title" in head
            ],
        }
        text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
        (site / ELSEWHERE).write_text(f"var __elsewhere = {text}\n", encoding="utf-8")


def wanted(name: str) -> bool:
    """Whether a file of lunr-languages serves one of our languages: they are large, and have licences of their own.

    >>> [wanted(f"assets/javascripts/lunr/{name}.js") for name in ("min/lunr.zh.min", "min/lunr.ja.min", "tinyseg")]
    [True, False, False]
    """
    return name.endswith(("lunr.stemmer.support.min.js", *(f"lunr.{each}.min.js" for each in LANGUAGES)))


def mend_worker(site: Path) -> None:
    """Change the worker that reads the index, in the folder that both books share."""
    (worker,) = site.glob("assets/javascripts/workers/search.*.min.js")
    worker.write_text(mended(worker.read_text(encoding="utf-8")), encoding="utf-8")


def with_claims(entries: Iterable[dict[str, Any]], claims: str) -> Iterator[dict[str, Any]]:
    """The entries of a page, with one more for each row of the table of claims: it is found by its own words.

    >>> table, row = with_claims([{"location": "claims.html#table"}], '| ["`a` is $2i$"](a.md){#row-b} | false |')
    >>> row
    {'location': 'claims.html#row-b', 'title': 'a is 2i', 'text': 'false', 'boost': 1}
    """
    for entry in entries:
        yield entry
        if entry["location"] == "claims.html#table":
            for saying, (row, verdict) in rows_of(claims).items():
                title = _FORMULA.sub(lambda tex: to_text(to_mathml(tex[1], False)), saying).replace("`", "")
                found = {"location": f"claims.html#{row}", "title": title, "text": verdict}
                yield entry | {name: chinese.cut(text) for name, text in found.items()} | {"boost": 1}


def tagged(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of the index; of a page only the page itself has tags, not its sections.

    >>> tagged({"location": "a.html#b", "text": "", "tags": ["c"]})
    {'location': 'a.html#b', 'text': ''}
    >>> tagged({"location": "a.html", "tags": ["RoPE", "rope_theta"]})["tags"]
    ['RoPE', '\\u2060rope_theta']
    """
    kept = {key: value for key, value in entry.items() if key != "tags"}
    tags = [NAME * ("_" in tag) + tag for tag in entry.get("tags", ()) if "#" not in entry["location"]]
    return kept | ({"tags": tags} if tags else {})


def mended(worker: str) -> str:
    r"""Material's search worker with our way to cut a query in Chinese, and with lunr's names of states apart.

    lunr joins a letter and the number of the state to which it leads: "1" to 23 and "12" to 3 looked the same, and
    a search for GPT-2 found a word that is in no page, and failed.

    >>> worker = r'(e=e.replace("\\p{sc=Han}+";[...fe(s,this.index.invertedIndex)].join("* ");'
    >>> worker += "matchData:u})=>{let c=this.map.get(o);f;score:a*(1+K(g,2)),terms:f}"
    >>> print(mended(worker + "o=this.edges[s];e=e+s+o.id}").rpartition("\n")[2].partition(";matchData")[0])
    (e=meant(e).replace("\\p{sc=Han}+|\\w*_\\w*";segmented(s,this.index.invertedIndex).join(" ")
    >>> mended(worker + "o=this.edges[s];e=e+s+o.id}")[-20:]
    's[s];e=e+s+o.id+","}'
    """
    cut = Path(__file__).with_name("segmented.js").read_text(encoding="utf-8")
    for words, ours, what in (
        (CUT, r'segmented(\1,this.index.invertedIndex).join(" ")', "cuts a query in Chinese"),
        (HAN, r'"\\\\p{sc=Han}+|\\\\w*_\\\\w*"', "finds what is Chinese in a query"),
        (IDS, r'\1+","}', "names the states of its index"),
        (QUERY, "(e=meant(e).replace(", "takes a query"),
        (SCORE, _NAMED, "ranks what it finds"),
    ):
        worker, count = re.subn(words, ours, worker)
        if count != 1:
            raise BookError(f"Material's search {what} in another way than search.py knows")
    return cut + worker
