"""The exercises of the book that are solved in code: `check` says in a sentence what a solution still lacks.

    check("primer-attend", attend)                  # prints Right., or Not yet: and what to look at
    python -m posenc.exercises                      # lists them
    python -m posenc.exercises primer-attend my.py  # tries the function `attend` of my.py

Each module holds those of one page of exercises, one function a check, and needs nothing but NumPy and formulas that
need no more, because a block that calls `check` runs in the page, too. `checking` is what they share.
"""

from posenc.exercises import absolute, begin, joins, long, practice, relative, shapes
from posenc.exercises.checking import EXERCISES, check, exercise  # noqa: F401

__all__ = ["check"]

PAGES = {
    "begin": begin,
    "absolute": absolute,
    "relative": relative,
    "long": long,
    "shapes": shapes,
    "practice": practice,
    "joins": joins,
}
"""The modules by their pages."""
