"""`python -m posenc.experiments NAME` makes a file of results: extrapolation and hybrids take long, with options."""

from __future__ import annotations

import sys

_SHORT = ("choosing", "deployment", "disentangled", "recipe")


def main() -> None:
    name, *options = sys.argv[1:] or [""]
    if name in _SHORT and not options:
        return _make(name)
    if name not in ("extrapolation", "hybrids"):
        sys.exit(f"usage: python -m posenc.experiments {{extrapolation,hybrids,{','.join(_SHORT)}}} [--help]")
    try:
        import joblib  # noqa: F401
        import tqdm  # noqa: F401
    except ModuleNotFoundError as missing:
        sys.exit(f"{missing}: pip install 'posenc[experiments]'")
    if name == "hybrids":
        from posenc.experiments.hybrids import main as hybrids

        return hybrids(options)
    from posenc.experiments.extrapolation.sweep import main as extrapolation

    return extrapolation(options)


def _make(name: str) -> None:
    if name == "choosing":
        from posenc.experiments.choosing.measure import make_answers as make
    elif name == "deployment":
        from posenc.experiments.deployment import make_deployment_results as make
    elif name == "disentangled":
        from posenc.experiments.disentangled import make_term_results as make
    else:
        from posenc.experiments.recipe import make_recipe_results as make
    make()


if __name__ == "__main__":
    main()
