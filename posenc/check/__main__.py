"""python -m posenc.check PACKAGE:FUNCTION — all checks of the model that a function without arguments returns."""

import argparse
import importlib
import sys
from pathlib import Path

from posenc.check.every import check_all


def main(arguments: list[str] | None = None) -> int:
    """0 if nothing is wrong, 1 if something is, 2 if the model cannot be made or called."""
    parser = argparse.ArgumentParser(prog="python -m posenc.check", description=__doc__)
    parser.add_argument("model", help="PACKAGE:FUNCTION, for example tests.models:tiny")
    parser.add_argument("--compiled", action="store_true", help="try torch.compile, too")
    given = parser.parse_args(arguments)
    module, colon, name = given.model.partition(":")
    if not colon:
        parser.error(f"model must be PACKAGE:FUNCTION, got {given.model!r}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        report = check_all(getattr(importlib.import_module(module), name)(), compiled=given.compiled)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(report)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
