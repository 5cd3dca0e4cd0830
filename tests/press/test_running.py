"""The build runs blocks once, names what is wrong by page and line, and draws the same figure every time."""

import contextlib
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from bs4 import BeautifulSoup
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort
from press import behind, cache, figures, pages
from press.running import book_blocks, execute
from press.running import dependencies as reach

DRAWING = """\
import matplotlib.pyplot as plt
import numpy as np

fig, ax = plt.subplots()
ax.plot(np.sin(np.arange(30) / 3), "k--", marker="o", label="正弦 sin")
ax.imshow(np.eye(3), extent=(0, 5, -1, 0), aspect="auto")
ax.set_title("第 0 对的波形，从快到慢")
ax.set_xlabel("位置 t（从 0 开始）")
ax.set_ylabel("取值")
ax.text(1, -0.5, "0.123456")
ax.legend()
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSENC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    monkeypatch.delenv("POSENC_EXECUTE", raising=False)
    monkeypatch.setattr(behind, "SERVING", False)


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    outcome = execute.run([DRAWING])
    assert outcome.error is None
    return outcome.figures[0][0]


def page(*codes: str, text: str = "Text.") -> pages.Page:
    blocks_of_page = [f"```python\n{code}\n```\n" for code in codes]
    return pages.parse("\n".join([text, "", *blocks_of_page]), Path("a.md"))


def faults(*codes: str, text: str = "Text.", runs: book_blocks.Runs | None = None) -> list[str]:
    """What a build says of a page."""
    return book_blocks.report(book_blocks.prepare({"a.md": page(*codes, text=text)}, runs))


# --- The cache ----------------------------------------------------------------------------------------------


def test_a_store_keeps_what_it_is_given_and_nothing_damaged() -> None:
    store = cache.Store("things")
    assert store.get("a") is None
    store.put("a", "text\n文字")
    assert store.get("a") == "text\n文字"
    assert cache.Store("others").get("a") is None
    whole = store.path("a").read_bytes()
    for damage in (b"", b"x", b"0" * 64 + b"\ntext", whole[:-1]):
        store.path("a").write_bytes(damage)
        assert store.get("a") is None
    store.put("a", "again")
    assert store.get("a") == "again"


def test_pruning_keeps_what_is_used() -> None:
    store = cache.Store("things")
    for age, name in enumerate("abcd"):
        store.put(name, name)
        os.utime(store.path(name), times=(time.time() - age * 86400,) * 2)
    store.get("d")  # the other language has just used it
    store.prune(days=1.5)
    assert [name for name in "abcd" if store.get(name)] == ["a", "b", "d"]
    os.utime(store.path("a"), times=(time.time() - 100,) * 2)
    store.prune(most=2)
    assert [name for name in "abcd" if store.get(name)] == ["b", "d"]


def test_keys_tell_apart_parts_libraries_and_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert len({cache.key("ab", "c"), cache.key("a", "bc"), cache.key("abc"), cache.key("abc", "")}) == 4
    (tmp_path / "a").write_text("1")
    seen = {cache.digest(), cache.digest("nbconvert"), cache.digest(files=[tmp_path / "a"])}
    monkeypatch.setattr(cache, "version", lambda name: "0" if name == "numpy" else "1")
    assert len(seen | {cache.digest()}) == 4


# --- What is run, and when ---------------------------------------------------------------------------------


def test_only_what_has_changed_is_run(ran: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    faults("x = 1  # a comment", "y = 2")
    assert ran == ["x = 1  # a comment\n", "y = 2\n"]
    faults("x = 1  # 注释", "y = 2", text="Other prose.\n\nAnd more.")
    assert len(ran) == 2
    faults("x = 1", "y = 3")
    assert ran[2:] == ["y = 3\n"]
    book_blocks.prepare({"a.md": page("z = 1"), "b.md": page("z = 1")})
    assert ran[3:] == ["z = 1\n"]
    for version in ("2", "1", "2"):  # of a library
        monkeypatch.setattr(cache, "version", lambda name, version=version: version)
        faults("x = 1")
    assert len(ran) == 6
    said = "def f():\n    {!r}\n\nprint(f{})"
    for told, asked, count in [
        ("One.", "()", 7),
        ("一。", "()", 7),
        ("One.", ".__doc__", 8),
        ("一。", ".__doc__", 9),
    ]:
        faults(said.format(told, asked))
        assert len(ran) == count


def test_a_failure_is_known_to_both_books_and_run_again_by_the_next_build(ran: list[str]) -> None:
    for count in (1, 2):
        for _ in ("en", "zh"):
            assert "ZeroDivisionError" in faults("1 / 0")[0]
            assert len(ran) == count
        book_blocks.Runs().failures.clear()


def test_a_book_ends_with_a_build_that_is_killed() -> None:
    program = "import multiprocessing, os, sys, time\nfrom press import books\n"
    program += "def book():\n    books.end_with_parent()\n    print(1, flush=True)\n    time.sleep(60)\n"
    program += "multiprocessing.get_context('fork').Process(target=book).start()\n"
    program += "time.sleep(0.5)\nos._exit(9)\n"
    command = [sys.executable, "-c", program]
    # it returns when nobody holds its output any more
    done = subprocess.run(command, cwd=cache.PRESS.parent, capture_output=True, check=False, timeout=30)
    assert (done.returncode, done.stdout) == (9, b"1\n")


def test_what_ran_while_posenc_was_edited_is_not_kept(
    ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as edited:
        edited.setattr(reach.Sources, "current", lambda self: False)
        faults("x = 1")
    for _ in range(2):
        faults("x = 1")
    assert len(ran) == 2


def test_an_entry_that_makes_no_sense_is_run_again(ran: list[str]) -> None:
    runs = book_blocks.Runs()
    faults("x = 1", runs=runs)
    for nonsense in ("[]", "{", '{"other": 1}'):
        runs.store.put(runs.key(["x = 1\n"]).own, nonsense)
        faults("x = 1")
    assert len(ran) == 4


def test_where_a_unit_is_cut_and_its_own_source_matter() -> None:
    key = book_blocks.Runs().key
    assert key(["x = 1\ny = 2\n"]) != key(["x = 1\n", "y = 2\n"])
    assert key(["import inspect  # a\n"]) != key(["import inspect  # b\n"])
    assert key(["x = \n"]) != key(["x = +\n"])


def test_both_books_run_a_block_once_and_a_page_that_has_run_is_not_read_again(ran: list[str]) -> None:
    en, zh = page("x = 1", "word = 'en'"), page("x = 1", "word = 'zh'", "1 / 0")
    runs = book_blocks.Runs()
    assert runs.jobs(book_blocks.twins({"a.md": en}, {"a.md": zh})) == [
        [["x = 1\n"]],
        [["word = 'en'\n"], ["word = 'zh'\n"]],
        [["1 / 0\n"]],
    ]
    runs.run(book_blocks.twins({"a.md": en}, {"a.md": zh}))
    assert ran == ["x = 1\n", "word = 'en'\n", "word = 'zh'\n", "1 / 0\n"]
    for book in (en, zh):
        runs.note(book)
    again = book_blocks.Runs()
    assert [again.has_run(write(book)) for book in (en, zh)] == [True, False]
    again.store.path(again.key(["x = 1\n"]).wide).unlink(missing_ok=True)
    again.store.path(again.key(["x = 1\n"]).own).unlink()
    assert not again.has_run(write(en))


def write(page: pages.Page) -> Path:
    path = cache.folder() / "a.md"
    path.write_text(page.text, encoding="utf-8")
    return path


def test_what_twins_share_counts_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two units that share a process may only look up what the first has called."""
    reached = ["posenc/order.py"], list[str]()
    outcomes = [execute.Outcome([""], [[]], None, files) for files in reached]
    monkeypatch.setattr(execute.Interpreter, "run", lambda self, units: outcomes)
    runs = book_blocks.Runs()
    runs.run([[["x = 1\n"], ["x = 2\n"]]])
    for code in ("x = 1\n", "x = 2\n"):
        assert runs.store.get(runs.key([code]).own) is None
        assert runs.store.get(runs.key([code]).wide) is not None


