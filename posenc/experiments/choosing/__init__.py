"""Every scheme of the book put to the same questions: the table of the chapter `choosing`. Nothing is trained.

schemes   the candidates: what each does at the four places where a position can enter attention
measure   the questions, and how the answers are found: by running, and by counting
answers   what was found, as it stands in answers.json (`python -m posenc.experiments choosing`)
table     the answers as a table, in both languages

Each answer is what came of running the functions of the package, at small sizes in float64, or of counting what
they do at a few lengths and following that to a long one. To read and print them takes no torch.
"""

from typing import TYPE_CHECKING

from posenc.experiments.choosing.answers import (
    FAR,
    LONG,
    TASKS,
    Answers,
    compare_schemes,
    held_lengths,
    trained_longer,
)
from posenc.experiments.choosing.table import scheme_table

if TYPE_CHECKING:
    from posenc.experiments.choosing.measure import measure_scheme
    from posenc.experiments.choosing.schemes import CANDIDATES, Candidate, Hooks, Sizes

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

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """What needs torch is brought in when it is asked for."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from posenc.experiments.choosing import measure

        return getattr(measure, name)
