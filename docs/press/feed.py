"""What has changed, for readers of feeds: CHANGELOG.md as Atom, an entry for each of its items, the newest first."""

import hashlib
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as Tree

from markdown import markdown

from press import page_facts
from press.cache import ROOT

NAME = "changes.xml"
MOST = 60
_VERSION = re.compile(r"(?m)^## (.+?)(?: \((\d{4}-\d\d-\d\d)\))?\n")
_ITEM = re.compile(r"(?m)^(?:- (?P<item>.*(?:\n  .*)*)|### (?P<kind>.*)|(?P<text>[^\s#-].*(?:\n\S.*)*))")


def items(changes: str) -> Iterator[tuple[str, str, str]]:
    """Each item of a change log: the day of its version, or "" where it is not released; under what it stands; itself.

    >>> list(items("## Unreleased\\n\\n### Added\\n\\n- A\\n  chapter.\\n\\n## 0.1.0 (2026-11-20)\\n\\nThe book.\\n"))
    [('', 'Added', 'A chapter.'), ('2026-11-20', '0.1.0', 'The book.')]
    """
    _, *versions = _VERSION.split(changes)
    for name, day, text in zip(versions[::3], versions[1::3], versions[2::3], strict=True):
        under = name
        for found in _ITEM.finditer(text):
            under = found["kind"] or under
            if said := found["item"] or found["text"]:
                yield day or "", under, " ".join(said.split())


def atom(site: str, title: str, changes: str, today: str) -> str:
    """The feed of a site at this address; what is not released yet is of the day of the last commit."""
    feed = Tree.Element("feed", {"xmlns": "http://www.w3.org/2005/Atom", "xml:lang": "en"})

    def add(to: Tree.Element, tag: str, text: str = "", **attributes: str) -> Tree.Element:
        new = Tree.SubElement(to, tag, attributes)
        new.text = text or None
        return new

    add(feed, "title", title)
    add(feed, "id", site)
    add(feed, "link", href=f"{site}{NAME}", rel="self")
    add(feed, "link", href=site)
    add(feed, "updated", f"{today}T00:00:00Z")
    add(add(feed, "author"), "name", "posenc authors")
    for day, under, said in list(items(changes))[:MOST]:
        entry = add(feed, "entry")
        words = re.sub(r"[`*]|\[(.*?)\]\(.*?\)", r"\1", said)
        add(entry, "title", f"{under}: {textwrap.shorten(words, 90, placeholder='…')}")
        add(entry, "id", f"{site}{NAME}#{hashlib.sha256(said.encode()).hexdigest()[:12]}")
        add(entry, "link", href=site)
        add(entry, "updated", f"{day or today}T00:00:00Z")
        add(entry, "content", markdown(said), type="html")
    Tree.indent(feed)
    return Tree.tostring(feed, encoding="unicode", xml_declaration=True) + "\n"


def write(site: Path, address: str, title: str) -> None:
    """Writes the feed into a built site."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (site / NAME).write_text(atom(address, title, changes, page_facts.day()), encoding="utf-8")
