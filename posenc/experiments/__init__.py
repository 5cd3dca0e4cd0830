"""The trainings that the book quotes, each with the chapter's name. To train needs torch; to read what came of it
(`results`, `extrapolation_results`, `compare_schemes`) and `models` and `serving` do without.

`order`, `reordering`, `times`, `addition` and `contextual` take seconds on a CPU and give the same result every
time; `extrapolation` is a sweep of many hundred trainings, `hybrids`, `disentangled` and `recipe` are smaller ones,
each with the file of what came of it. `choosing` trains nothing: it puts the same questions to all schemes. `models`
has facts of released models, `serving` a model of random weights with a cache, `claims` what is said of positions,
each with a measurement, `deployment` what was found of each layer when it was compiled, exported and saved.
"""

from typing import TYPE_CHECKING

from posenc.experiments.choosing import compare_schemes, scheme_table
from posenc.experiments.extrapolation import extrapolation_results
from posenc.experiments.models import ReleasedModel, model_table, released_models, rotations
from posenc.experiments.results import deployment_table, hybrid_results, recipe_results, term_results
from posenc.experiments.serving import KeyValueCache, cached_pass, largest_error

if TYPE_CHECKING:
    from posenc.experiments.addition import probe_sum, train_steps
    from posenc.experiments.claims import CLAIMS, claim_table
    from posenc.experiments.contextual import train_sentence_task
    from posenc.experiments.disentangled import train_terms
    from posenc.experiments.extrapolation import train_extrapolation
    from posenc.experiments.hybrids import probe_position, train_counter, train_mix
    from posenc.experiments.order import train_order_task
    from posenc.experiments.recipe import train_recipe
    from posenc.experiments.reordering import reordering_sentences, train_reordering
    from posenc.experiments.times import train_gap_task

__all__ = [
    "CLAIMS",
    "KeyValueCache",
    "ReleasedModel",
    "cached_pass",
    "claim_table",
    "compare_schemes",
    "deployment_table",
    "extrapolation_results",
    "hybrid_results",
    "largest_error",
    "model_table",
    "probe_position",
    "probe_sum",
    "recipe_results",
    "released_models",
    "reordering_sentences",
    "rotations",
    "scheme_table",
    "term_results",
    "train_counter",
    "train_extrapolation",
    "train_gap_task",
    "train_mix",
    "train_order_task",
    "train_recipe",
    "train_reordering",
    "train_sentence_task",
    "train_steps",
    "train_terms",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """What needs torch is brought in when it is asked for."""
        from importlib import import_module

        trainings = ("addition", "contextual", "disentangled", "extrapolation", "hybrids", "order", "recipe")
        for module in (*trainings, "reordering", "times", "claims") * (name in __all__):
            found = import_module(f"posenc.experiments.{module}")
            if hasattr(found, name):
                return getattr(found, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
