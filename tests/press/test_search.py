"""What the build does for the search: tags of pages, another way to cut a query in Material's worker."""

import json
from pathlib import Path

import pytest
from press import BookError, search


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
        script = (site / book / "search" / "search_index.js").read_text(encoding="utf-8")
        assert script == f"var __index = {text}\n"
