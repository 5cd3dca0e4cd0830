"""The reference: every public name of posenc, made from its docstring for the pages docs/en/api and docs/zh/api.

docs/api.yml says on which page and in which section a name stands, and which section of the book explains it. Where
a page says `<!-- made: api rotary.layouts -->`, that section's entries go. Each leads to the section of the book;
below that section stand its names (`with_names`), and code in a line that is such a name leads to its entry (`linked`).
griffe reads posenc without importing it; what is wrong with names and docstrings says check/reference.py.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

from press import cache as kept
from press.pages import front_matter, loaded, parse
from press.running import dependencies

FILE = kept.ROOT / "docs" / "api.yml"
FOLDER = "api"
WORDS = {  # where a name is explained; names below a section; headings of what docstrings have
    "en": (
        *("Explained in [{}, *{}*]({}).", "Reference: ", ", ", ": "),
        {"parameters": "Parameters", "returns": "Returns", "raises": "Errors", "attributes": "Attributes"},
    ),
    "zh": (
        *("讲解：[{}“{}”]({})。", "函数参考：", "、", "："),
        {"parameters": "参数", "returns": "返回值", "raises": "错误", "attributes": "属性", "shapes": "形状"},
    ),
}
_OF_MARKDOWN = re.compile(r"(`[^`]+`)|(https?://[^\s)>]*[\w/])|([\\*_{}\[\]$#|~])|(<(?=[\w/!?]))")
_SHAPE = re.compile(
    r"(?:^|[Ss]hape |bool |float64 |floating |integers? )(\([^()]*,[^()]*\)(?: or \([^()]*\))*)"
)
_OF_SHAPES = re.compile(r"(\w+(?:(?:, | and )\w+)*): (\([^()]*\))")
_CODE = re.compile(r"(<(a|pre|h[1-6]|summary)\b.*?</\2>)|<code>((?:\w+\.)*\w+)(?:\(\))?</code>", re.DOTALL)
_HEADING = re.compile(r"^#+ (.*?) *\{#([\w-]+)\}", re.MULTILINE)
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """A public name: `rotary.yarn_frequencies`, its page and section in the reference, and what explains it."""

    path: str
    page: str
    group: str
    section: str

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def own(self) -> bool:
        """Whether it is no common word: then code in a line that has no module, too, means it."""
        return "_" in self.name or self.name[0].isupper()

    @property
    def anchor(self) -> str:
        """Below the folder of the book."""
        return f"{FOLDER}/{self.page}.md#{self.name}"


@cache
def entries() -> tuple[Entry, ...]:
    """All of them, in the order of the file."""
    listed = loaded(FILE.read_text(encoding="utf-8"))
    return tuple(
        Entry(path, page, group, section)
        for page, groups in listed.items()
        for group, names in groups.items()
        for path, section in names.items()
    )


# --- What is made for a page --------------------------------------------------------------------------------


def made(book: Path, place: str = "") -> str:
    """The entries of a section, `rotary.layouts`; without a section all names, by their pages."""
    if not place:
        return "\n".join(_overview(book))
    texts = _texts(book.name)
    there = [entry for entry in entries() if f"{entry.page}.{entry.group}" == place]
    return "\n\n".join(_with_places(texts[entry.path], entry, book) for entry in there if entry.path in texts)


def _overview(book: Path) -> Iterator[str]:
    *_, comma, colon, _ = WORDS[book.name]
    for page in dict.fromkeys(entry.page for entry in entries()):
        title = re.split("[:：] *", _title(book / FOLDER / f"{page}.md"))[-1]
        links = [f"[`{entry.name}`]({page}.md#{entry.name})" for entry in entries() if entry.page == page]
        yield f"- **[{title[0].upper()}{title[1:]}]({page}.md)**{colon}{comma.join(links)}"


def _with_places(text: str, entry: Entry, book: Path) -> str:
    """An entry with a link to what explains it, and with a block from there where its docstring has no example."""
    page, _, anchor = entry.section.partition("#")
    said = _title(book / page), _headings(book / page).get(anchor, anchor), f"../{entry.section}"
    text = text.replace("WHERE", WORDS[book.name][0].format(*said), 1)
    text = text.replace(entry.section.replace("#", "\\#"), f"[{said[1]}]({said[2]})")
    if "EXAMPLE\n\n" not in text:
        return text
    return text.replace("EXAMPLE\n\n", f"```py\n{shown}```\n\n" if (shown := example(entry, book)) else "", 1)


def example(entry: Entry, book: Path) -> str:
    """The shortest block of the page that explains a name in which it is called, "" where none is."""
    blocks = _BLOCK.findall(_text(book / entry.section.partition("#")[0]))
    return min((block for block in blocks if re.search(rf"\b{entry.name}\b", block)), key=len, default="")


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _headings(path: Path) -> dict[str, str]:
    """The headings of a page by their ids."""
    return {found[2]: found[1] for found in _HEADING.finditer(_text(path))}


@cache
def _title(path: Path) -> str:
    return str(front_matter(_text(path))[0]["title"])


@cache
def _texts(language: str) -> dict[str, str]:
    """The Markdown of each entry, kept as long as what posenc says of itself stays as it is."""
    said, griffe = dependencies.sources().interface, version("griffelib")
    key = kept.key(language, griffe, _text(Path(__file__)), _text(FILE), said)
    store = kept.Store("reference")
    if (text := store.get(key)) is None:
        made = {e.path: _markdown(e, language) for e in entries() if public(e.path) is not None}
        store.put(key, text := json.dumps(made, ensure_ascii=False))
        store.prune(days=7, most=20)
    texts: dict[str, str] = json.loads(text)
    return texts


# --- What griffe knows --------------------------------------------------------------------------------------


# `query, key: ...` is said of both: check/reference.py compares names with the signature.
OPTIONS: Any = dict.fromkeys(("warn_unknown_params", "warn_missing_types"), False)
OPTIONS |= dict.fromkeys(("returns_named_value", "returns_multiple_items"), False)


@cache
def package() -> Any:
    """posenc, as griffe reads it."""
    import griffe

    how: Any = {"allow_inspection": False, "docstring_parser": "google", "docstring_options": OPTIONS}
    return griffe.load("posenc", search_paths=[kept.ROOT], **how)


def public(path: str) -> Any:
    """The object of this name, or None."""
    module, _, name = path.rpartition(".")
    if (found := package().modules.get(module)) is None or name not in map(str, found.exports or []):
        return None
    return found.members[name].final_target if found.members[name].is_alias else found.members[name]


def methods(found: Any) -> list[Any]:
    """The public methods and properties of a class that say what they do, those of its bases, too."""
    if not found.is_class:
        return []
    members = {**found.members, **found.inherited_members, **found.members}
    return [each for name, each in members.items() if name[0] != "_" and each.docstring and not each.is_class]


def parameters(found: Any) -> list[Any]:
    if not (found.is_function or found.is_class):
        return []
    return [each for each in found.parameters if each.name not in ("self", "cls")]


def described(found: Any) -> dict[str, str]:
    """What the docstring says of each parameter or attribute; `query, key: ...` is said of both."""
    said: dict[str, str] = {}
    for section in found.docstring.parsed:
        if section.kind.value in ("parameters", "attributes"):
            pairs = [(item.name, " ".join(item.description.split())) for item in section.value]
        elif section.kind.value == "admonition" and section.value.kind == "shapes":
            pairs = _OF_SHAPES.findall(section.value.contents)
        else:
            continue
        for names, text in pairs:
            said |= dict.fromkeys(re.split(r", | and ", names.replace("*", "")), text)
    return said


# --- As Markdown --------------------------------------------------------------------------------------------


def _markdown(entry: Entry, language: str) -> str:
    found = public(entry.path)
    path = entry.name if entry.name in map(str, package().exports) else entry.path
    parts = [f"### `{entry.name}` {{#{entry.name}}}", *_parts(found, f"posenc.{path}", language)]
    parts.insert(2, "WHERE\n{: .api-where }")
    if ">>>" not in found.docstring.value:
        parts.insert(-1, "EXAMPLE")
    for each in methods(found):
        name = f"{entry.name}.{each.name}"
        parts += [f"#### `{name}` {{#{name}}}", *_parts(each, name, language)]
    return "\n\n".join(parts)


def _parts(found: Any, path: str, language: str) -> list[str]:
    first, *rest = found.docstring.parsed
    summary, _, more = first.value.partition("\n\n")
    body = [f"```py\n{_signature(found, path)}\n```", _prose(more)]
    body += [_section(section, found.docstring.value, WORDS[language][-1]) for section in rest]
    # No div: Material's search would take in what follows the first div inside.
    box = '<section class="api" lang="en" data-search-exclude="true" markdown>'
    return [f"{_prose(summary)}\n{{: lang=en }}", box, *filter(None, body), "</section>"]


def _signature(found: Any, path: str) -> str:
    """As it is written, a line for each parameter with the shape that its description names."""
    if found.is_attribute:
        return path + (f": {found.annotation}" if found.annotation else "")
    above = described(found.parent) if found.parent.is_class else {}
    said, lines = described(found), list[tuple[str, str]]()
    for each in parameters(found):
        if each.kind.value == "keyword-only" and not any(line[0] == "*" for line, _ in lines):
            lines.append(("*,", ""))
        stars = {"variadic positional": "*", "variadic keyword": "**"}.get(each.kind.value, "")
        kind = f": {each.annotation}" if each.annotation else ""
        default = "" if each.default is None or stars else f" = {each.default}"
        shape = _SHAPE.search(said.get(each.name, "")) or _SHAPE.search(above.get(each.name, ""))
        lines.append((f"{stars}{each.name}{kind}{default},", f"  # {shape[1]}" if shape else ""))
    end = f") -> {found.returns}" if found.is_function and found.returns else ")"
    text = f"{path}({' '.join(line for line, _ in lines).removesuffix(',')}{end}"
    if len(text) > 60 or any(shape for _, shape in lines):
        text = "\n".join([f"{path}(", *(f"    {line}{shape}" for line, shape in lines), end])
    return re.sub(r"\b(?:ArrayT|OneArray)\b", "Array", text)


def _section(section: Any, docstring: str, labels: Mapping[str, str]) -> str:
    kind, value = section.kind.value, section.value
    if kind == "text":
        return _prose(value)
    if kind == "admonition":
        said = re.sub(r"(?m)^(\w[\w, ]*: )", r"- \1", value.contents)
        return f"**{labels.get(value.kind, section.title)}**\n\n{_prose(said)}"
    if kind == "returns":  # griffe takes what stands before a colon for a type
        text = re.search(r"^Returns:\n((?: .*(?:\n|$)|\n)+)", docstring, re.MULTILINE)
        return f"**{labels[kind]}**\n\n{_prose(dedent(text[1] if text else '').strip())}"
    lines = []
    for item in value:
        names = str(item.annotation).strip("()") if kind == "raises" else item.name
        code = ", ".join(f"`{name}`" for name in re.split(r",\s*", names))
        first, *more = map(_prose, item.description.split("\n\n"))
        lines.append(f"- {code}: {' '.join(first.split())}")
        lines += [f"\n{indent(text, '    ')}\n" for text in more]
    return f"**{labels[kind]}**\n\n" + "\n".join(lines)


def _prose(text: str) -> str:
    """Text of a docstring as Markdown: examples in fences, and what is no code as it is written."""

    def escaped(match: re.Match[str]) -> str:
        code, url, mark, _ = match.groups()
        return code or (f"<{url}>" if url else f"\\{mark}" if mark else "&lt;")

    def paragraph(text: str) -> str:
        return f"```pycon\n{text}\n```" if text.startswith(">>> ") else _OF_MARKDOWN.sub(escaped, text)

    return "\n\n".join(map(paragraph, filter(None, text.split("\n\n"))))


# --- In the chapters ----------------------------------------------------------------------------------------


def with_names(markdown: str, name: str, language: str) -> str:
    """A page with the names that each of its sections explains, below that section."""
    there: dict[str, list[str]] = {}
    for entry in entries():
        there.setdefault(entry.section, []).append(
            f"[`{entry.name}`]({'../' * name.count('/')}{entry.anchor})"
        )
    if not any(section.startswith(f"{name}#") for section in there):
        return markdown
    _, label, comma, *_ = WORDS[language]
    lines, end = markdown.split("\n"), len(markdown.split("\n"))
    for heading in reversed(parse(markdown).headings):
        if links := there.get(f"{name}#{heading.id}"):
            lines[end:end] = ["", label + comma.join(links), "{: .api-names }", ""]
        end = heading.line - 1
    return "\n".join(lines)


@cache
def _spellings() -> dict[str, Entry]:
    """How a name is written in a line: with its module, with posenc, and alone where it is no common word."""
    found: dict[str, Entry] = {}
    for entry in entries():
        names = [entry.path, f"posenc.{entry.path}", f"posenc.{entry.name}"]
        found |= dict.fromkeys([*names, *[entry.name] * entry.own], entry)
    return found


def linked(html: str, name: str) -> str:
    """A page whose code in a line leads to the entry of that name, once in each section."""

    def links(section: str) -> str:
        seen = set[str]()

        def link(match: re.Match[str]) -> str:
            code = match[3] or ""
            entry = _spellings().get(code) or _spellings().get(code.rpartition(".")[0])
            if entry is None or entry.name in seen:
                return match[0]
            seen.add(entry.name)
            address = "../" * name.count("/") + entry.anchor.replace(".md#", ".html#")
            return f'<a class="api-link" href="{address}">{match[0]}</a>'

        return _CODE.sub(link, section)

    return "".join(map(links, re.split(r"(?=<h[23])", html)))