# --- What of posenc a block depends on ----------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small posenc in which something is changed: `one` asks for `two`, and `three` stands alone."""
    folder = tmp_path / "posenc"
    folder.mkdir()
    for name, text in {
        "__init__": "from posenc.one import f\nfrom posenc.three import g\n",
        "one": "from posenc.two import value\n\ndef f(): return value\n",
        "two": "value = 1\n",
        "three": "def g(): return 3\n",
    }.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("file", "text", "changed"),
    [
        ("one.py", "def f(): return 2\n", {"f", "one"}),
        ("two.py", "value = 2\n", {"f", "one"}),
        ("two.py", "class Value:\n    width = 2\nvalue = Value.width\n", {"f", "one"}),
        ("three.py", "def g(): return 2\n", {"g"}),
        # another way to the same name
        ("__init__.py", "from posenc.one import f\nfrom posenc.two import value as g\n", {"g"}),
        ("table.csv", "1,2\n", {"f", "one", "g"}),
    ],
)
def test_a_change_is_one_of_the_blocks_that_reach_it(
    package: Path, file: str, text: str, changed: set[str]
) -> None:
    units = {
        "none": "x = 1\n",
        "f": "from posenc import f\n",
        "one": "import posenc.one\nposenc.one.f()\n",
        "g": "import posenc\nposenc.g()\n",
    }
    before = book_blocks.Runs(package)
    old = {name: before.key([code]) for name, code in units.items()}
    (package / file).write_text(text)
    after = book_blocks.Runs(package)
    new = {name: after.key([code]) for name, code in units.items()}
    assert {name for name in units if old[name].own != new[name].own} - {"none"} == changed
    assert all(old[name].wide != new[name].wide for name in units)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("class A:\n    def f(self, x=1):\n        'Says.'\n        return 2\n", False),  # it does otherwise
        ("class A:\n    def f(self, x=2):\n        'Says.'\n        return 1\n", True),
        ("class A:\n    def f(self, x=1):\n        'Says so.'\n        return 1\n", True),
        ("class A:\n    y = 1\n    def f(self, x=1):\n        'Says.'\n        return 1\n", True),
        ("x = = 1", True),
    ],
)
def test_what_a_package_says_of_itself_is_not_what_its_functions_do(
    package: Path, text: str, said: bool
) -> None:
    (package / "two.py").write_text("class A:\n    def f(self, x=1):\n        'Says.'\n        return 1\n")
    before = reach.Sources(package).interface
    (package / "two.py").write_text(text)
    assert (reach.Sources(package).interface != before) == said


