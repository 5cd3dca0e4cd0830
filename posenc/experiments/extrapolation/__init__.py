"""Trained on 32 tokens, asked at 256: tiny causal Transformers with most schemes of the book. Needs torch.

`tasks` what they have to do, `schemes` how they know positions, `model` the Transformer, `runs` one training,
`sweep` all of them (`python -m posenc.experiments extrapolation`), `results` the file that these are kept in.
"""

from posenc.experiments.extrapolation.results import Results, extrapolation_results
from posenc.experiments.extrapolation.runs import LENGTHS, Run, Settings, train_extrapolation
from posenc.experiments.extrapolation.schemes import SCHEMES, Scheme
from posenc.experiments.extrapolation.tasks import TASKS, Task

__all__ = [
    "LENGTHS",
    "SCHEMES",
    "TASKS",
    "Results",
    "Run",
    "Scheme",
    "Settings",
    "Task",
    "extrapolation_results",
    "train_extrapolation",
]
