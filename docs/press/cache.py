"""Where the results of the build lie between two builds, and what they depend on.

The blocks of the pages are executed once and kept in `.cache/posenc` at the root of
the project (or in the folder that the environment variable POSENC_CACHE names). An entry's key says
everything that its content depends on, so nothing is ever updated: a change of code, of posenc or of a
library makes another key.

    store = Store("blocks")                         # one folder of entries: .cache/posenc/blocks
    entry = key(digest(), source, kernel_name)      # strings and bytes, in this order
    text = store.get(entry)                         # None where there is none, or where it is damaged
    store.put(entry, text)                          # atomic
    store.prune()                                   # drops what nothing has asked for in 30 days

`digest()` covers the Python version and the versions of the libraries that compute or draw;
`digest("fonttools")` adds more distributions, `digest(files=[...])` more files. What of posenc counts says
dependencies.py.
"""

import functools
import hashlib
import os
import platform
import tempfile
import time
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from press import BookError

PRESS = Path(__file__).resolve().parent
ROOT = PRESS.parents[1]
PACKAGE = ROOT / "posenc"

# What computes and what draws. Everything else can change without changing a result.
LIBRARIES = (
    "numpy", "torch", "array-api-compat", "matplotlib", "contourpy", "cycler", "fonttools", "kiwisolver", "pillow",
)  # fmt: skip


def folder() -> Path:
    """The folder of all caches; it is made when first written to."""
    return Path(os.environ.get("POSENC_CACHE") or ROOT / ".cache" / "posenc").absolute()


def environment() -> dict[str, str]:
    """What code is run with in a process of its own: this posenc, this cache, sets in one order."""
    paths = [str(ROOT), str(PRESS.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(paths), "POSENC_CACHE": str(folder()), "PYTHONHASHSEED": "0"}


def shown(path: Path) -> str:
    """A file as people name it: 'docs/en/order.md'."""
    return (path.relative_to(ROOT) if path.is_relative_to(ROOT) else path).as_posix()


def key(*parts: str | bytes) -> str:
    """A name for everything that `parts` say: SHA-256 over them, each with its length, as 64 hex digits."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()


@functools.cache
def version(distribution: str) -> str:
    """The installed version of a distribution, "" where it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def digest(*more: str, files: Iterable[Path] = ()) -> str:
    """One name for what a result depends on besides its code and posenc: Python, libraries, `files`."""
    parts: list[str | bytes] = [
        platform.python_implementation(),
        platform.python_version(),
        platform.machine(),
    ]
    for name in (*LIBRARIES, *more):
        parts += [name, version(name)]
    for path in files:
        parts += [path.name, path.read_bytes()]
    return key(*parts)


def write(path: Path, data: bytes) -> None:
    """Writes a file, whole or not at all, whatever happens meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


class Store:
    """One kind of results, a file an entry. Writing is atomic; a damaged entry counts as none."""

    def __init__(self, name: str, suffix: str = ".json", root: Path | None = None) -> None:
        self.folder = (root or folder()) / name
        self.suffix = suffix

    def path(self, entry: str) -> Path:
        return self.folder / f"{entry}{self.suffix}"

    def get(self, entry: str) -> str | None:
        """The text kept under `entry`, or None."""
        path = self.path(entry)
        try:
            data = path.read_bytes()
            os.utime(path)  # still in use: `prune` goes by this time
        except OSError:
            return None
        checksum, _, body = data.partition(b"\n")
        if checksum.decode("ascii", "replace") != hashlib.sha256(body).hexdigest():
            return None
        return body.decode()

    def clear(self) -> None:
        """Drops everything."""
        for path in self.folder.glob(f"*{self.suffix}"):
            path.unlink(missing_ok=True)

    def put(self, entry: str, text: str) -> None:
        """Keeps `text` under `entry`: the whole of it or nothing, whatever happens meanwhile."""
        body = text.encode()
        try:
            write(self.path(entry), hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        except OSError as error:
            raise BookError(
                f"the cache {self.folder} cannot be written: {error.strerror}; POSENC_CACHE names another folder"
            ) from None

    def prune(self, days: float = 30, most: int = 5000) -> None:
        """Drops what no build has used for `days`, and the longest unused beyond the `most` newest.

        One book has a few hundred entries, so `most` never takes away what the other language has just used.
        """
        now = time.time()
        used: list[tuple[float, Path]] = []
        for path in self.folder.glob("*"):
            try:
                used.append((path.stat().st_mtime, path))
            except OSError:  # another process was faster
                continue
        entries = sorted((item for item in used if item[1].suffix in (self.suffix, ".tmp")), reverse=True)
        for rank, (time_used, path) in enumerate(entries):
            if now - time_used > days * 86400 or rank >= most:
                path.unlink(missing_ok=True)
