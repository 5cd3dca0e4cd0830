"""The reference: every public name of posenc, made from its docstring for the pages docs/en/api and docs/zh/api.

docs/api.yml says on which page and in which section a name stands, and which section of the book explains it. Where
a page says `<!-- made: api rotary.layouts -->`, that section's entries go. Each leads to the section of the book;
below that section stand its names (`with_names`), and code in a line that is such a name leads to its entry (`linked`).
griffe reads posenc without importing it; what is wrong with names and docstrings says check/reference.py.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from press import cache as kept
from press.pages import front_matter, parse
from press.running import dependencies

FILE = kept.ROOT / "docs" / "api.yml"
FOLDER = "api"
LABELS = {
    "en": {"where": "Explained in {}.", "names": "Reference: ", "comma": ", ", "section": "{}, *{}*"},
    "zh": {"where": "讲解：{}。", "names": "函数参考：", "comma": "、", "section": "{}“{}”"},
}
_SECTIONS = {
    "en": {"parameters": "Parameters", "returns": "Returns", "raises": "Errors", "attributes": "Attributes"},
    "zh": {
        "parameters": "参数",
        "returns": "返回值",
        "raises": "错误",
        "attributes": "属性",
        "shapes": "形状",
    },
}
_EXAMPLE = {"en": "Example", "zh": "例子"}
_NO_EXAMPLE = re.compile(r"\*\*\w+\*\*\n\nEXAMPLE\n\n")
_OF_MARKDOWN = re.compile(r"(`[^`]+`)|(https?://[^\s)>]*[\w/])|([\\*_{}\[\]$#|~])|(<)")
_SHAPE = re.compile(
    r"(?:^|[Ss]hape |bool |float64 |floating |integers? )(\([^()]*,[^()]*\)(?: or \([^()]*\))*)"
)
_OF_SHAPES = re.compile(r"(\w+(?:(?:, | and )\w+)*): (\([^()]*\))")
_CODE = re.compile(r"(<(a|pre|h[1-6]|summary)\b.*?</\2>)|<code>((?:\w+\.)*\w+)(?:\(\))?</code>", re.DOTALL)
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
    listed = yaml.safe_load(FILE.read_text(encoding="utf-8"))
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
    comma = LABELS[book.name]["comma"]
    for page in dict.fromkeys(entry.page for entry in entries()):
        title = re.split("[:：] *", _title(book / FOLDER / f"{page}.md"))[-1]
        links = [f"[`{entry.name}`]({page}.md#{entry.name})" for entry in entries() if entry.page == page]
        title = f"[{title[0].upper()}{title[1:]}]({page}.md)"
        yield f"- **{title}**{'：' if book.name == 'zh' else ': '}{comma.join(links)}"


def _with_places(text: str, entry: Entry, book: Path) -> str:
    """An entry with a link to what explains it, and with a block from there where its docstring has no example."""
    labels, (page, _, anchor) = LABELS[book.name], entry.section.partition("#")
    heading = re.search(rf"^#+ (.*?) *\{{#{anchor}\}}", _text(book / page), re.MULTILINE)
    said = labels["section"].format(_title(book / page), heading[1] if heading else anchor)
    text = text.replace("WHERE", labels["where"].format(f"[{said}](../{entry.section})"), 1)
    shown = example(entry, book)
    return text.replace("EXAMPLE", f"```py\n{shown}```", 1) if shown else _NO_EXAMPLE.sub("", text)


def example(entry: Entry, book: Path) -> str:
    """The shortest block of the page that explains a name in which it is called, "" where none is."""
    blocks = _BLOCK.findall(_text(book / entry.section.partition("#")[0]))
    return min((block for block in blocks if re.search(rf"\b{entry.name}\b", block)), key=len, default="")


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _title(path: Path) -> str:
    return str(front_matter(_text(path))[0]["title"])


@cache
def _texts(language: str) -> dict[str, str]:
    """The Markdown of each entry, kept as long as posenc stays as it is."""
    found = dependencies.sources()
    key = kept.key(
        language, version("griffelib"), _text(Path(__file__)), _text(FILE), found.state(found.files)
    )
    store = kept.Store("reference")
    if (text := store.get(key)) is None:
        made = {e.path: _markdown(e, language) for e in entries() if public(e.path) is not None}
        store.put(key, text := json.dumps(made, ensure_ascii=False))
        store.prune(days=7, most=20)
    texts: dict[str, str] = json.loads(text)
    return texts


# --- What griffe knows --------------------------------------------------------------------------------------


# `query, key: ...` is said of both: check/reference.py compares names with the signature.
OPTIONS: Any = {
    "returns_named_value": False,
    "returns_multiple_items": False,
    "warn_unknown_params": False,
    "warn_missing_types": False,
}


@cache
def package() -> Any:
    """posenc, as griffe reads it."""
    import griffe

    return griffe.load(
        "posenc",
        search_paths=[kept.ROOT],
        allow_inspection=False,
        docstring_parser="google",
        docstring_options=OPTIONS,
    )


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
        said |= {
            name: text for names, text in pairs for name in re.split(r", | and ", names.replace("*", ""))
        }
    return said


# --- As Markdown --------------------------------------------------------------------------------------------


def _markdown(entry: Entry, language: str) -> str:
    found = public(entry.path)
    door = entry.name in map(str, package().exports)
    parts = [
        *_parts(
            found,
            f"posenc.{entry.name if door else entry.path}",
            f"### `{entry.name}` {{#{entry.name}}}",
            language,
        )
    ]
    if ">>>" not in found.docstring.value:
        parts[-1] = parts[-1].replace("\n\n</div>", f"\n\n**{_EXAMPLE[language]}**\n\nEXAMPLE\n\n</div>")
    for each in methods(found):
        name = f"{entry.name}.{each.name}"
        parts += _parts(each, name, f"#### `{name}` {{#{name}}}", language)
    return "\n\n".join(parts)


def _parts(found: Any, path: str, heading: str, language: str) -> Iterator[str]:
    first, *rest = found.docstring.parsed
    summary, _, more = first.value.partition("\n\n")
    yield f"{heading}\n\n{_prose(summary)}\n{{: lang=en }}"
    if heading.startswith("### "):
        yield "WHERE\n{: .api-where }"
    body = [f"```py\n{_signature(found, path)}\n```", _prose(more)]
    body += [_section(section, _SECTIONS[language]) for section in rest]
    yield "\n\n".join(
        ['<div class="api" lang="en" data-search-exclude markdown>', *filter(None, body), "</div>"]
    )


def _signature(found: Any, path: str) -> str:
    """As it is written, a line for each parameter with the shape that its description names."""
    if found.is_attribute:
        return path + (f": {found.annotation}" if found.annotation else "")
    above = described(found.parent) if found.parent and found.parent.is_class else {}
    said, lines, star = above | described(found), [], False
    for each in parameters(found):
        kind = each.kind.value if each.kind else ""
        if kind == "keyword-only" and not star:
            lines.append(("*,", ""))
        star = star or kind in ("keyword-only", "variadic positional")
        stars = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        text = f"{stars}{each.name}" + (f": {_type(each.annotation)}" if each.annotation else "")
        if each.default is not None and not stars:
            text += f" = {each.default}" if each.annotation else f"={each.default}"
        shape = _SHAPE.search(said.get(each.name, "")) or _SHAPE.search(above.get(each.name, ""))
        lines.append((f"{text},", f"  # {shape[1]}" if shape else ""))
    returns = f" -> {_type(found.returns)}" if found.is_function and found.returns else ""
    line = " ".join(text for text, _ in lines).removesuffix(",")
    if len(path + line + returns) < 60 and not any(shape for _, shape in lines):
        return f"{path}({line}){returns}"
    return "\n".join([f"{path}(", *(f"    {text}{shape}" for text, shape in lines), f"){returns}"])


def _type(annotation: Any) -> str:
    return re.sub(r"\b(?:ArrayT|OneArray)\b", "Array", str(annotation))


def _section(section: Any, labels: dict[str, str]) -> str:
    kind, value = section.kind.value, section.value
    if kind == "text":
        return _prose(value)
    if kind == "admonition":
        return f"**{labels.get(value.kind, section.title or value.kind.capitalize())}**\n\n{_prose(value.contents)}"
    lines = []
    for item in value:
        names = (
            item.name
            if kind in ("parameters", "attributes")
            else str(item.annotation)
            if kind == "raises"
            else ""
        )
        code = ", ".join(f"`{name}`" for name in re.split(r",\s*", names.strip("()")) if name)
        said = _prose(" ".join(item.description.split()))
        lines.append(f"- {code}: {said}" if code else said)
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
    there: dict[str, list[Entry]] = {}
    for entry in entries():
        page, _, anchor = entry.section.partition("#")
        if page == name:
            there.setdefault(anchor, []).append(entry)
    if not there:
        return markdown
    labels, lines, headings = LABELS[language], markdown.split("\n"), parse(markdown).headings
    for heading, after in reversed([*zip(headings, [*headings[1:], None], strict=True)]):
        if found := there.get(heading.id):
            links = [f"[`{entry.name}`]({entry.anchor})" for entry in found]
            foot = ["", labels["names"] + labels["comma"].join(links), "{: .api-names }", ""]
            at = after.line - 1 if after else len(lines)
            lines[at:at] = foot
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
