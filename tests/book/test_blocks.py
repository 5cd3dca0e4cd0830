"""The build runs blocks once, names what is wrong by page and line, and draws the same figure every time."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from book import blocks, cache, figures, reach
from book import page as pages
from book import run as runner
from bs4 import BeautifulSoup
from check import pages as checks
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

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


class Here:
    """Runs units in this process, which is faster and hides nothing."""

    codes: list[str]
    wait = 0.0

    def run(self, parts: list[str]) -> runner.Outcome:
        self.codes.append("".join(parts))
        time.sleep(self.wait)
        return runner.run(parts)

    def close(self) -> None:
        pass


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The code of the units that had to be run."""
    monkeypatch.setattr(runner, "Interpreter", type("Counted", (Here,), {"codes": (codes := list[str]())}))
    return codes


@pytest.fixture(scope="module")
def svg() -> str:
    outcome = runner.run([DRAWING])
    assert outcome.error is None
    return str(outcome.figures[0][0]["svg"])


def page(*codes: str, text: str = "Text.", name: str = "a.md") -> pages.Page:
    lines = [text, ""]
    for code in codes:
        lines += ["```python", *code.rstrip("\n").split("\n"), "```", ""]
    return pages.parse("\n".join(lines), Path(name))


# --- The cache ----------------------------------------------------------------------------------------------


def test_a_store_keeps_what_it_is_given() -> None:
    store = cache.Store("things")
    assert store.get("a") is None
    store.put("a", "text\n文字")
    assert store.get("a") == "text\n文字"
    assert cache.Store("others").get("a") is None


@pytest.mark.parametrize("damage", [b"", b"x", b"0" * 64 + b"\ntext"])
def test_a_damaged_entry_is_none(damage: bytes) -> None:
    store = cache.Store("things")
    store.put("a", "text")
    store.path("a").write_bytes(damage)
    assert store.get("a") is None
    store.put("a", "again")
    assert store.get("a") == "again"


def test_a_truncated_entry_is_none() -> None:
    store = cache.Store("things")
    store.put("a", "a longer text")
    store.path("a").write_bytes(store.path("a").read_bytes()[:-1])
    assert store.get("a") is None


def test_pruning_keeps_what_is_used() -> None:
    store = cache.Store("things")
    for name in "abcd":
        store.put(name, name)
    for age, name in enumerate("abcd"):
        os.utime(store.path(name), times=(time.time() - age * 86400,) * 2)
    store.get("d")  # the other language has just used it
    store.prune(days=1.5)
    assert [name for name in "abcd" if store.get(name)] == ["a", "b", "d"]
    os.utime(store.path("a"), times=(time.time() - 100,) * 2)
    store.prune(most=2)
    assert [name for name in "abcd" if store.get(name)] == ["b", "d"]


def test_keys_tell_their_parts_apart() -> None:
    assert len({cache.key("ab", "c"), cache.key("a", "bc"), cache.key("abc"), cache.key("abc", "")}) == 4


def test_the_digest_sees_a_change_of_a_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    seen = {cache.digest(), cache.digest("nbconvert"), cache.digest(files=[tmp_path / "a"])}
    monkeypatch.setattr(cache, "version", lambda name: "0" if name == "numpy" else "1")
    assert len(seen | {cache.digest()}) == 4


# --- What is run, and when ---------------------------------------------------------------------------------


def test_a_second_build_runs_nothing(ran: list[str]) -> None:
    book = {"a.md": page("x = 1", "y = 2")}
    blocks.prepare(book)
    assert ran == ["x = 1\n", "y = 2\n"]
    blocks.prepare(book)
    assert len(ran) == 2


def test_prose_layout_and_comments_run_nothing(ran: list[str]) -> None:
    blocks.prepare({"a.md": page("x = 1  # a comment", "y = 2")})
    blocks.prepare({"a.md": page("x = 1  # 注释", "y = 2", text="Other prose.\n\nAnd more.")})
    assert len(ran) == 2


