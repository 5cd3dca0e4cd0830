"""python -m posenc.exercises [ID FILE]: lists the exercises in code, or tries a solution of one."""

import argparse
import runpy
import sys

from posenc.exercises import EXERCISES, check


def main(arguments: list[str] | None = None) -> int:
    """0 if the solution is right, 1 if it is not yet, 2 if there is no such exercise, file or function."""
    parser = argparse.ArgumentParser(prog="python -m posenc.exercises", description=__doc__)
    parser.add_argument("id", nargs="?", help="an exercise; without one, all are listed")
    parser.add_argument("file", nargs="?", help="a Python file with the function that the exercise asks for")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="the language of the sentence")
    given = parser.parse_args(arguments)
    if given.id is None:
        for each in EXERCISES.values():
            print(f"{each.id:32} {each.page:10} {each.wanted}")
        return 0
    if given.id not in EXERCISES:
        parser.error(f"there is no exercise {given.id}: without arguments all are listed")
    wanted = EXERCISES[given.id].wanted
    if given.file is None:
        parser.error(f"which file has the function {wanted}?")
    try:
        solution = runpy.run_path(given.file)[wanted]
    except OSError as error:
        parser.error(str(error))
    except KeyError:
        parser.error(f"{given.file} has no function {wanted}, which {given.id} asks for")
    return 0 if check(given.id, solution, lang=given.lang) else 1


if __name__ == "__main__":
    sys.exit(main())
