"""`python -m posenc.experiments extrapolation`: the trainings that take longer than a page may."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:2] != ["extrapolation"]:
        sys.exit("usage: python -m posenc.experiments extrapolation [--help]")
    try:
        import joblib  # noqa: F401
        import tqdm  # noqa: F401
    except ModuleNotFoundError as missing:
        sys.exit(f"{missing}: pip install 'posenc[experiments]'")
    from posenc.experiments.extrapolation.sweep import main as extrapolation

    extrapolation(sys.argv[2:])


if __name__ == "__main__":
    main()
