"""The trainings that the book quotes, each with the chapter's name. Needs torch.

`order`, `reordering`, `times`, `addition` and `contextual` take seconds on a CPU and give the same result every
time; `extrapolation` is a sweep of many hundred trainings, and the file of what came of it. `choosing` trains
nothing: it puts the same questions to all schemes.
"""

from posenc.experiments.addition import probe_sum, train_steps
from posenc.experiments.choosing import compare_schemes, scheme_table
from posenc.experiments.contextual import train_sentence_task
from posenc.experiments.extrapolation import extrapolation_results, train_extrapolation
from posenc.experiments.order import train_order_task
from posenc.experiments.reordering import reordering_sentences, train_reordering
from posenc.experiments.times import train_gap_task

__all__ = [
    "compare_schemes",
    "extrapolation_results",
    "probe_sum",
    "reordering_sentences",
    "scheme_table",
    "train_extrapolation",
    "train_gap_task",
    "train_order_task",
    "train_reordering",
    "train_sentence_task",
    "train_steps",
]
