"""Every scheme of the book put to the same questions: the table of the chapter `choosing`. Nothing is trained.

schemes   the candidates: what each does at the four places where a position can enter attention
measure   the questions, and how the answers are found: by running, and by counting
table     the answers as a table, in both languages

No answer is written down: each is what comes of running the functions of the package, at small sizes in
float64, or of counting what they do at a few lengths and following that to a long one.
"""

from posenc.experiments.choosing.measure import (
    FAR,
    LONG,
    TASKS,
    Answers,
    compare_schemes,
    held_lengths,
    measure_scheme,
    trained_longer,
)
from posenc.experiments.choosing.schemes import CANDIDATES, Candidate, Hooks, Sizes
from posenc.experiments.choosing.table import scheme_table

__all__ = [
    "CANDIDATES",
    "FAR",
    "LONG",
    "TASKS",
    "Answers",
    "Candidate",
    "Hooks",
    "Sizes",
    "compare_schemes",
    "held_lengths",
    "measure_scheme",
    "scheme_table",
    "trained_longer",
]
