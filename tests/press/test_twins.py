"""What names a section of which only one language has changed."""

from pathlib import Path

import pytest
from press import markup, pages
from press.book import Book
from press.check import pages as checks
from press.check import planted, twins


def book(language: str, old: str = "", new: str = "") -> dict[str, pages.Page]:
    assert old in planted.GOOD[language]
    text = planted.GOOD[language].replace(old, new, 1)
    return {"a.md": pages.parse(text, Path(f"docs/{language}/a.md"))}


SAME = {"en": book("en"), "zh": book("zh")}
(HEADING,) = [heading for heading in SAME["en"]["a.md"].headings if heading.id == "one"]
ENGLISH = (f"{HEADING.text} {{#one}}\n", f"{HEADING.text} {{#one}}\n\nOne more sentence.\n")
(HEADING_ZH,) = [heading for heading in SAME["zh"]["a.md"].headings if heading.id == "one"]
CHINESE = (f"{HEADING_ZH.text} {{#one}}\n", f"{HEADING_ZH.text} {{#one}}\n\n再说一句。\n")


def test_a_change_in_one_language_is_named_until_the_other_follows_or_somebody_confirms_it() -> None:
    confirmed = twins.confirm(SAME, {})
    changed = {"en": book("en", *ENGLISH), "zh": SAME["zh"]}
    assert [*twins.faults(SAME, confirmed)] == []
    (fault,) = twins.faults(changed, confirmed)
    assert fault.startswith(f"docs/en/a.md:{HEADING.line}: ")
    assert f"docs/zh/a.md:{HEADING_ZH.line} has not" in fault
    assert fault.endswith("twins a")
    (fault,) = twins.faults({"en": SAME["en"], "zh": book("zh", *CHINESE)}, confirmed)
    assert fault.startswith(f"docs/zh/a.md:{HEADING_ZH.line}: ")
    assert [*twins.faults(changed, twins.confirm(changed, confirmed))] == []


def test_what_is_new_or_has_changed_in_both_languages_waits_for_somebody_who_confirms_it() -> None:
    """Else what one language changes afterwards would not be seen."""
    both = {"en": book("en", *ENGLISH), "zh": book("zh", *CHINESE)}
    (fault,) = twins.faults(both, twins.confirm(SAME, {}))
    assert fault == (
        "docs/en/a.md: here and in docs/zh/a.md sections are new or have changed (1); if both say the same: "
        "python -m press twins a"
    )
    (fault,) = twins.faults(SAME, {})
    assert f"sections are new or have changed ({len(twins.digests(SAME['en']['a.md']))});" in fault
    confirmed = twins.confirm(both, {})
    assert [*twins.faults(both, confirmed)] == []
    (fault,) = twins.faults({"en": both["en"], "zh": SAME["zh"]}, confirmed)
    assert fault.startswith(f"docs/zh/a.md:{HEADING_ZH.line}: ")


def test_a_draft_may_be_behind_and_blocks_are_none_of_this() -> None:
    confirmed = twins.confirm(SAME, {})
    draft = book("en", *ENGLISH)["a.md"]
    draft = pages.parse(draft.text.replace("title:", "draft: true\ntitle:", 1), draft.path)
    assert [*twins.faults({"en": {"a.md": draft}, "zh": SAME["zh"]}, confirmed)] == []
    code = SAME["en"]["a.md"].blocks[0].parts[0].code
    assert [*twins.faults({"en": book("en", code, f"{code}\n"), "zh": SAME["zh"]}, confirmed)] == []


def test_sections_that_are_gone_are_not_kept_and_other_pages_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The command, for one chapter of this project."""
    before = {"rotary.md#gone": ("0", "1"), "gone.md#top": ("2", "3"), "masks.md#top": ("4", "5")}
    monkeypatch.setattr(twins, "FILE", tmp_path / "twins.txt")
    twins.FILE.write_text(
        "".join(f"{key} {' '.join(pair)}\n" for key, pair in before.items()), encoding="utf-8"
    )
    twins.main(["rotary"])
    after = twins.confirmed()
    assert "rotary.md#gone" not in after
    assert "rotary.md#top" in after
    assert after["masks.md#top"] == ("4", "5")
    with pytest.raises(SystemExit):
        twins.main(["nowhere"])
    twins.main([])
    assert "gone.md#top" not in twins.confirmed()


def test_a_page_that_is_behind_is_not_compared_says_so_and_keeps_what_was_confirmed() -> None:
    confirmed = twins.confirm(SAME, {})
    (name,) = SAME["zh"]
    old = pages.parse(
        SAME["zh"][name].text.replace("title:", "behind: 99.0\ntitle:", 1), SAME["zh"][name].path
    )
    books = {"en": book("en", *ENGLISH), "zh": {name: old}}
    assert [*twins.faults(books, confirmed)] == []
    assert twins.confirm(books, confirmed) == confirmed
    assert checks.faults_of_pair(books["en"][name], old) == []
    said = Book("zh", _metas={name: old.meta})
    assert "英文版后来改过" in markup.with_draft("<h1>A</h1>", said, name)
