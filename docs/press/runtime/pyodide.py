"""Python for the pages: readers run the blocks of a page in the page itself, from the site's own origin.

What it is made of is pinned in ../runtime/pins.txt, and `python -m press runtime` fetches it once into the
user's cache. Where all of it is there

site/py/         gets its files, with the package as it is at this moment, and their licences;
each block       that a browser can run says so: data-run="numpy", or what else it takes, "matplotlib" or "scipy" or
                 both; one that cannot says what it lacks: data-needs="torch". data-block is its number on the page,
                 data-after the number of the one that it continues;
each such page   loads theme/runtime/run.js, to which the element #run-config says how many bytes each part loads.

Where it is not, or with POSENC_RUNTIME=0, the site is the one without.
"""

import functools
import gzip
import hashlib
import io
import itertools
import json
import os
import re
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from press import BookError, cache, figures
from press.pages import Unit
from press.running import dependencies

FOLDER = Path(__file__).parent
_TORCH = re.compile(r"^\s*(?:import|from) (?:torch|posenc\.nn)\b", re.MULTILINE)
PARTS = ("pyodide", "numpy", "matplotlib", "scipy")
LOADED = ("numpy", *PARTS[2:])  # what readers load, the first with Pyodide and posenc
MISSING = ("torch",)  # what a page does not have


# --- What it is made of -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pin:
    """A file of the runtime: which part it belongs to, its hash, its size in bytes, its name."""

    part: str
    sha256: str
    size: int
    name: str


@dataclass(frozen=True)
class Pins:
    """All files of the runtime, the package on PyPI that carries them in one of its folders, and Pyodide's release."""

    carrier: str
    folder: str
    files: tuple[Pin, ...]
    release: str = ""  # its address

    @property
    def store(self) -> Path:
        """Where the files lie on this machine, for all checkouts that pin the same ones."""
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "posenc"
        entry = cache.key(*(f"{pin.sha256} {pin.name}" for pin in self.files))
        return Path(os.environ.get("POSENC_CACHE") or home).absolute() / "runtime" / entry[:16]

    def path(self, pin: Pin) -> Path:
        return self.store / pin.name

    def missing(self) -> list[Pin]:
        """The files that are not in the store, or have another content there."""
        return [pin for pin in self.files if not _is_there(pin, self.path(pin))]

    def of(self, part: str) -> list[Pin]:
        return [pin for pin in self.files if pin.part == part]


@functools.cache
def read(path: Path = FOLDER / "pins.txt") -> Pins:
    """The pins in a file.

    Raises:
        BookError: if a line is none, naming it.
    """
    carrier, files, release = ("", ""), [], ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if match := re.fullmatch(r"carrier (\S+) (\S+)", line):
            carrier = match[1], match[2]
        elif match := re.fullmatch(r"release (https://\S+)", line):
            release = match[1]
        elif match := re.fullmatch(rf"({'|'.join(PARTS)}) +([0-9a-f]{{64}}) +(\d+)  ([\w.-]+)", line):
            files.append(Pin(match[1], match[2], int(match[3]), match[4]))
        elif line and not line.startswith("#"):
            raise BookError(
                f"{cache.shown(path)}:{number}: no pin, which is a part, a SHA-256, a size and a name: {line}"
            )
    return Pins(*carrier, tuple(files), release)


def fault(pin: Pin, data: bytes) -> str:
    """What is wrong with data that is taken for a pinned file, "" if nothing is."""
    found = hashlib.sha256(data).hexdigest()
    if len(data) > pin.size:
        said = f"it has more than {pin.size} bytes"
    elif len(data) < pin.size:
        said = f"it has {len(data)} bytes, not {pin.size}"
    else:
        said = f"its SHA-256 is {found}"
    return f"{pin.name} is not the one in pins.txt: {said}" if found != pin.sha256 else ""


def _is_there(pin: Pin, path: Path) -> bool:
    try:
        about = path.stat()
        return about.st_size == pin.size and _sha256(path, about.st_size, about.st_mtime_ns) == pin.sha256
    except OSError:
        return False


