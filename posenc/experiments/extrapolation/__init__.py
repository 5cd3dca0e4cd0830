"""Trained on 32 tokens, asked at 256: tiny causal Transformers with most schemes of the book. Training takes torch.

`tasks` what they have to do, `runs` one training, `sweep` all of them (`python -m posenc.experiments
extrapolation`), `results` the file that these are kept in, results.json, `origin` what it says of its making. The
schemes and the Transformer are those of all experiments.
"""

from typing import TYPE_CHECKING

from posenc.experiments.extrapolation.results import Results, extrapolation_results

if TYPE_CHECKING:
    from posenc.experiments.extrapolation.runs import (
        LENGTHS,
        SIZES,
        Run,
        Settings,
        Size,
        train_extrapolation,
        use_weights,
    )
    from posenc.experiments.extrapolation.tasks import TASKS, Task
    from posenc.experiments.schemes import SCHEMES, Scheme

__all__ = [
    "LENGTHS",
    "SCHEMES",
    "SIZES",
    "TASKS",
    "Results",
    "Run",
    "Scheme",
    "Settings",
    "Size",
    "Task",
    "extrapolation_results",
    "train_extrapolation",
    "use_weights",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """What needs torch is brought in when it is asked for."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from posenc.experiments.extrapolation import runs

        return getattr(runs, name)