def test_a_planted_result_is_seen_on_a_page_in_spite_of_the_cache(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A book is built, a formula goes wrong, the book is built again: its page says so."""
    monkeypatch.setattr(cache, "ROOT", package.parent)  # where its interpreter finds posenc
    text = "```python\nfrom posenc import f\nprint(f())\n```\n<!--pytest-codeblocks:expected-output-->\n"
    text += "```text\n1\n```\n```python\nimport os\nos._exit(3)\n```\n"
    book = {"a.md": pages.parse(text, Path("a.md"))}
    crash = "a.md:9: The block ends the interpreter: exit status 3"
    assert book_blocks.report(book_blocks.prepare(book, book_blocks.Runs(package))) == [crash]
    (package / "two.py").write_text("value = 2\n")
    fault, *rest = book_blocks.report(book_blocks.prepare(book, book_blocks.Runs(package)))
    assert fault.startswith("a.md:6: the block does not print what the page shows")
    assert rest == [crash]


def test_a_module_that_is_reached_in_secret_makes_the_result_depend_on_all(ran: list[str]) -> None:
    """What no reading of the code finds, its run shows."""
    secret = "import builtins\nimport posenc.naive\nload = vars(builtins)['__im' + 'port__']\n"
    secret += "other = load('posenc.order').order\nother.same_bag(['a'], ['a'])\n"
    runs = book_blocks.Runs()
    runs.run([[[secret]]])
    keys, outcome = runs.key([secret]), runs.outcome([secret])
    assert outcome.error is None, outcome.error
    assert "posenc/order.py" in outcome.reached
    assert "posenc.order" not in runs.sources.reach(secret)[0]
    assert runs.store.get(keys.own) is None
    assert runs.store.get(keys.wide) is not None
    book_blocks.Runs().run([[[secret]]])
    assert len(ran) == 1


@pytest.mark.parametrize(
    ("code", "reached"),
    [
        ("x = 1", set()),
        ("from posenc import alibi_bias", {"alibi"}),
        ("from posenc import alibi_bias as bias", {"alibi"}),
        ("import posenc\nposenc.alibi_bias(2, 3)", {"alibi"}),
        ("import posenc as p\np.alibi.alibi_bias(2, 3)", {"alibi"}),
        ("from posenc import alibi\nalibi.alibi_bias(2, 3)", {"alibi"}),
        ("def f():\n    from posenc.alibi import alibi_bias\n", {"alibi"}),
        ("from posenc.nn import AlibiBias", {"alibi", "nn.alibi"}),
        ("from posenc import plot\nplot.alibi_maps()", {"alibi", "plot.alibi"}),
        ("from posenc import *", {"alibi", "nn.rotary", "plot.masks", "experiments"}),
        ("import posenc\ngetattr(posenc, name)", {"alibi", "nn.rotary", "plot.masks"}),
        ("import posenc\nother = posenc", {"alibi", "nn.rotary", "plot.masks"}),
        ("import importlib\nimportlib.import_module(f'posenc.{name}')", {"alibi", "nn.rotary"}),
        ("exec('import posenc')", {"alibi", "nn.rotary"}),
        ("from posenc import no_such_name", {"alibi", "nn.rotary"}),
        ("import posenc\nx = = 1", {"alibi", "nn.rotary"}),
    ],
)
def test_code_is_followed_to_the_modules_that_it_uses(code: str, reached: set[str]) -> None:
    found = {name.removeprefix("posenc.") for name in reach.sources().reach(code)[0]}
    assert reached <= found
    assert ("masks" in found) == ("nn.rotary" in reached)  # all, or not


# --- How a block is run ------------------------------------------------------------------------------------

MESS = """\
import os, random, warnings
import matplotlib.pyplot as plt, numpy as np, torch
plt.rcParams["font.size"] = 40
plt.rcParams["lines.linewidth"] = 9
plt.figure()
np.set_printoptions(precision=1)
np.seterr(all="raise")
torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")
torch.set_printoptions(precision=1)
torch.set_grad_enabled(False)
torch.set_num_threads(2)
random.random(), np.random.rand(), torch.rand(1)
warnings.simplefilter("ignore")
open("left", "w").close()
os.environ["LEFT"] = "1"
os.mkdir("sub")
os.chdir("sub")
secret = 1
"""
LOOK = """\
import os, random, warnings
import matplotlib.pyplot as plt, numpy as np, torch
print(plt.rcParams["font.size"], plt.rcParams["lines.linewidth"], plt.get_fignums(), os.listdir())
print(np.array([1 / 3]), np.geterr()["over"], torch.tensor([1 / 3]), torch.is_grad_enabled())
print(torch.get_num_threads(), random.random(), np.random.rand(), torch.rand(1), "secret" in globals())
print(warnings.filters[-1][0], __name__, torch.zeros(1).device, "LEFT" in os.environ)
"""


def test_what_ran_before_changes_nothing_neither_here_nor_in_the_next_block() -> None:
    def own() -> tuple[object, ...]:
        return (random.random(), np.random.rand(), torch.rand(1).item(), torch.get_default_dtype(),
                torch.is_grad_enabled(), torch.get_num_threads(), os.getcwd())  # fmt: skip

    def seeded() -> None:
        random.seed(5)
        np.random.seed(5)
        torch.manual_seed(5)

    alone = execute.run([LOOK])
    assert alone.error is None, alone.error
    for shown in ("10.0 1.5 [] []\n", "__main__ cpu False\n"):
        assert shown in alone.output
    assert "torch" not in alone.output
    seeded()
    expected = own()
    seeded()
    assert execute.run([MESS]).error is None
    assert own() == expected
    assert execute.run([LOOK]).output == alone.output
    assert execute.run([LOOK], seed=1).output != alone.output


@pytest.mark.parametrize(
    ("code", "random"),
    [
        ("x = 1", False),
        ("import numpy as np\nnp.random.default_rng(0).normal()", False),
        ("import torch\ntorch.randn(2, generator=torch.Generator().manual_seed(0))", False),
        ("import numpy as np\nnp.random.default_rng()", True),
        ("import numpy as np\nnp.random.rand()", True),
        ("import torch\ntorch.randn(2)", True),
        ("import random\nrandom.random()\n1 / 0", True),
        ("import torch\ntorch.manual_seed(0)\ntorch.randn(2)", False),
        ("import torch\ntorch.manual_seed(seed=3)\ntorch.randn(2)", False),
        ("import random\nimport numpy as np\nrandom.seed(1), np.random.seed(1)\nrandom.random()", False),
        ("import random\nimport numpy as np\nrandom.seed(1)\nnp.random.rand()", True),
        ("import torch\ntorch.randn(2)\ntorch.manual_seed(0)", True),
        ("import torch\ntorch.randn(2)\ntorch.manual_seed(0)\ntorch.randn(2)", True),
        ("import torch\nwith torch.random.fork_rng():\n    torch.manual_seed(3)\n    torch.randn(2)", False),
        ("import torch\nwith torch.random.fork_rng():\n    torch.manual_seed(3)\ntorch.randn(2)", True),
        ("from torch import *\nold = get_rng_state()\nmanual_seed(3)\nset_rng_state(old)\nrand(2)", True),
        ("import random\nrandom.seed(None)", True),
        ("import numpy as np\nnp.random.seed(None)", True),
    ],
)
def test_a_block_that_another_seed_may_change_says_so(code: str, random: bool) -> None:
    """Under pytest it is run again, with another seed; what the others did is taken from the build."""
    assert execute.run([code + "\n"]).random == random


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("while True:\n    pass\n", " of computing"),
        ("import time\ntime.sleep(1000)\n", ""),
        ("import time\nwhile True:\n    try:\n        time.sleep(1)\n    except Exception: pass\n", ""),
    ],
)
def test_a_block_that_never_ends_is_stopped_and_named(
    code: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "TIMEOUT" if said else "WALL", 0.3)
    error = execute.run(["x = 1\n", code]).error
    assert error is not None
    assert (error["type"], error["message"]) == ("TakesTooLong", f"it has not ended after 0.3 seconds{said}")
    assert 1 < error["line"] <= 1 + code.count("\n")
    assert execute.run(["x = 1\n"]).error is None  # no alarm is left behind


def test_a_busy_machine_stops_no_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "TIMEOUT", 0.3)
    assert execute.run(["import time\ntime.sleep(0.6)\n"]).error is None


def test_units_run_in_a_process_of_their_own_and_the_next_go_on_after_a_crash(drawn: dict[str, str]) -> None:
    interpreter = execute.Interpreter()

    def error(code: str) -> tuple[str, int]:
        found = interpreter.run([[code]])[0].error
        assert found is not None
        return f"{found['type']}: {found['message']}", found["line"]

    def output(code: str) -> str:
        return interpreter.run([[code]])[0].output

    with contextlib.closing(interpreter):
        assert output("import posenc\nposenc.mark = 1\nprint(posenc.__name__)\n") == "posenc\n"
        assert output("import posenc\nprint(hasattr(posenc, 'mark'))\n") == "False\n"
        assert output("import os\nos.system('echo not me')\nprint(1)\n") == "1\n"
        assert "EOFError" in error("input()\n")[0]
        assert error("import ctypes\nctypes.string_at(0)\n")[1] == 2
        # another process, another hash seed, another block before it: the same bytes
        assert error("1 / 0\n") == ("ZeroDivisionError: division by zero", 1)
        assert interpreter.run([[DRAWING]])[0].figures[0][0] == drawn
        one, crash, two = interpreter.run([["print(1)\n"], ["import os\nos._exit(3)\n"], ["print(2)\n"]])
        assert (one.output, two.output) == ("1\n", "2\n")
        assert crash.error is not None
        assert crash.error["message"] == "exit status 3"
        # Python itself gets no chance to look at the clock
        own = "import __main__\n__main__.WALL = __main__.GRACE = 0.3\nlimit = __main__._limited()\n"
        said, line = error(f"{own}limit.__enter__()\nsum(range(10**12))\n")
        assert "Timeout (0:00:00.600000)" in said
        assert line == 5


def test_what_lies_in_the_temporary_folder_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('not the library')\n")
    monkeypatch.setattr(execute.tempfile, "tempdir", str(tmp_path))
    with contextlib.closing(execute.Interpreter()) as interpreter:
        assert (
            interpreter.run([["import random\nprint(random.Random(0).random() < 1)\n"]])[0].output == "True\n"
        )


def test_a_warm_process_takes_posenc_as_it_is_now(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "ROOT", package.parent)
    with contextlib.closing(execute.Interpreter()) as interpreter:
        for value in ("1", "2"):
            (package / "two.py").write_text(f"value = {value}  # {'x' * int(value)}\n")
            interpreter.fresh()
            assert interpreter.run([["from posenc import f\nprint(f())\n"]])[0].output == f"{value}\n"


def test_a_continued_block_sees_what_came_before_and_draws_its_own_figure() -> None:
    start = "from __future__ import annotations\nimport matplotlib.pyplot as plt\n"
    outcome = execute.run([start + "plt.plot([1])\nprint(1)\n", "plt.plot([2])\ndef f(x: nowhere): ...\n"])
    assert outcome.error is None
    assert outcome.outputs == ["1\n", ""]
    assert [len(drawn) for drawn in outcome.figures] == [1, 1]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1\ndef f():\n    return x / 0\nf()", "a.md:6: ZeroDivisionError: division by zero\n    return"),
        ("x = (1,", "a.md:4: SyntaxError: '(' was never closed\n    x = (1,"),
        ("import numpy\nnumpy.zeros(3).reshape(2)", "a.md:5: ValueError: cannot reshape array"),
        ("import numpy\nnumpy.float64(1) / 0", "a.md:5: RuntimeWarning: divide by zero"),
        ("import posenc\nposenc.one_hot_encoding(-1)", "a.md:5: ValueError: "),
        ("exit(3)", "a.md:4: SystemExit: 3"),
        ("import nowhere", "a.md:4: ModuleNotFoundError: No module named 'nowhere'\n    import nowhere"),
        (r"print('\udc80')", "a.md:3: UnicodeEncodeError: "),  # it cannot be written into a page
        ("print('two')", "a.md:3: the block prints and has no expected output; it printed\n    two"),
        ("import matplotlib.pyplot as plt\nplt.figure()", "a.md:3: the block draws, but no <!-- figure"),
        ("import matplotlib.pyplot as p\np.figure()\np.figure()\np.show()", "a.md:3: the block leaves 2"),
    ],
)
def test_a_fault_is_named_by_page_and_line(ran: list[str], code: str, message: str) -> None:
    (fault,) = faults(code)
    assert fault.startswith(message), fault


def test_faults_of_output_and_figure_are_named_by_their_line(ran: list[str]) -> None:
    output = "<!--pytest-codeblocks:expected-output-->\n```text\n{}```\n"
    first, second = "```python\nprint(1)\n```\n", "<!--pytest-codeblocks:cont-->\n```python\nprint(2)\n```\n"

    def said(text: str) -> list[str]:
        return book_blocks.report(book_blocks.prepare({"a.md": pages.parse(text, Path("a.md"))}))

    assert said(first + second + output.format("1\n2\n")) == []
    assert said(first + second + output.format("1\n3\n") + "<!-- figure: none -->\n") == [
        "a.md:9: the block does not print what the page shows (- page, + printed)\n      1\n    - 3\n    + 2",
        "a.md:13: a figure comment, but the block leaves no figure open",
    ]
    (fault,) = said(first + output.format("1\n2\n") + second)
    assert fault.startswith("a.md:10: this block prints, and its expected output stands before it")


@pytest.mark.parametrize(
    ("draws", "true", "false"),
    [
        ("plt.plot([(k - 30) ** 2 / 64 for k in range(200)])", "from 14.1 to 446", "from 14.2 to 447"),
        ("plt.imshow([[0.25, 0.5], [0.75, 1]])", "25 % and 0.75", "35 % and 0.76"),
        ("plt.bar([0, 1], [0.3, 0.72])", "0.30 and 0.72", "0.31 and 0.82"),
        ("plt.scatter([1], [2.5], label='1 234')", "2.5, called 1 234", "2.9, called 1 235"),
    ],
)
def test_a_caption_says_what_its_drawing_shows(ran: list[str], draws: str, true: str, false: str) -> None:
    text = f"```python\nimport matplotlib.pyplot as plt\n\n{draws}\nplt.legend()\n```\n"
    text = text if "label" in draws else text.replace("plt.legend()\n", "")
    for caption, description, faults in ((true, false, 2), (false, true, 2), (true, true, 0)):
        comments = f"<!-- figure: {caption} -->\n<!-- description: {description} -->\n"
        said = book_blocks.report(book_blocks.prepare({"a.md": pages.parse(text + comments, Path("a.md"))}))
        assert [fault.partition("neither")[2] for fault in said] == [
            " in the drawing nor in its block"
        ] * faults


# --- Drawings -----------------------------------------------------------------------------------------------


def test_a_drawing_is_light_and_takes_fonts_and_black_from_the_page(drawn: dict[str, str]) -> None:
    svg = drawn["svg"]
    assert svg.startswith("<svg ")
    assert len(svg) < 15_000
    foreign = "<style <metadata <?xml xmlns font-family #000000 rotate(-0 DejaVu id="
    assert [word for word in foreign.split() if word in svg.replace(f' id="{figures.ID}', "")] == []
    for own in ("stroke:currentColor", ">第 0 对的波形，从快到慢</text>", ">0.123456</text>"):
        assert own in svg
    root = BeautifulSoup(svg, "html.parser").svg
    assert root is not None
    assert root["fill"] == "currentColor"
    left, top, width, height = map(float, str(root["viewbox"]).split())
    assert (left, top) == (0, 0)
    assert 345.6 <= width < 352  # as wide as the figure, or as what is drawn
    assert 205 < height < 225
    assert "width" not in root.attrs
    numbers = re.findall(r'\b(?:d|x|y)="([^"]*)"', svg)
    assert not re.search(r"\.\d{3}", " ".join(numbers))
    assert not re.search(r'[^:]href="(?!#|data:image/png)', svg)


def test_two_figures_on_a_page_share_no_id_and_their_captions_are_text(drawn: dict[str, str]) -> None:
    svg = drawn["svg"]
    html = figures.figure(svg, "a < <i>b</i>", "二", "plot-1") + figures.figure(svg, "三", name="plot-2")
    soup = BeautifulSoup(html, "html.parser")
    ids = [str(tag["id"]) for tag in soup.find_all(id=True)]
    assert len(ids) > 6
    assert len(ids) == len(set(ids))
    references = re.findall(r'(?:xlink:href="|url\()#([^")]+)', html)
    assert references
    assert set(references) <= set(ids)
    first, second = soup.find_all("svg")
    assert (first["role"], first["aria-labelledby"]) == ("img", "plot-1-title plot-1-desc")
    assert [tag.get_text() for tag in first.find_all(["title", "desc"])] == ["a < <i>b</i>", "二"]
    assert second["aria-labelledby"] == "plot-2-title"
    assert [tag.get_text() for tag in soup.find_all("figcaption")] == ["a < <i>b</i>", "三"]


def test_a_description_is_made_of_the_labels(drawn: dict[str, list[dict[str, object]]]) -> None:
    assert figures.described(drawn["axes"], "zh") == (
        "第 0 对的波形，从快到慢。横轴：位置 t（从 0 开始）。纵轴：取值。图例：正弦 sin。"
    )
    english = [{"title": "", "x": "position t", "y": "value", "legend": ["sine", "cosine"]}] * 2
    assert figures.described(english, "en") == (
        "Horizontal axis: position t. Vertical axis: value. Legend: sine, cosine."
    )
    assert figures.described([], "en") == ""


def test_chinese_is_measured_one_em_a_character() -> None:
    with execute.isolated():
        figure = plt.figure(dpi=72)
        renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
        widths = [
            figure.text(0, 0, text, fontsize=10).get_window_extent(renderer).width
            for text in ("词元", "词元词元", "（，）", "sin 词元", "sin ")
        ]
        assert widths[:3] == pytest.approx([20, 40, 30], abs=1)
        assert widths[3] == pytest.approx(widths[4] + 20, abs=3)


def test_the_measuring_font_is_the_same_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = figures.measuring_font()
    monkeypatch.setenv("POSENC_CACHE", str(tmp_path / "other"))
    second = figures.measuring_font()
    assert first != second
    assert first.read_bytes() == second.read_bytes()


# --- A site -------------------------------------------------------------------------------------------------

PAGE = """\
---
title: 甲
description: 乙
---

# 甲 {#a}

```python
import matplotlib.pyplot as plt

plt.plot([1, 2])
plt.ylabel("隐藏")
print(1)
```

<!--pytest-codeblocks:expected-output-->

```text
1
```

<!-- figure: 一条线 -->
<!-- description: 从一到二 -->
<!-- holds: rises(solid); last(solid) == 2 -->

??? question "问"

    - 一项

        ```python
        import matplotlib.pyplot as plt

        plt.plot([2, 1])
        ```

        <!-- figure: 又一条线 -->

=== "甲"

    ```python
    print(2)
    ```
    <!--pytest-codeblocks:expected-output-->
    ```text
    2
    ```
"""


class Site:
    """A small book that uses the hook."""

    def __init__(self, root: Path) -> None:
        self.root, self.page = root, root / "docs" / "zh" / "index.md"
        for language in ("en", "zh"):
            (root / "docs" / language).mkdir(parents=True)
            (root / "docs" / language / "index.md").write_text(PAGE, encoding="utf-8")
        (root / "mkdocs.yml").write_text(
            "site_name: A\nstrict: true\nplugins: [search]\ndocs_dir: docs/zh\n"
            "theme: {name: material, language: zh, font: false}\n"
            f"hooks: ['{cache.PRESS / 'hook.py'}']\n"
            "markdown_extensions: [attr_list, pymdownx.details, pymdownx.superfences,\n"
            "  {pymdownx.tabbed: {alternate_style: true}}]\n"
        )

    def build(self, command: str = "build") -> str:
        config = load_config(str(self.root / "mkdocs.yml"))
        config.plugins.on_startup(command=command, dirty=False)  # type: ignore[arg-type]
        build(config)
        return (self.root / "site" / "index.html").read_text(encoding="utf-8")

    def edit(self, old: str, new: str) -> None:
        text = self.page.read_text(encoding="utf-8")
        assert old in text
        self.page.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path, ran: list[str]) -> Site:
    return Site(tmp_path / "site")


def test_a_site_has_its_figures_and_outputs(site: Site, ran: list[str]) -> None:
    html = site.build()
    assert len(ran) == 3
    soup = BeautifulSoup(html, "html.parser")
    drawn = soup.find_all("figure", class_="plot")
    assert [figure.figcaption.get_text() for figure in drawn if figure.figcaption] == ["一条线", "又一条线"]
    assert [figure.svg.desc.get_text() for figure in drawn if figure.svg and figure.svg.desc] == ["从一到二"]
    assert drawn[0].find_parent("details") is None
    assert drawn[1].find_parent("li") is not None
    ids = [str(tag["id"]) for tag in soup.find_all(id=True)]
    assert len(ids) == len(set(ids))
    assert [tag.get_text() for tag in soup.select(".output > .highlight code")] == ["1\n", "2\n"]
    assert soup.select(".tabbed-block .output")
    for directive in ("pytest-codeblocks", "<!-- figure", "<!-- description", "rises", "POSENC", "<!--plot"):
        assert directive not in html
    index = (site.root / "site" / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "rises" not in index
    assert "svg" not in index
    assert "一条线" in index, "the caption is found"
    assert index.count("隐藏") == 1, "the label in the code is found, the one in the drawing is not"
    site.edit("- 一项", "- 另一项")
    site.edit("print(2)", "print(1 + 1)")
    site.build()
    assert ran[3:] == ["print(1 + 1)\n"]


def test_without_execution_a_page_is_built_all_the_same(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSENC_EXECUTE", "0")
    site.edit("print(2)", "1 / 0")
    html = site.build()
    assert "<figure" not in html
    assert "POSENC" not in html


@pytest.mark.parametrize(
    ("old", "new", "shown", "said"),
    [
        ("plt.plot([2, 1])", "1 / 0", "32: ZeroDivisionError: division", "index.md:32: ZeroDivisionError"),
        ("title: 甲", "title: 甲: 乙", "<h1", "index.md:2: the front matter is no YAML"),
    ],
)
def test_a_fault_under_serve_is_named_and_does_not_stop(
    site: Site, capfd: pytest.CaptureFixture[str], old: str, new: str, shown: str, said: str
) -> None:
    site.edit(old, new)
    if "index.md:32" in said:  # blocks run behind
        assert "段代码没有运行" in site.build("serve")
        book_blocks.Runs().run(book_blocks.twins({"index.md": pages.read(site.page)}))
    assert shown in site.build("serve")
    assert said in capfd.readouterr().err


def test_a_broken_build_ends_with_all_its_faults(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.edit("        <!-- figure: 又", "            <!-- figure: 又")
    with pytest.raises(Abort):
        site.build()
    assert "index.md:36: the figure comment does not stand in a paragraph" in caplog.text
    site.edit("plt.plot([1, 2])", "plt.plot([1, 2]) / 0")
    site.edit("    print(2)", "    print(3)")
    site.edit("# 甲 {#a}", "# 甲 {#a}\n\n```py\nprint(1)\n```")
    with pytest.raises(Abort):
        site.build()
    for fault in (
        "3 faults in the pages",
        "index.md:8: this block would not be run: its info string is `py`",
        "index.md:15: TypeError: unsupported operand",
        "    plt.plot([1, 2]) / 0",
        "index.md:48: the block does not print what the page shows",
    ):
        assert fault in caplog.text