@functools.lru_cache(maxsize=64)
def _sha256(path: Path, size: int, changed: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def there() -> bool:
    """Whether the site gets the runtime: all of it is in the store, and POSENC_RUNTIME=0 does not forbid it."""
    return os.environ.get("POSENC_RUNTIME") != "0" and not read().missing()


# --- What a block needs -------------------------------------------------------------------------------------

_IMPORTS = re.compile(r'^\s*(?:from|import)\s+(\w+)|\bimport_module\(f?"(\w+)', re.MULTILINE)


def needs(code: str) -> str:
    r"""What a block needs in the page: "numpy", or parts beyond it, or a library that is not there.

    >>> imports = " import alibi_bias", ".plot import waveforms", " import anchor_distances", ".nn import AlibiBias"
    >>> [needs(f"from posenc{name}") for name in imports]
    ['numpy', 'matplotlib', 'scipy', 'torch']
    >>> needs("import matplotlib\nimport scipy")
    'matplotlib scipy'
    """
    found = imported(code)
    return next((name for name in MISSING if name in found), "") or _parts(found)


def imported(code: str) -> set[str]:
    """What a block imports, by itself and by the modules of posenc that it can reach."""
    sources = dependencies.sources()
    texts = [code, *map(sources.text, sources.reach(code)[0])]
    found = set[str]().union(*map(_named, texts))
    return found | {"torch"} if _TORCH.search(code) else found


@functools.lru_cache(maxsize=1024)
def _named(text: str) -> set[str]:
    """What a text imports by itself."""
    return {name for names in _IMPORTS.findall(text) for name in names}


def _parts(imported: set[str]) -> str:
    return " ".join(name for name in LOADED[1:] if name in imported) or LOADED[0]


def attributes(units: Iterable[Unit]) -> dict[int, str]:
    """What each fence of these units says of itself, by its line; nothing where the site has no runtime."""
    found: dict[int, str] = {}
    if there():
        for unit in units:
            said = _attributes([part.code for part in unit.parts], len(found))
            found |= {part.fence.line: text for part, text in zip(unit.parts, said, strict=True)}
    return found


def _attributes(parts: list[str], before: int) -> list[str]:
    """What parts say of which each continues the one before; so many blocks stand above them."""
    found = []
    for number, code in enumerate(itertools.accumulate(parts, "{}\n{}".format), before + 1):
        need = needs(code)
        text = f' data-{"needs" if need in MISSING else "run"}="{need}" data-block="{number}"'
        found.append(text + f' data-after="{number - 1}"' * (number > before + 1))
    return found


# --- What the site gets -------------------------------------------------------------------------------------

_LICENCE = re.compile(r"\.dist-info/(?:licenses/.+|[^/]*(?:LICEN[CS]E|COPYING)[^/]*)$")
# Packed by us, to a third of its size, for not every server does; not named .gz, which some would unpack.
_PACKED = "pyodide.asm.wasm"
# What the page has of press.
_PAGE = ("__init__.py", "figures.py", "runtime/__init__.py", "runtime/in_page.py")


def ship(site: Path) -> None:
    """Write site/py/, if the runtime is there."""
    if not there():
        return
    pins, folder = read(), site / "py"
    folder.mkdir(parents=True, exist_ok=True)
    for pin in pins.files:
        if pin.name == _PACKED:
            (folder / f"{pin.name}.packed").write_bytes(_packed(pins.path(pin)))
        else:
            shutil.copyfile(pins.path(pin), folder / pin.name)
    name, package = posenc()
    (folder / name).write_bytes(package)
    (folder / "files.json").write_text(json.dumps(files(), indent=1), encoding="utf-8")
    (folder / "LICENSES.txt").write_text("\n".join(_licences(pins)), encoding="utf-8")


def files() -> dict[str, Any]:
    """What the worker loads, with the bytes over the wire; "abi" is what Pyodide wants to be told of wheels."""
    return _files(*posenc())


@functools.lru_cache(maxsize=1)
def _files(name: str, package: bytes) -> dict[str, Any]:
    pins = read()

    def sent(pin: Pin) -> tuple[str, int]:
        if pin.name == _PACKED:
            return f"{pin.name}.packed", len(_packed(pins.path(pin)))
        return pin.name, pins.path(pin).stat().st_size

    # modules are loaded by the browser itself, and not counted as they come
    sizes = {part: dict(sent(pin) for pin in pins.of(part) if pin.name[-4:] != ".mjs") for part in PARTS}
    abi = re.search(r"_(\d+_\d+)_wasm32", pins.of("numpy")[0].name)
    assert abi is not None
    start = sizes["pyodide"] | sizes["numpy"] | {name: len(package)}
    return {"abi": abi[1]} | {part: sizes[part] for part in LOADED} | {"numpy": start}


def config() -> dict[str, Any]:
    """What a page is told of its runtime: the bytes over the wire of each part."""
    loaded = files()
    return {
        # rounded, for the package is in it: an edit of posenc is to change no page by a few bytes
        "bytes": {part: round(sum(loaded[part].values()), -5) for part in LOADED},
    }


def posenc() -> tuple[str, bytes]:
    """The package as it is now, what it needs and what runs blocks: a zip, and a name that is its own."""
    return _posenc(tuple(dependencies.sources().stamp))


@functools.lru_cache(maxsize=1)
def _posenc(stamp: tuple[object, ...]) -> tuple[str, bytes]:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for name, data in sorted(_contents()):
            entry = zipfile.ZipInfo(name)  # the first of January 1980
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            made.writestr(entry, data)
    data = buffer.getvalue()
    return f"posenc-{hashlib.sha256(data).hexdigest()[:8]}.zip", data


def _contents() -> Iterator[tuple[str, bytes]]:
    for path in (path for ending in ("py", "csv", "json") for path in cache.PACKAGE.rglob(f"*.{ending}")):
        yield path.relative_to(cache.ROOT).as_posix(), path.read_bytes()
    for file in metadata.files("array-api-compat") or ():
        if file.suffix == ".py" or _LICENCE.search(file.as_posix()):
            yield file.as_posix(), Path(str(file.locate())).read_bytes()
    for name in _PAGE:
        yield f"press/{name}", (cache.PRESS / name).read_bytes()
    yield f"press/{figures.FONT.name}", figures.measuring_font().read_bytes()


def _packed(path: Path) -> bytes:
    """A file of the store as gzip, which is kept beside it: packing takes a second."""
    kept, data = path.with_name(f"{path.name}.packed"), path.read_bytes()
    try:
        packed = kept.read_bytes()
        if gzip.decompress(packed) == data:
            return packed
    except (OSError, EOFError):
        pass
    packed = gzip.compress(data, 9, mtime=0)
    cache.write(kept, packed)
    return packed


def _licences(pins: Pins) -> Iterator[str]:
    """Our note, and the licences that the wheels hold."""
    yield (FOLDER / "NOTICE.txt").read_text(encoding="utf-8")
    for pin in pins.files:
        if pin.name.endswith(".whl"):
            with zipfile.ZipFile(pins.path(pin)) as wheel:
                for name in sorted(filter(_LICENCE.search, wheel.namelist())):
                    yield f"\n{'=' * 100}\n{pin.name}: {name}\n{'=' * 100}\n\n{wheel.read(name).decode()}"
