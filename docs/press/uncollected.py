"""What a reader would take for Python and pytest-codeblocks would pass over without a word.

It looks at a page with other eyes than pages.py does, after the rules that Markdown itself has.
"""

import ast
import re
import textwrap
from collections.abc import Iterator

from press.pages import Fault, Page, Unit

_OPENING = re.compile(r"(?P<before>[\s>]*(?:(?:[-*+]|\d+[.)])\s+)?)(?P<fence>`{3,}|~{3,})(?P<info>.*)$")
_PYTHON_NAME = re.compile(
    r"\W*(?:class\s*=\s*\W*|language-|lang-|\.)?(i?py(?:thon|con|tb|i)?[\d.]*|ipython[\d.]*)\b", re.I
)
_STATEMENT = re.compile(
    r"(?:import\s+[A-Za-z_][\w.]*|from\s+[A-Za-z_][\w.]*\s+import\s|def\s+\w+\s*\(|class\s+\w+\s*[(:]|>>> )"
)
_CALL = re.compile(r"(?:print\(.*\)|[A-Za-z_][\w.]*\s*=\s*[A-Za-z_][\w.]*\(.*\))\s*(?:#.*)?$")


def _is_program(code: str) -> bool:
    """Whether a fence without a Python info string holds a program all the same."""
    if re.search(r"^\s*>>> ", code, re.MULTILINE):
        return True
    try:
        statements = ast.parse(code).body
    except SyntaxError:
        return False
    has_block = any(hasattr(statement, "body") for statement in statements)
    return has_block or any(_STATEMENT.match(line) or _CALL.match(line) for line in code.splitlines())


def python_fences(text: str) -> tuple[list[int], list[Fault]]:
    """Lines of the fences that a reader takes for Python, and what would not be run, each with the reason.

    Written without the scanner of pages.py, after the rules that Markdown itself has: it sees tildes, quotes,
    list items, attributes and indented code, and a fence is closed by a line of the same kind, at least as
    long, with nothing after.
    """
    found: list[int] = []
    faults: list[Fault] = []
    opened: tuple[int, re.Match[str]] | None = None
    body: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        match = _OPENING.match(line)
        if opened:
            start, opening = opened
            if not (match and match["fence"].startswith(opening["fence"]) and not match["info"].strip()):
                body.append(line)
                continue
            info = opening["info"].strip()
            program = info.split(" ")[0] not in ("markdown", "md") and start not in found
            if program and _is_program(textwrap.dedent("\n".join(body))):
                faults.append(Fault(start, f"Python in a fence that says `{info}`; write ```python"))
            if info == "console" and re.search(r"\bpython[\d.]* +(-[a-zA-Z]*c\b|-? *<<)", "\n".join(body)):
                faults.append(
                    Fault(start, "Python on a command line would not be run; write a ```python fence")
                )
            opened, body = None, []
        elif match and "`" not in match["info"]:
            opened = number, match
            if _PYTHON_NAME.match(match["info"].strip()):
                found.append(number)
                if reason := _reason(match):
                    message = f"this block would not be run: {reason}; write a bare ```python"
                    faults.append(Fault(number, message))
        elif reason := _reason_outside(line):
            faults.append(Fault(number, reason))
    return found, faults


def _reason_outside(line: str) -> str:
    """Why Python in a line of the text would not be run; "" where there is none."""
    if re.match(r"\s*(?:>\s*)*>>> ", line):
        return "a Python prompt outside a fence would not be run; write a ```python fence"
    if re.match(r"(?: {4}|\t)", line) and (_STATEMENT.match(line.strip()) or _CALL.match(line.strip())):
        return "indented code would not be run; write a ```python fence"
    if re.search(r"-{1,}8<-{1,}", line):
        return "code included with --8<-- would not be run"
    if re.search(r"<(?:pre|code)\b[^>]*\b(?:python|py)\b", line, re.I):
        return "Python in an HTML tag would not be run; write a ```python fence"
    return ""


def _reason(match: re.Match[str]) -> str:
    """Why pytest-codeblocks passes over a fence that looks like Python; "" where it does not."""
    info = match["info"]
    if match["fence"][0] == "~":
        return "fenced by ~~~"
    if ">" in match["before"]:
        return "inside a quotation"
    if match["before"].strip():
        return "on the line of a list item"
    # pytest-codeblocks takes blanks off the end of the line only
    if info.rstrip() != "python":
        return f"its info string is `{info}`"
    return ""


def uncollected(page: Page) -> list[Fault]:
    """Everything on the page that looks like Python and is not run, and every count that does not agree."""
    found, faults = python_fences(page.text)
    run = [part.fence.line for unit in page.blocks for part in unit.parts]
    reported = {fault.line for fault in faults}
    passed = "this fence looks like Python and is not run (continued, closed or swallowed by another one?)"
    hidden = "pytest-codeblocks runs what Markdown does not show as a Python block"
    faults += [Fault(line, passed) for line in found if line not in run and line not in reported]
    faults += [Fault(line, hidden) for line in run if line not in found]
    faults += [fault for unit in page.blocks for fault in _changes_of_posenc(unit)]
    return sorted(faults, key=lambda fault: fault.line)


def _changes_of_posenc(unit: Unit) -> Iterator[Fault]:
    """What a block does to posenc would be done or not, as the cache has the block or has it not."""
    try:
        nodes = list(ast.walk(ast.parse(unit.code))) if "posenc" in unit.code else []
    except SyntaxError:
        return
    ours = set()
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if (getattr(node, "module", None) or alias.name).partition(".")[0] == "posenc":
                    ours.add((alias.asname or alias.name).partition(".")[0])
    for node in nodes:
        name: ast.AST | None = None
        if isinstance(node, ast.Attribute):
            if not isinstance(node.ctx, ast.Load) or node.attr in ("__file__", "__path__", "__dict__"):
                name = node
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("setattr", "delattr", "vars"):
            name = node.args[0] if node.args else None
        while isinstance(name, ast.Attribute):
            name = name.value
        if isinstance(name, ast.Name) and name.id in ours:
            yield Fault(unit.page_line(name.lineno), f"a block leaves `{name.id}` as it is, and where it is")
