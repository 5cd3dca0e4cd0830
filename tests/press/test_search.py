"""What the build does for the search: tags of pages, another way to cut a query in Material's worker."""

import json
from pathlib import Path
from typing import Any

import pytest
from press import BookError, search
from press.cache import ROOT

from tests.node import computed


@pytest.mark.parametrize("worker", ["", "search(e){return e}", "[...fe(s,this.index)].join('* ')"])
def test_a_worker_that_works_in_another_way_stops_the_build(worker: str) -> None:
    with pytest.raises(BookError, match="in another way"):
        search.mended(worker)


def test_only_pages_have_tags_in_the_index_and_the_script_holds_the_same(site: Path) -> None:
    for book in ("en", "zh"):
        text = (site / book / "search" / "search_index.json").read_text(encoding="utf-8")
        tagged = [entry["location"] for entry in json.loads(text)["docs"] if entry.get("tags")]
        assert len(tagged) >= 12
        assert not [location for location in tagged if "#" in location]
        assert "&gt;&gt;&gt; " not in " ".join(
            e["text"] for e in json.loads(text)["docs"] if e["location"][:4] == "api/"
        )
        script = (site / book / "search" / "search_index.js").read_text(encoding="utf-8")
        assert script == f"var __index = {text}\n"


def test_a_query_is_cut_into_the_words_of_the_index() -> None:
    wanted = {
        "编码": ["编码"],  # not 编, although the index has it
        "位置编码": ["位置", "编码"],
        "可学习": ["学习"],  # 可 stands in no index
        "学习的编码": ["学习", "编码"],
        "旋": ["旋"],  # still being typed
        "位置旋": ["位置", "旋"],
        "旋转编码": ["编码"],
        "alibi_b": ["alibi_b", "\u2060alibi_b"],  # a word of the text, and a tag
        "": [],
    }
    index: dict[str, Any] = {word: {} for word in ("编", "编码", "位置", "学习")}
    cut = (ROOT / "docs" / "press" / "segmented.js").read_text(encoding="utf-8")
    cuts = "([queries, index]) => queries.map((query) => m.segmented(query, index))"
    found = computed(f"{cut}\nexport {{ segmented }};", cuts, [list(wanted), index])
    assert found == list(wanted.values())


def test_a_query_loses_the_words_that_no_index_has() -> None:
    wanted = {
        "the score of a turned key": "score turned key",
        "pads and a": "pads a",  # still being typed
        "A wrong shape": "wrong shape",
        "位置 the 编码": "位置 编码",
        "at 10000^(2i/d) and +m": "10000 (2i/d) m",  # no signs of lunr's
        "": "",
    }
    stops = "const lunr = { stopWordFilter: (word) => "
    stops += "['a', 'and', 'at', 'of', 'the'].includes(word) ? undefined : word };"
    script = (ROOT / "docs" / "press" / "segmented.js").read_text(encoding="utf-8")
    found = computed(f"{stops}{script}\nexport {{ meant }};", "(all) => all.map(m.meant)", list(wanted))
    assert found == list(wanted.values())


def test_three_words_of_a_name_bring_its_claim_or_exercise_before_the_chapters() -> None:
    claim, exercise = "claims.html#row-a", "exercises/begin.html#naive-b"
    wanted = [
        ["turned keys keep norms", claim, "Turned keys keep their norms", 1e12],
        ["turned keys keep lengths", claim, "Turned keys keep their norms", 1],  # three of four
        ["rows turned keys keep norms", exercise, "Turned keys keep their norms", 1e12],  # four of five
        ["turned keys keep norms", "rotary.html#norms", "Turned keys keep their norms", 1],  # a section
        ["turned keys", claim, "Turned keys keep their norms", 1],  # two words: for the chapters
        ["turned keys", claim, "The keys are turned", 1e12],  # but all that it says
        ["grid", exercise, "The grid", 1],
        ["the grid?", exercise, "The grid", 1e15],
        ["turned key codes", "rotary.html", "Turned key codes, and others", 1e15],  # a chapter's own name
        ["turned key codes", "rotary.html", "Codes", 1],
        ["位置 分不 清", claim, "位置\u200b也\u200b分不\u200b清", 1e12],
        ["位置 分不", claim, "位置\u200b也\u200b分不\u200b的", 1e12],
    ]
    stops = "const lunr = { tokenizer: { separator: /[\\s\u200b]+/ }, stopWordFilter: (word) => "
    stops += "word === 'the' || word === 'are' || word === 'their' ? undefined : word };"
    script = (ROOT / "docs" / "press" / "segmented.js").read_text(encoding="utf-8")
    named = """(all) => all.map(([query, location, title]) => {
      const words = m.meant(query).split(" "), inTitle = (word) => title.toLowerCase().includes(word);
      const matches = Object.fromEntries(words.filter(inTitle).map((word) => [word, { title: {} }]));
      return m.named(Object.fromEntries(words.map((word) => [word, inTitle(word)])), matches, { location, title });
    })"""
    found = computed(f"{stops}{script}\nexport {{ meant, named }};", named, [each[:3] for each in wanted])
    assert found == [each[3] for each in wanted]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_claim_is_found_by_its_own_words(language: str) -> None:
    text = (ROOT / "docs" / language / "claims.md").read_text(encoding="utf-8")
    _, *rows = search.with_claims([{"location": "claims.html#table", "boost": 0.2}], text)
    assert len(rows) == len({row["location"] for row in rows}) > 150
    assert not [row for row in rows if "$" in row["title"] or "`" in row["title"] or row["boost"] != 1]
    assert (language == "zh") == ("\u200b" in rows[0]["title"])
