"""The package as a whole: what importing it costs, what it exports."""

import importlib
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import posenc
from tests.programs import python

PACKAGE = Path(posenc.__file__).parent
FOUND = [*pkgutil.walk_packages([str(PACKAGE)], "posenc.")]
MODULES = sorted(module.name for module in FOUND if not module.ispkg)
PUBLIC = [
    (module.name, name)
    for module in pkgutil.iter_modules([str(PACKAGE)], "posenc.")
    for name in getattr(importlib.import_module(module.name), "__all__", ())
]


def test_the_citation_has_the_version_of_the_package() -> None:
    """pyproject.toml and the wheel read it from posenc/__init__.py; .ci/installed compares them."""
    citation = (PACKAGE.parent / "CITATION.cff").read_text("utf-8")
    assert re.findall(r"(?m)^version: (.+)$", citation) == [posenc.__version__]


def test_import_brings_little_beside_numpy() -> None:
    """Neither torch nor matplotlib nor SciPy; what it costs is measured in tests/benchmarks."""
    code = "import sys, numpy; before = set(sys.modules); import posenc; print(*set(sys.modules) - before)"
    result = python("-c", code, check=True)
    others = {name for name in result.stdout.split() if not name.startswith("posenc")}
    foreign = {name for name in others if name.partition(".")[0] not in sys.stdlib_module_names}
    assert {name.partition(".")[0] for name in foreign} == {"array_api_compat"}
    assert "array_api_compat.numpy" not in foreign  # which imports all of NumPy anew
    assert len(others - foreign) <= 10


def test_each_module_can_be_the_first_one_imported() -> None:
    """Those that `import posenc` does not bring: none may need another of them to have been there."""
    rooms = ("posenc.nn", "posenc.plot", "posenc.experiments")
    code = (
        "import importlib, sys\n"
        "def fresh(name):\n"
        f"    for loaded in [loaded for loaded in sys.modules if loaded.startswith({rooms})]:\n"
        "        del sys.modules[loaded]\n"
        "    importlib.import_module(name)\n"
        f"for room in {rooms}:\n"
        "    fresh(room)\n"
        f"    for name in {MODULES}:\n"
        "        if name.startswith(room) and name not in sys.modules:  # else its package always brings it\n"
        "            fresh(name)\n"
        "    assert room != 'posenc.nn' or 'scipy' not in sys.modules\n"
    )
    python("-W", "error", "-c", code, check=True)


@pytest.mark.parametrize("name", ["posenc", *(module.name for module in FOUND)])
def test_every_public_thing_is_there_and_documented(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    for exported in getattr(module, "__all__", []):
        assert getattr(module, exported).__doc__, f"{name}.{exported} has no docstring"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_public_name_stands_on_a_page(language: str) -> None:
    """In a block, in code within a line, or in a lab; a draft counts for both languages."""
    pages = [path.read_text("utf-8") for path in (PACKAGE.parent / "docs" / language).rglob("*.md")]
    others = [path.read_text("utf-8") for path in (PACKAGE.parent / "docs").glob("[ez][nh]/*.md")]
    pages += [page for page in others if re.match(r"---\n(?:(?!---).*\n)*draft: true\n", page)]
    labs = (PACKAGE.parent / "docs" / "labs").glob("*.py")
    texts = [code for page in pages for code in re.findall(r"```.*?```|`[^`\n]+`", page, re.DOTALL)]
    words = set(re.findall(r"\w+", " ".join([*texts, *(lab.read_text("utf-8") for lab in labs)])))
    assert [f"{module}.{name}" for module, name in PUBLIC if name not in words] == []


def test_a_name_that_is_elsewhere_is_named_with_its_place() -> None:
    assert len({name for _, name in PUBLIC}) == len(PUBLIC), "a name is public in two modules"
    for module, name in PUBLIC:
        if (
            name not in posenc.__all__ and not (PACKAGE / name).is_dir()
        ):  # posenc.check is a module of its own
            with pytest.raises(
                AttributeError, match=f"^module 'posenc' has no attribute '{name}': it is {module}.{name}$"
            ):
                getattr(posenc, name)
            with pytest.raises(
                ImportError, match=f"^cannot import name '{name}' from 'posenc': it is {module}.{name}$"
            ):
                exec(f"from posenc import {name}")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("alibi_bisa", "did you mean posenc.alibi_bias?"),
        ("t5_buckets", "did you mean posenc.relative.t5_bucket?"),
        ("RotaryEmbeding", "did you mean posenc.nn.RotaryEmbedding?"),
        ("rope", "layers are in posenc.nn, pictures in posenc.plot, all else in the module of its chapter"),
    ],
)
def test_a_name_that_is_nowhere_gets_the_nearest_one(name: str, hint: str) -> None:
    assert not hasattr(posenc, name)
    with pytest.raises(AttributeError, match=re.escape(f"'{name}': {hint}")):
        getattr(posenc, name)


def test_formulas_are_there_at_once_and_no_hint_imports_the_rest() -> None:
    code = (
        "import pkgutil, sys, posenc\n"
        "public = [module.name for module in pkgutil.iter_modules(posenc.__path__) if module.name[0] != '_']\n"
        "print([name for name in public if not hasattr(posenc, name)])\n"
        "for name in ('nn', 'heat_map'):\n"
        "    try:\n"
        "        getattr(posenc, name)\n"
        "    except AttributeError as error:\n"
        "        print(error)\n"
        "print({'torch', 'matplotlib'} & set(sys.modules))\n"
    )
    result = python("-c", code, check=True)
    assert result.stdout.splitlines() == [
        "['check', 'exercises', 'experiments', 'nn', 'plot']",
        "module 'posenc' has no attribute 'nn': import posenc.nn",
        "module 'posenc' has no attribute 'heat_map': it is posenc.plot.heat_map",
        "set()",
    ]


def test_no_function_hides_the_module_of_its_name() -> None:
    for name in MODULES:
        package, _, module = name.rpartition(".")
        importlib.import_module(name)
        assert not callable(getattr(importlib.import_module(package), module)), name
