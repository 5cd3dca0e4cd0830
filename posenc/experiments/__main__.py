"""`python -m posenc.experiments extrapolation`, hybrids, recipe, disentangled or deployment: what takes too long."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:] == ["disentangled"]:
        from posenc.experiments.disentangled import make_term_results

        return make_term_results()
    if sys.argv[1:] == ["recipe"]:
        from posenc.experiments.recipe import make_recipe_results

        return make_recipe_results()
    if sys.argv[1:] == ["deployment"]:
        from posenc.experiments.deployment import make_deployment_results

        return make_deployment_results()
    if sys.argv[1:2] not in (["extrapolation"], ["hybrids"]):
        sys.exit(
            "usage: python -m posenc.experiments {extrapolation,hybrids,disentangled,deployment,recipe} [--help]"
        )
    try:
        import joblib  # noqa: F401
        import tqdm  # noqa: F401
    except ModuleNotFoundError as missing:
        sys.exit(f"{missing}: pip install 'posenc[experiments]'")
    if sys.argv[1] == "hybrids":
        from posenc.experiments.hybrids import main as hybrids

        hybrids(sys.argv[2:])
        return
    from posenc.experiments.extrapolation.sweep import main as extrapolation

    extrapolation(sys.argv[2:])


if __name__ == "__main__":
    main()
