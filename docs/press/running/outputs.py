"""What a block printed, drew and raised (execute.py), held against what its page shows."""

import difflib
from collections.abc import Iterator
from typing import Any

from press.numbers import in_code, stands, together, written
from press.pages import Fault, Unit
from press.running.execute import Outcome


def faults(unit: Unit, outcome: Outcome, is_lab: bool = False) -> list[Fault]:
    """What the page says of the block and what the block did, where they differ; lines of the page.

    A lab says nothing of what its cells print: it shows that, whatever it is.
    """
    if outcome.error:
        return [_fault_of_error(unit, outcome.error)]
    found = [*([] if is_lab else _faults_of_output(unit, outcome)), *_faults_of_figures(unit, outcome)]
    return sorted(found, key=lambda fault: fault.line)


def _fault_of_error(unit: Unit, error: dict[str, Any]) -> Fault:
    what = f"{error['type']}: {error['message']}" if error["message"] else error["type"]
    if not error["line"]:
        return Fault(unit.line, what)
    source = unit.code.splitlines()[min(error["line"], unit.code.count("\n")) - 1].strip()
    raised = f"\n    raised in {error['raised']}" if error.get("raised") else ""
    return Fault(unit.page_line(error["line"]), f"{what}\n    {source}{raised}")


def _faults_of_output(unit: Unit, outcome: Outcome) -> Iterator[Fault]:
    if unit.expected is None or unit.expected_fence is None:
        for part, output in zip(unit.parts, outcome.outputs, strict=True):
            if output:
                message = "the block prints and has no expected output; it printed\n" + _indented(output)
                yield Fault(part.fence.line, message)
        return
    if unit.expected != outcome.output:
        difference = difflib.ndiff(unit.expected.splitlines(), outcome.output.splitlines())
        shown = [row for row in difference if not row.startswith("?")]
        message = "the block does not print what the page shows (- page, + printed)\n"
        yield Fault(unit.expected_fence.line, message + _indented("\n".join(shown)))
    elif any(outcome.outputs[unit.expected_after + 1 :]):
        late = unit.parts[unit.expected_after + 1].fence.line
        yield Fault(late, "this block prints, and its expected output stands before it")


def _faults_of_figures(unit: Unit, outcome: Outcome) -> Iterator[Fault]:
    from press import claims  # it needs numpy

    for part, drawn in zip(unit.parts, outcome.figures, strict=True):
        line = part.fence.line
        if part.figure and not drawn:
            yield Fault(part.figure.line, "a figure comment, but the block leaves no figure open")
        elif len(drawn) > 1:
            yield Fault(line, f"the block leaves {len(drawn)} figures open; one block, one figure")
        elif drawn and not part.figure:
            yield Fault(line, "the block draws, but no <!-- figure: caption --> follows it")
        elif part.figure and drawn[0]:
            # a decimal, a percentage or a large number: smaller ones are mostly counts
            seen = [*drawn[0]["numbers"], *in_code(unit.code + (unit.expected or "") + part.figure.holds)]
            for number in written(together(f"{part.figure.caption} {part.figure.description}")):
                is_count = len(number) < 3 and number.isdigit()
                if not is_count and not stands(number, seen):
                    yield Fault(part.figure.line, f"{number} is neither in the drawing nor in its block")
            for said in claims.faults(part.figure.holds, drawn[0]["panels"]):
                yield Fault(part.figure.line, said)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
