"""What a reader would take for Python and pytest-codeblocks would pass over without a word.

It looks at a page with other eyes than page.py does, after the rules that Markdown itself has.
"""

from __future__ import annotations

import ast
import re
import textwrap

from .page import Fault, Page

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
    if not any(_STATEMENT.match(line) for line in code.splitlines()):
        return False
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def python_fences(text: str) -> tuple[list[int], list[Fault]]:
    """Lines of the fences that a reader takes for Python, and what would not be run, each with the reason.

    Written without the scanner above, after the rules that Markdown itself has: it sees tildes, quotes, list
    items, attributes and indented code, and a fence is closed by a line of the same kind, at least as long,
    with nothing after.
    """
    found: list[int] = []
    faults: list[Fault] = []
    opened: tuple[str, int, str, bool] | None = None
    body: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        match = _OPENING.match(line)
        if opened:
            mark, start, info, looks = opened
            if (
                match
                and match["fence"][0] == mark[0]
                and len(match["fence"]) >= len(mark)
                and not match["info"].strip()
            ):
                if (
                    not looks
                    and info.split(" ")[0] not in ("markdown", "md")
                    and _is_program(textwrap.dedent("\n".join(body)))
                ):
                    faults.append(Fault(start, f"Python in a fence that says `{info}`; write ```python"))
                opened, body = None, []
            else:
                body.append(line)
            continue
        if match and "`" not in match["info"]:
            info = match["info"].strip()
            looks = bool(_PYTHON_NAME.match(info))
            opened, body = (match["fence"], number, info, looks), []
            if looks:
                found.append(number)
                reason = _reason(match)
                if reason:
                    faults.append(
                        Fault(number, f"this block would not be run: {reason}; write a bare ```python")
                    )
        elif re.match(r"\s*(?:>\s*)*>>> ", line):
            faults.append(
                Fault(number, "a Python prompt outside a fence would not be run; write a ```python fence")
            )
        elif re.match(r"(?: {4}|\t)", line) and (_STATEMENT.match(line.strip()) or _CALL.match(line.strip())):
            faults.append(Fault(number, "indented code would not be run; write a ```python fence"))
        elif re.search(r"-{1,}8<-{1,}", line):
            faults.append(Fault(number, "code included with --8<-- would not be run"))
        elif re.search(r"<(?:pre|code)\b[^>]*\b(?:python|py)\b", line, re.I):
            faults.append(Fault(number, "Python in an HTML tag would not be run; write a ```python fence"))
    return found, faults


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
    faults += [
        Fault(
            line,
            "this fence looks like Python and is not run (continued, closed or swallowed by another one?)",
        )
        for line in found
        if line not in run and line not in reported
    ]
    faults += [
        Fault(line, "pytest-codeblocks runs what Markdown does not show as a Python block")
        for line in run
        if line not in found
    ]
    return sorted(faults, key=lambda fault: fault.line)
