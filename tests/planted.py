"""A check brings what it must find: one test runs the examples of all checks, another the checks over the site.

    @PAGE(("en/order.html", "<title>Why", "<title>How", "title: How"))
    def preview(page: Page) -> Iterator[str]: ...

says: where "<title>Why" is "<title>How" in that file of the site, `preview` finds a fault with "title: How" in it.
A check without an example cannot be made.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

Check = TypeVar("Check", bound=Callable[..., Any])


class Checks:
    """Checks that look at the same thing, and their examples: the check, what is bad, what it says of that."""

    def __init__(self) -> None:
        self.all: list[Callable[..., Any]] = []
        self.bad: list[tuple[Any, ...]] = []

    def __call__(self, bad: tuple[Any, ...], *more: tuple[Any, ...]) -> Callable[[Check], Check]:
        def made(check: Check) -> Check:
            self.all.append(check)
            self.bad += [(check, *example) for example in (bad, *more)]
            return check

        return made


@contextlib.contextmanager
def planted(site: Path, name: str, old: str, new: str) -> Iterator[None]:
    """Something else in a file of the site, for a while; with "" for what is replaced the file is gone."""
    (file,) = site.glob(name)
    content = file.read_bytes()
    if old.encode() not in content:
        raise ValueError(f"nothing to break in {name}: it has no {old!r}")
    if old:
        file.write_bytes(content.replace(old.encode(), new.encode()))
    else:
        file.unlink()
    try:
        yield
    finally:
        file.write_bytes(content)
