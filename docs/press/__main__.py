"""The commands of the book: `python -m press check | outputs | twins | offline | slides | runtime`, each with --help.

check     reads all sources: fences, links, both languages side by side, words, typography
outputs   writes what the blocks print into their pages, in both languages, and shows what has changed
twins     says that sections say the same in both languages, of which one has changed
offline   makes the zip and the PDFs
slides    makes slides of chapters, for a course
runtime   fetches Python for the pages, once
"""

import importlib
import sys

COMMANDS = {
    "check": "press.check.cli:main",
    "outputs": "press.check.cli:write_outputs",
    "twins": "press.check.twins:main",
    "offline": "press.offline.archive:main",
    "slides": "press.offline.slides:main",
    "runtime": "press.runtime.fetch:main",
}


def main(arguments: list[str]) -> int | None:
    """Run a command; its module is loaded only then, for `check` needs less than the others."""
    if not arguments or arguments[0] not in COMMANDS:
        print(__doc__, end="", file=sys.stdout if arguments[:1] in (["--help"], ["-h"]) else sys.stderr)
        return 0 if arguments[:1] in (["--help"], ["-h"]) else 2
    module, _, function = COMMANDS[arguments[0]].partition(":")
    status: int | None = getattr(importlib.import_module(module), function)(arguments[1:])
    return status


if __name__ == "__main__":  # not where a process of a pool has it as its main module
    sys.exit(main(sys.argv[1:]))
