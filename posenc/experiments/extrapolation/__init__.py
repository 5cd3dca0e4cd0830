"""Trained on 32 tokens, asked at 256: tiny causal Transformers with most schemes of the book. Needs torch.

`tasks` what they have to do, `runs` one training, `sweep` all of them (`python -m posenc.experiments
extrapolation`), `results` the file that these are kept in, results.json. The schemes and the Transformer are those
of all experiments.
"""

from posenc.experiments.extrapolation.results import Results, extrapolation_results
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
