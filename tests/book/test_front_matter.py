"""Front matter: every page and lab has a title and a description, and says the same in both languages."""

from pathlib import Path

import pytest
from book import page as pages
from book.cache import ROOT
from check import pages as checks

DOCS = ROOT / "docs"
NAMES = sorted(
    path.relative_to(DOCS / "en").as_posix()
    for path in (DOCS / "en").rglob("*")
    if path.suffix == ".md" or path.parent.name == "labs"
)


@pytest.mark.parametrize("name", NAMES)
def test_front_matter(name: str) -> None:
    texts = {lang: (DOCS / lang / name).read_text(encoding="utf-8") for lang in checks.LANGUAGES}
    faults = [fault.message for lang, text in texts.items() for fault in checks.front_matter(text, lang)]
    faults += [fault.message for fault in checks.same_front_matter(texts["en"], texts["zh"])]
    assert faults == []


def test_labs_and_chapters_say_what_they_need() -> None:
    assert {"order.md", "labs/masks.py"} <= set(NAMES)
    needs = {
        name: checks.metadata((DOCS / "en" / name).read_text(encoding="utf-8")).get("needs") for name in NAMES
    }
    assert [name for name in NAMES if not needs[name]] == ["index.md", "order.md"]


ENGLISH = "---\ntitle: A\ndescription: B\nneeds: [order, naive]\nsearch:\n  boost: 2\n---\n\n# A {#a}\n"
CHINESE = "---\ntitle: 甲\ndescription: 乙\nneeds: [order, naive]\nsearch: {boost: 2}\n---\n\n# 甲 {#a}\n"


def as_lab(text: str) -> str:
    """As it stands in a notebook in py:percent."""
    return "".join(f"# {line}".rstrip() + "\n" for line in text.split("\n"))


@pytest.mark.parametrize("kind", [str, as_lab])
def test_good_front_matter_passes(kind: type[str]) -> None:
    english, chinese = kind(ENGLISH), kind(CHINESE)
    assert checks.metadata(english)["needs"] == ["order", "naive"]
    assert checks.front_matter(english, "en") + checks.front_matter(chinese, "zh") == []
    assert checks.same_front_matter(english, chinese) == []


@pytest.mark.parametrize("kind", [str, as_lab])
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[order, naive]", "[order]", "'needs' is ['order'] here and ['order', 'naive'] on the English page"),
        ("[order, naive]", "[naive, order]", "'needs' is ['naive', 'order'] here"),
        ("needs: [order, naive]\n", "", "'needs' is None here"),
        ("boost: 2", "boost: 3", "'search' is {'boost': 3} here and {'boost': 2}"),
        ("search:", "chapter: false\nsearch:", "'chapter' is False here and None"),
    ],
)
def test_a_difference_is_named(kind: type[str], old: str, new: str, said: str) -> None:
    assert old in CHINESE
    (fault,) = checks.same_front_matter(kind(ENGLISH), kind(CHINESE.replace(old, new)))
    assert fault.message.startswith(said)


@pytest.mark.parametrize("kind", [str, as_lab])
@pytest.mark.parametrize(
    ("language", "old", "new", "said"),
    [
        ("en", "title: A\n", "", "the front matter has no title"),
        ("en", "description: B", "description:", "the front matter has no description"),
        ("en", "description: B", "description: ' '", "the front matter has no description"),
        ("en", "description: B", "description: 乙", "the description is not in the language of the page: 乙"),
        ("zh", "title: 甲", "title: A", "the title is not in the language of the page: A"),
        ("zh", CHINESE.split("#")[0], "", "the front matter has no title"),
    ],
)
def test_what_is_missing_is_named(kind: type[str], language: str, old: str, new: str, said: str) -> None:
    good = {"en": ENGLISH, "zh": CHINESE}[language]
    assert old in good
    assert said in [fault.message for fault in checks.front_matter(kind(good.replace(old, new)), language)]


def test_the_checks_of_a_page_look_at_it() -> None:
    english, chinese = pages.parse(ENGLISH), pages.parse(CHINESE.replace("[order, naive]", "[order]"))
    assert [fault.message[:7] for fault in checks.faults_of_pair(english, chinese)] == ["'needs'"]
    nameless = pages.parse(ENGLISH.replace("description: B\n", ""), Path("a.md"))
    assert "the front matter has no description" in [
        fault.message for fault in checks.faults_of_page(nameless, "en")
    ]