def test_a_change_of_code_runs_that_block_alone(ran: list[str]) -> None:
    blocks.prepare({"a.md": page("x = 1", "y = 2")})
    blocks.prepare({"a.md": page("x = 1", "y = 3")})
    assert ran == ["x = 1\n", "y = 2\n", "y = 3\n"]


def test_a_change_of_a_library_runs_it_again(ran: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("1", "2", "1"):
        monkeypatch.setattr(cache, "version", lambda name, version=version: version)
        blocks.prepare({"a.md": page("x = 1")})
    assert len(ran) == 2


def test_the_same_block_on_two_pages_and_in_two_books_runs_once(ran: list[str]) -> None:
    blocks.prepare({"a.md": page("x = 1"), "b.md": page("x = 1")})
    blocks.prepare({"a.md": page("x = 1")})
    assert len(ran) == 1


def test_a_failure_is_kept_for_the_other_book_and_no_longer(
    ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(cache.BUILD, raising=False)
    for count in (1, 2):
        assert blocks.report(blocks.prepare({"a.md": page("1 / 0")}))
        assert len(ran) == count
    for count in (3, 4):
        monkeypatch.setenv(cache.BUILD, str(count))
        for _ in ("en", "zh"):
            assert "ZeroDivisionError" in blocks.report(blocks.prepare({"a.md": page("1 / 0")}))[0]
            assert len(ran) == count


def test_what_ran_while_posenc_was_edited_is_not_kept(
    ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as edited:
        edited.setattr(reach.Sources, "current", lambda self: False)
        blocks.prepare({"a.md": page("x = 1")})
    for _ in range(2):
        blocks.prepare({"a.md": page("x = 1")})
    assert len(ran) == 2


def test_an_entry_that_makes_no_sense_is_run_again(ran: list[str]) -> None:
    runs = blocks.Runs()
    blocks.prepare({"a.md": page("x = 1")}, runs)
    for nonsense in ("[]", "{", '{"other": 1}'):
        runs.store.put(runs.key(["x = 1\n"]).own, nonsense)
        blocks.prepare({"a.md": page("x = 1")})
    assert len(ran) == 4


def test_where_a_unit_is_cut_and_its_own_source_matter() -> None:
    key = blocks.Runs().key
    assert key(["x = 1\ny = 2\n"]) != key(["x = 1\n", "y = 2\n"])
    assert key(["import inspect  # a\n"]) != key(["import inspect  # b\n"])
    assert key(["x = \n"]) != key(["x = +\n"])


def test_two_books_at_once_run_a_block_once(ran: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Here, "wait", 0.2)
    monkeypatch.setattr(runner, "run", lambda parts: runner.Outcome([""], [[]]))
    monkeypatch.setattr(os, "environ", os.environ | {cache.BUILD: "1"})
    books = [{"a.md": page("x = 1", "en = 1")}, {"a.md": page("x = 1", "zh = 1")}]
    threads = [threading.Thread(target=blocks.prepare, args=(book,)) for book in books]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ran) == ["en = 1\n", "x = 1\n", "zh = 1\n"]


# --- What of posenc a block depends on ----------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of posenc in which something is changed."""
    return Path(
        shutil.copytree(cache.PACKAGE, tmp_path / "posenc", ignore=shutil.ignore_patterns("__pycache__"))
    )


BOOKS = checks.chapters()["en"]
UNITS = [[part.code for part in unit.parts] for source in BOOKS.values() for unit in source.blocks]


def test_a_change_of_any_module_is_a_change_of_the_blocks_that_reach_it(package: Path) -> None:
    """Every module but those that only pass names on: what those say is in the keys, name by name."""
    sources = reach.sources(package)
    reached = [sources.reach("".join(parts))[0] for parts in UNITS]
    for module, file in sources.files.items():
        inside = [parts for parts, modules in zip(UNITS, reached, strict=True) if module in modules]
        outside = [parts for parts, modules in zip(UNITS, reached, strict=True) if module not in modules]
        assert inside or sources.only_passes_on(module), f"no page uses {module}"
        watched = [*inside[:1], *outside[:1]]
        before = [blocks.Runs(package).key(parts) for parts in watched]
        file.write_text(file.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
        after = [blocks.Runs(package).key(parts) for parts in watched]
        assert [a.own != b.own for a, b in zip(before, after, strict=True)] == [True] * len(inside[:1]) + [
            False
        ] * len(outside[:1]), module
        assert all(a.wide != b.wide for a, b in zip(before, after, strict=True))
    # an edit of a formula that few pages use runs few blocks
    assert 0 < sum("posenc.alibi" in modules for modules in reached) < len(UNITS) / 4


def test_what_runs_is_what_can_be_reached() -> None:
    """Formulas, layers, pictures, trainings: a block executes no module but those of its key."""
    reached = set()
    for parts in UNITS[::12]:
        outcome = runner.run(parts)
        reached |= set(outcome.reached)
        assert set(outcome.reached) <= reach.sources().files_of("".join(parts)), "".join(parts)
    assert len(reached) > 10


def test_a_module_that_is_reached_in_secret_makes_the_result_depend_on_all(ran: list[str]) -> None:
    """What no reading of the code finds, its run shows."""
    secret = "import builtins\nimport posenc.naive\nload = vars(builtins)['__im' + 'port__']\n"
    secret += "other = load('posenc.order').order\nother.same_bag(['a'], ['a'])\n"
    runs = blocks.Runs()
    runs.execute([[secret]])
    keys, outcome = runs.key([secret]), runs.outcome([secret])
    assert outcome.error is None, outcome.error
    assert "posenc/order.py" in outcome.reached
    assert "posenc.order" not in runs.sources.reach(secret)[0]
    assert runs.store.get(keys.own) is None
    assert runs.store.get(keys.wide) is not None
    blocks.Runs().execute([[secret]])
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


def test_a_name_that_leads_elsewhere_is_another_key(package: Path) -> None:
    (package / "other.py").write_text("def f(): return 1\ndef g(): return 2\n")
    init = package / "__init__.py"
    keys = set()
    for passed in ("f as alibi_bias", "g as alibi_bias"):
        init.write_text(f"from posenc.other import {passed}\n")
        keys.add(blocks.Runs(package).key(["from posenc import alibi_bias\n"]).own)
    assert len(keys) == 2


def test_a_planted_result_is_seen_on_a_page_in_spite_of_the_cache(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A book is built, a formula goes wrong, the book is built again: its page says so."""
    book = {"alibi.md": BOOKS["alibi.md"]}
    monkeypatch.setattr(runner, "ROOT", package.parent)  # where its interpreter finds posenc
    assert blocks.report(blocks.prepare(book, blocks.Runs(package))) == []
    file = package / "alibi.py"
    text = file.read_text(encoding="utf-8")
    file.write_text(text + "\n_right = alibi_slopes\ndef alibi_slopes(*a, **k): return 2 * _right(*a, **k)\n")
    faults = blocks.report(blocks.prepare(book, blocks.Runs(package)))
    assert any("does not print what the page shows" in fault for fault in faults), faults


# --- How a block is run ------------------------------------------------------------------------------------

MESS = """\
import random, warnings
import matplotlib.pyplot as plt, numpy as np, torch
plt.rcParams["font.size"] = 40
plt.rcParams["lines.linewidth"] = 9
plt.figure()
np.set_printoptions(precision=1)
np.seterr(all="raise")
torch.set_default_dtype(torch.float64)
torch.set_printoptions(precision=1)
torch.set_grad_enabled(False)
torch.set_num_threads(2)
random.random(), np.random.rand(), torch.rand(1)
warnings.simplefilter("ignore")
secret = 1
"""
LOOK = """\
import random, warnings
import matplotlib.pyplot as plt, numpy as np, torch
print(plt.rcParams["font.size"], plt.rcParams["lines.linewidth"], plt.get_fignums())
print(np.array([1 / 3]), np.geterr()["over"], torch.tensor([1 / 3]), torch.is_grad_enabled())
print(torch.get_num_threads(), random.random(), np.random.rand(), torch.rand(1), "secret" in globals())
print(warnings.filters[-1][0], __name__)
"""


def test_what_ran_before_changes_nothing() -> None:
    alone = runner.run([LOOK])
    assert alone.error is None, alone.error
    assert "10.0 1.5 []" in alone.output
    assert "torch" not in alone.output
    assert "__main__" in alone.output
    runner.run([MESS])
    assert runner.run([LOOK]).output == alone.output
    assert runner.run([LOOK], seed=1).output != alone.output


def test_a_block_writes_into_a_folder_of_its_own() -> None:
    mess = "import os, torch\nopen('left', 'w').close()\nos.environ['LEFT'] = '1'\n"
    mess += "torch.set_default_device('meta')\nos.mkdir('sub')\nos.chdir('sub')\n"
    here = os.getcwd()
    assert runner.run([mess]).error is None
    assert os.getcwd() == here
    look = "import os, torch\nprint(os.listdir(), 'LEFT' in os.environ, torch.zeros(1).device)\n"
    assert runner.run([look]).output == "[] False cpu\n"


ENDLESS = {
    "pass": "while True:\n    pass\n",
    "sleep": "import time\ntime.sleep(1000)\n",
    "stubborn": "import time\nwhile True:\n    try:\n        time.sleep(1)\n    except Exception: pass\n",
}


@pytest.mark.parametrize("code", ENDLESS.values(), ids=list(ENDLESS))
def test_a_block_that_never_ends_is_stopped_and_named(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "TIMEOUT", 0.5)
    outcome = runner.run(["x = 1\n", code])
    assert outcome.error is not None
    assert outcome.error["type"] == "TakesTooLong"
    assert outcome.error["message"] == "it has not ended after 0.5 seconds"
    assert 1 < outcome.error["line"] <= 1 + code.count("\n")
    assert runner.run(["x = 1\n"]).error is None  # no alarm is left behind


def test_a_block_that_lets_nothing_stop_it_ends_its_interpreter() -> None:
    code = "x = 1\nsum(range(10**12))\n"  # Python itself gets no chance to look at the clock
    program = f"from book import run\nrun.TIMEOUT, run.GRACE = 1.0, 2.0\nrun.run([{code!r}])\n"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=cache.HOOKS, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert re.search(r'File "<block>", line 2 in <module>', done.stderr)


def test_one_interpreter_runs_all_and_the_next_goes_on_after_a_crash() -> None:
    interpreter = runner.Interpreter()
    try:
        outputs = [
            interpreter.run([code])
            for code in (
                "print(1)\n",
                "import os\nos.system('echo not me')\nprint(input)\n",
                "import os\nos._exit(3)\n",
            )
        ]
        assert outputs[0].output == "1\n"
        assert outputs[1].output == "<built-in function input>\n"
        assert outputs[2].error
        assert "exit status 3" in outputs[2].error["message"]
        assert interpreter.run(["print(2)\n"]).output == "2\n"
        assert "EOFError" in str(interpreter.run(["input()\n"]).error)
    finally:
        interpreter.close()


def test_what_cannot_be_written_into_a_page_is_an_error_of_its_block() -> None:
    outcome = runner.run(["print('\\udc80')\n"])
    assert outcome.error is not None
    assert outcome.error["type"] == "UnicodeEncodeError"
    outcome.to_json().encode()


def test_the_tests_keep_their_own_settings() -> None:
    import random

    import numpy as np
    import torch

    random.seed(5)
    np.random.seed(5)
    torch.manual_seed(5)
    expected = random.random(), np.random.rand(), torch.rand(1).item()
    random.seed(5)
    np.random.seed(5)
    torch.manual_seed(5)
    threads = torch.get_num_threads()
    runner.run([MESS])
    assert (random.random(), np.random.rand(), torch.rand(1).item()) == expected
    assert (torch.get_default_dtype(), torch.is_grad_enabled()) == (torch.float32, True)
    assert torch.get_num_threads() == threads


def test_a_warning_is_an_error_and_show_is_none() -> None:
    assert runner.run(["import numpy as np\nnp.float64(1) / 0\n"]).error == {
        "type": "RuntimeWarning",
        "message": "divide by zero encountered in scalar divide",
        "line": 2,
        "raised": "",
    }
    assert runner.run(["import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()\n"]).error is None


def test_a_continued_block_sees_what_came_before_and_draws_its_own_figure() -> None:
    start = "from __future__ import annotations\nimport matplotlib.pyplot as plt\n"
    outcome = runner.run([start + "plt.plot([1])\nprint(1)\n", "plt.plot([2])\ndef f(x: nowhere): ...\n"])
    assert outcome.error is None
    assert outcome.outputs == ["1\n", ""]
    assert [len(drawn) for drawn in outcome.figures] == [1, 1]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["x = 1", "def f():", "    return x / 0", "f()"],
            "a.md:7: ZeroDivisionError: division by zero\n    return",
        ),
        (["x = (1,"], "a.md:5: SyntaxError: '(' was never closed\n    x = (1,"),
        (["import numpy", "numpy.zeros(3).reshape(2)"], "a.md:6: ValueError: cannot reshape array"),
        (["import posenc", "posenc.one_hot_encoding(-1)"], "a.md:6: ValueError: "),
        (["exit(3)"], "a.md:5: SystemExit: 3"),
        (["import nowhere"], "a.md:5: ModuleNotFoundError: No module named 'nowhere'\n    import nowhere"),
        (["print('two')"], "a.md:4: the block prints and has no expected output; it printed\n    two"),
        (["import matplotlib.pyplot as plt", "plt.figure()"], "a.md:4: the block draws, but no <!-- figure"),
        (
            ["import matplotlib.pyplot as p", "p.figure()", "p.figure()"],
            "a.md:4: the block leaves 2 figures open",
        ),
    ],
)
def test_a_fault_is_named_by_page_and_line(ran: list[str], lines: list[str], message: str) -> None:
    source = page("\n".join(lines), text="Text.\n")
    (fault,) = blocks.report(blocks.prepare({"a.md": source}))
    assert fault.startswith(message), fault


def test_faults_of_output_and_figure_are_named_by_their_line(ran: list[str]) -> None:
    text = page("print(1)\nprint(2)", "x = 1").text.replace(
        "```\n\n```python\nx",
        "```\n\n<!--pytest-codeblocks:expected-output-->\n\n```text\n1\n3\n```\n\n```python\nx",
    )
    source = pages.parse(text + "<!-- figure: none -->\n", Path("a.md"))
    assert blocks.report(blocks.prepare({"a.md": source})) == [
        "a.md:10: the block does not print what the page shows (- page, + printed)\n"
        "      1\n    - 3\n    + 2",
        "a.md:18: a figure comment, but the block leaves no figure open",
    ]


def test_output_of_a_continued_block_stands_after_its_last_line(ran: list[str]) -> None:
    output = "<!--pytest-codeblocks:expected-output-->\n```text\n{}```\n"
    first, second = "```python\nprint(1)\n```\n", "<!--pytest-codeblocks:cont-->\n```python\nprint(2)\n```\n"
    good = pages.parse(first + second + output.format("1\n2\n"), Path("a.md"))
    bad = pages.parse(first + output.format("1\n2\n") + second, Path("a.md"))
    assert not blocks.report(blocks.prepare({"a.md": good}))
    (fault,) = blocks.report(blocks.prepare({"a.md": bad}))
    assert fault.startswith("a.md:10: this block prints, and its expected output stands before it")


def test_a_fresh_interpreter_runs_all_and_survives_a_crash(svg: str) -> None:
    units = {
        "crash": ["import os\nos._exit(3)\n"],
        "failure": ["import os\nos._exit(1)\n"],
        "segfault": ["import ctypes\nctypes.string_at(0)\n"],
        "good": ["import posenc\nprint(posenc.__name__)\n"],
        "drawing": [DRAWING],
        "bad": ["1 / 0\n"],
    }
    interpreter = runner.Interpreter()
    outcomes = {name: interpreter.run(parts) for name, parts in units.items()}
    interpreter.close()
    crash = outcomes["crash"].error
    assert crash is not None
    assert "exit status 3" in crash["message"]
    failure = outcomes["failure"].error  # the status of a Python that ends with an exception
    assert failure is not None
    assert "exit status 1" in failure["message"]
    segfault = outcomes["segfault"].error
    assert segfault is not None
    assert segfault["line"] == 2
    assert outcomes["good"].output == "posenc\n"
    assert outcomes["bad"].error is not None
    assert outcomes["bad"].error["type"] == "ZeroDivisionError"
    # another process, another hash seed, other blocks before it: the same bytes
    assert outcomes["drawing"].figures[0][0]["svg"] == svg


# --- Drawings -----------------------------------------------------------------------------------------------


def test_a_drawing_is_light_and_takes_fonts_and_black_from_the_page(svg: str) -> None:
    assert svg.startswith("<svg ")
    assert len(svg) < 15_000
    for foreign in (
        "<style",
        "<metadata",
        "<?xml",
        "xmlns",
        "font-family",
        "#000000",
        "rotate(-0",
        "DejaVu",
        ' id="ax',
    ):
        assert foreign not in svg, foreign
    assert "stroke:currentColor" in svg
    assert ">第 0 对的波形，从快到慢</text>" in svg
    assert ">0.123456</text>" in svg
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


def test_the_same_code_gives_the_same_bytes(svg: str) -> None:
    assert runner.run([DRAWING]).figures[0][0]["svg"] == svg


def test_two_figures_on_a_page_share_no_id(svg: str) -> None:
    html = figures.figure(svg, "一", "二", "plot-1") + figures.figure(svg, "三", name="plot-2")
    soup = BeautifulSoup(html, "html.parser")
    ids = [str(tag["id"]) for tag in soup.find_all(id=True)]
    assert len(ids) > 6
    assert len(ids) == len(set(ids))
    references = re.findall(r'(?:xlink:href="|url\()#([^")]+)', html)
    assert references
    assert set(references) <= set(ids)
    first, second = soup.find_all("svg")
    assert (first["role"], first["aria-labelledby"]) == ("img", "plot-1-title plot-1-desc")
    assert [tag.get_text() for tag in first.find_all(["title", "desc"])] == ["一", "二"]
    assert second["aria-labelledby"] == "plot-2-title"
    assert [tag.get_text() for tag in soup.find_all("figcaption")] == ["一", "三"]


def test_a_caption_is_text() -> None:
    html = figures.figure('<svg viewBox="0 0 1 1"></svg>', "a < b & <i>c</i>", "d > e")
    assert "<figcaption>a &lt; b &amp; &lt;i&gt;c&lt;/i&gt;</figcaption>" in html


def test_a_description_is_made_of_the_labels() -> None:
    axes = runner.run([DRAWING]).figures[0][0]["axes"]
    assert figures.described(axes, "zh") == (
        "第 0 对的波形，从快到慢。横轴：位置 t（从 0 开始）。纵轴：取值。图例：正弦 sin。"
    )
    english = [{"title": "", "x": "position t", "y": "value", "legend": ["sine", "cosine"]}] * 2
    assert figures.described(english, "en") == (
        "Horizontal axis: position t. Vertical axis: value. Legend: sine, cosine."
    )
    assert figures.described([], "en") == ""


def test_chinese_is_measured_one_em_a_character() -> None:
    with runner.isolated():
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
        self.root = root
        for language in ("en", "zh"):
            (root / "docs" / language).mkdir(parents=True)
            (root / "docs" / language / "index.md").touch()
        hook = cache.HOOKS / "hook.py"
        (root / "mkdocs.yml").write_text(
            "site_name: A\nstrict: true\nplugins: [search]\ndocs_dir: docs/zh\n"
            "theme: {name: material, language: zh, font: false}\n"
            f"hooks: ['{hook}']\nmarkdown_extensions: [attr_list, pymdownx.details, pymdownx.superfences,\n"
            "  {pymdownx.tabbed: {alternate_style: true}}]\n"
        )
        self.page = root / "docs" / "zh" / "index.md"
        self.page.write_text(PAGE, encoding="utf-8")

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
def site(tmp_path: Path) -> Site:
    (tmp_path / "site").mkdir()
    return Site(tmp_path / "site")


def test_a_site_has_its_figures_and_outputs(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "mkdocs")
    html = site.build()
    assert "Ran 3 blocks" in caplog.text
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
    for directive in ("pytest-codeblocks", "<!-- figure", "<!-- description", "POSENC", "<!--plot"):
        assert directive not in html
    index = (site.root / "site" / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "svg" not in index
    assert "一条线" in index, "the caption is found"
    assert index.count("隐藏") == 1, "the label in the code is found, the one in the drawing is not"

    caplog.clear()
    site.edit("- 一项", "- 另一项")
    site.build()
    assert "Ran" not in caplog.text
    site.edit("print(2)", "print(1 + 1)")
    site.build()
    assert "Ran 1 block " in caplog.text


def test_without_execution_a_page_is_built_all_the_same(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSENC_EXECUTE", "0")
    site.edit("print(2)", "1 / 0")
    html = site.build()
    assert "<figure" not in html
    assert "POSENC" not in html


def test_a_fault_under_serve_is_shown_and_does_not_stop(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.edit("plt.plot([2, 1])", "plt.plod([2, 1])")
    html = site.build("serve")
    assert (
        "31: AttributeError: module &#x27;matplotlib.pyplot&#x27; has no attribute &#x27;plod&#x27;" in html
    )
    assert "index.md:31: AttributeError" in capsys.readouterr().err
    with pytest.raises(Abort):
        site.build()


def test_a_broken_head_under_serve_is_named_and_does_not_stop(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.edit("title: 甲", "title: 甲: 乙")
    assert "<h1" in site.build("serve")
    assert "index.md:2: the front matter is no YAML" in capsys.readouterr().err


def test_a_figure_at_the_wrong_depth_is_named(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.edit("        <!-- figure: 又", "            <!-- figure: 又")
    with pytest.raises(Abort):
        site.build()
    assert "index.md:35: the figure comment does not stand in a paragraph" in caplog.text


def test_a_broken_build_exits_with_all_its_faults(site: Site) -> None:
    site.edit("plt.plot([1, 2])", "plt.plot([1, 2]) / 0")
    site.edit("    print(2)", "    print(3)")
    site.edit("# 甲 {#a}", "# 甲 {#a}\n\n```py\nprint(1)\n```")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-q"],
        cwd=site.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "3 faults in the pages" in done.stderr
    assert "index.md:8: this block would not be run: its info string is `py`" in done.stderr
    assert "index.md:15: TypeError: unsupported operand" in done.stderr
    assert "    plt.plot([1, 2]) / 0" in done.stderr
    assert "index.md:47: the block does not print what the page shows" in done.stderr
