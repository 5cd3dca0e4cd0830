"""Which modules of posenc a piece of code can reach: what the result of a block is kept under.

Names are followed through the modules that only pass them on, such as posenc/__init__.py, to the module that
defines them, and from there wherever its own imports lead, those inside functions included. What cannot be
followed (a module handed on as a whole, `import *`, a module named by a string made on the way) is taken for
all of posenc. Which modules a run really executes is compared with this (book_blocks.py). What reading a module or a
block says of it is kept under its text: an edit reads one anew.

>>> reached, _ = sources().reach("from posenc import one_hot_encoding")
>>> "posenc.naive" in reached, "posenc.alibi" in reached
(True, False)
"""

import ast
import contextlib
import functools
import itertools
import json
import os
import platform
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from press import cache

# Code that is made as it runs, or a module that is looked up by its name.
_ON_THE_WAY = re.compile(r"\b(__import__|import_module|sys\.modules|exec|eval)\b")
_IMPORT = re.compile(r"^[ \t]*(?:from[^\n]+import[ ]*(?:\([^)]*\)|[^\n]*)|import[^\n]*)", re.MULTILINE)
PARSING = threading.Lock()  # CPython 3.11 fails where two threads parse at the same time
Use = tuple[str, str]  # a module and a name in it; "*" is all of it


@dataclass(frozen=True)
class Facts:
    """What reading a module, or a block, says of it."""

    uses: list[list[str]]  # of the package: a module and a name in it
    only_passes_on: bool = False  # it does nothing but bring in names:
    passed: list[list[str]] = field(default_factory=list)  # the name, as what, and the module that has it
    binds: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)  # where its statements begin
    bare: str = ""  # one name for a block without docstrings, for a module without what its functions do


class Sources:
    """The modules of a package as they are on disk at this moment."""

    def __init__(self, package: Path) -> None:
        self.package = package
        self.files: dict[str, Path] = {}
        self.data: list[Path] = []
        self.stamp = _stamp(package)
        self._inside = {package / name: name for name, _ in self.stamp}
        for path in self._inside:
            if path.suffix == ".py":
                parts = path.relative_to(package.parent).with_suffix("").parts
                self.files[".".join(parts).removesuffix(".__init__")] = path
            else:
                self.data.append(path)
        self.all: Use = (package.name, "*")
        # as they are when first asked for
        self._bytes = functools.cache(Path.read_bytes)
        self._digest = functools.cache(lambda path: cache.key(self._bytes(path)))
        self.store = cache.Store("facts")
        here = Path(__file__).read_bytes(), platform.python_version(), package.name
        self._reading = cache.key(*here, *(name for name, _ in self.stamp))
        self.facts, self._leads = functools.cache(self._kept_facts), functools.cache(self._lead)
        self.reach = functools.cache(self._reach)

    def current(self) -> bool:
        """Whether the files are still those that were found."""
        return _stamp(self.package) == self.stamp

    def digest(self, code: str) -> str:
        """One name for all that `code` can reach, and for how its names lead there."""
        modules, ways = self.reach(code)
        parts: list[str | bytes] = [f"{module}:{name}" for module, name in sorted(ways)]
        for path in [*(self.files[module] for module in sorted(modules)), *self.data]:
            parts += [self._inside[path], self._digest(path)]
        return cache.key(*parts)

    def asked(self, code: str) -> set[str]:
        """The modules that what `code` can reach depends on: those reached, and those that pass names on to them."""
        modules, ways = self.reach(code)
        return modules | {module for module, _ in ways}

    def state(self, modules: Iterable[str]) -> str:
        """One name for some modules as they are, for the data, and for which modules there are."""
        here = [self._bytes(self.files[module]) if module in self.files else "" for module in sorted(modules)]
        return cache.key(*self.files, *here, *map(self._bytes, self.data))

    @functools.cached_property
    def digest_of_all(self) -> str:
        return self.digest(f"from {self.package.name} import *")

    @functools.cached_property
    def imports(self) -> list[tuple[str, list[str]]]:
        """What each module imports, as it is written: what can be reached of others depends on no more."""
        return [(module, _IMPORT.findall(self.text(module))) for module in sorted(self.files)]

    @functools.cached_property
    def interface(self) -> str:
        """One name for all that can be said of the modules without what their functions do."""
        entry = cache.key(self._reading, self.state(self.files))
        if (name := self.store.get(entry)) is None:
            facts = ((module, self._of(module).bare or self.text(module)) for module in sorted(self.files))
            self.store.put(entry, name := cache.key(*itertools.chain(*facts)))
        return name

    def _of(self, module: str) -> Facts:
        return self.facts(self.text(module), module)

    def _kept_facts(self, code: str, module: str = "") -> Facts:
        entry = cache.key(self._reading, module, code)
        if (text := self.store.get(entry)) is None:
            self.store.put(entry, text := json.dumps(asdict(self._read(code, module))))
        return Facts(**json.loads(text))

    def _read(self, code: str, module: str) -> Facts:
        """All that a module, or a block, uses of the package, and what else is asked of it."""
        if (tree := parsed(code)) is None:
            return Facts([[*self.all]])
        nodes = list(ast.walk(tree))
        passed, binds = list[list[str]](), set[str]()
        if only_passes_on := all(map(_passes_on, tree.body)):
            for node, base in self._froms(nodes, module):
                passed += [[alias.name, alias.asname or alias.name, base] for alias in node.names]
            binds = set(_bound(nodes))
        uses = sorted(map(list, self._uses(code, nodes, module)))
        lines = [statement.lineno for statement in tree.body]
        bare = cache.key(ast.dump(without_bodies(tree) if module else without_docstrings(tree)))
        return Facts(uses, only_passes_on, passed, sorted(binds), lines, bare)

    def _reach(self, code: str) -> tuple[set[str], set[Use]]:
        """The modules that `code` can reach, and the names by which it and they ask for each other."""
        modules: set[str] = set()
        ways: set[Use] = set()
        waiting = self._used(self.facts(code)) if self.package.name in code else set()
        while waiting:
            use = waiting.pop()
            if use in ways:
                continue
            ways.add(use)
            if use == self.all:
                return set(self.files), {self.all}
            defining, passed = self._leads(*use)
            waiting |= passed.union(*(self._used(self._of(module)) for module in defining - modules))
            modules |= defining
        return modules, ways

    def only_passes_on(self, module: str) -> bool:
        """Whether a module does nothing but bring in names: their ways are in a digest, its text is not."""
        return self._of(module).only_passes_on

    def files_of(self, code: str) -> set[str]:
        """The files that a run of `code` may execute, 'posenc/naive.py'."""
        modules = self.reach(code)[0] | set(filter(self.only_passes_on, self.files))
        return {f"{self.package.name}/{self._inside[self.files[module]]}" for module in modules}

    def text(self, module: str) -> str:
        """What stands in the file of a module."""
        return self._bytes(self.files[module]).decode(errors="replace")

    def _lead(self, module: str, name: str) -> tuple[set[str], set[Use]]:
        """The modules that define what is used, and what is used in its stead where it is only passed on."""
        if name == "*":
            return {file for file in self.files if f"{file}.".startswith(f"{module}.")}, set()
        facts = self._of(module)
        if not facts.only_passes_on:
            return {module}, set()
        passed = set(self._passed(facts, name))
        if passed or not name.startswith("__"):
            return set(), passed or {self.all}
        return ({module} if name in facts.binds else set()), set()

    def _passed(self, facts: Facts, name: str) -> Iterator[Use]:
        for there, here, base in facts.passed:
            if name == here:
                submodule = f"{base}.{there}"
                yield (submodule, "*") if submodule in self.files else (base, there)
            elif there == "*" and base in self.files:
                yield base, name

    def _used(self, facts: Facts) -> set[Use]:
        return {(module, name) for module, name in facts.uses}

    def _froms(self, nodes: Iterable[ast.AST], module: str) -> Iterator[tuple[ast.ImportFrom, str]]:
        """Every `from … import` of the package itself, with the module that it names."""
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                name = node.module or ""
                if node.level:
                    is_package = module in self.files and self.files[module].name == "__init__.py"
                    parents = module.split(".")[: len(module.split(".")) - node.level + is_package]
                    name = ".".join([*parents, *filter(None, [name])])
                if name.partition(".")[0] == self.package.name:
                    yield node, name

    def _uses(self, code: str, nodes: list[ast.AST], module: str) -> set[Use]:
        """All that a module, or a block, uses of the package."""
        if _ON_THE_WAY.search(code) and any(map(_on_the_way, nodes)):
            return {self.all}
        uses: set[Use] = set()
        aliases: dict[str, set[str]] = {}
        for node, base in self._froms(nodes, module):
            for alias in node.names:
                if f"{base}.{alias.name}" in self.files:
                    aliases.setdefault(alias.asname or alias.name, set()).add(f"{base}.{alias.name}")
                else:
                    uses.add((base, alias.name) if base in self.files else self.all)
        for alias in [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]:
            if alias.name.partition(".")[0] == self.package.name:
                name = alias.name if alias.asname else self.package.name
                aliases.setdefault(alias.asname or name, set()).add(name)
        for name, attributes in _chains(nodes) if aliases else ():
            uses |= {self._asked(start, attributes) for start in aliases.get(name, ())}
        return uses

    def _asked(self, module: str, attributes: Iterable[str]) -> Use:
        """What `alias.a.b.c` uses where the alias stands for a module."""
        for attribute in attributes:
            if f"{module}.{attribute}" not in self.files:
                return module, attribute
            module = f"{module}.{attribute}"
        return module, "*"


_known: dict[Path, Sources] = {}


def sources(package: Path = cache.PACKAGE) -> Sources:
    """The modules of a package as they are now, read once as long as they stay so."""
    if package not in _known or not _known[package].current():
        _known[package] = Sources(package)
    return _known[package]


def _stamp(package: Path) -> list[tuple[str, int]]:
    """The files of a package, and when each of them has changed."""
    found, folders = list[tuple[str, int]](), [""]
    for folder in folders:
        for entry in os.scandir(package / folder):
            if entry.is_dir():
                folders += [f"{folder}{entry.name}/"] * (entry.name != "__pycache__")
            else:
                found.append((folder + entry.name, entry.stat().st_mtime_ns))
    return sorted(found, key=lambda file: file[0].split("/"))


def parsed(code: str) -> ast.Module | None:
    """The tree of `code`; None where it is no Python."""
    with PARSING, contextlib.suppress(SyntaxError, ValueError):
        return ast.parse(code)
    return None


def without_docstrings(tree: ast.Module) -> ast.Module:
    """The tree, changed: a function or class begins with what it does.

    >>> ast.unparse(without_docstrings(ast.parse("def f():\\n    'Says.'\\n    return 'this'")))
    "def f():\\n    return 'this'"
    """
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def without_bodies(tree: ast.Module) -> ast.Module:
    """The tree, changed: of what functions do, their docstrings are left, and what `__init__` makes an object.

    >>> ast.unparse(without_bodies(ast.parse("def f(x=1):\\n    return x")))
    'def f(x=1):\\n    pass'
    """
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name != "__init__":
            node.body = node.body[:1] if ast.get_docstring(node) else [ast.Pass()]
    return tree


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that these nodes bind, by whatever means."""
    for node in nodes:
        if isinstance(node, ast.alias):
            yield node.asname or node.name
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id


def _chains(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, list[str]]]:
    """Every name with the attributes that are asked of it: `a.b.c` is ("a", ["b", "c"])."""
    inner: set[int] = set()
    for node in nodes:  # outer nodes come first
        attributes: list[str] = []
        if id(node) not in inner:
            while isinstance(node, ast.Attribute):
                attributes.insert(0, node.attr)
                node = node.value
                inner.add(id(node))
            if isinstance(node, ast.Name):
                yield node.id, attributes


def _on_the_way(node: ast.AST) -> bool:
    """Whether a node runs code that is made as it runs, or takes a module by a name that is not written out.

    >>> codes = "eval(x)", "sys.modules[x]", "import_module(x)", "model.eval()", "sys.modules.get('torch')"
    >>> [any(map(_on_the_way, ast.walk(ast.parse(code)))) for code in codes]
    [True, True, True, False, False]
    >>> codes = "import_module(f'scipy.{x}')", "import_module(f'posenc.{x}')", "import_module(f'{x}.y')"
    >>> [any(map(_on_the_way, ast.walk(ast.parse(code)))) for code in codes]
    [False, True, True]
    """
    if not isinstance(node, ast.Call | ast.Subscript):
        return False
    called = node.func if isinstance(node, ast.Call) else node.value
    args = node.args if isinstance(node, ast.Call) else [node.slice]
    if not isinstance(called, ast.Attribute | ast.Name):
        return False
    name = ast.unparse(called)
    if not _ON_THE_WAY.search(name):
        return False
    if name.endswith((".exec", ".eval")):  # of a model
        return False
    first = args[0] if args else None
    if isinstance(first, ast.JoinedStr):  # of another package, whatever follows its dot
        begins = first.values[0]
        first = begins if isinstance(begins, ast.Constant) and "." in str(begins.value) else None
    known = isinstance(first, ast.Constant) and "posenc" not in str(first.value)
    return name in ("exec", "eval") or not known


def _passes_on(statement: ast.stmt) -> bool:
    """Whether a statement only brings in names: an import, `__all__`, a docstring, a lazy `__getattr__`."""
    if isinstance(statement, ast.If):
        return all(map(_passes_on, [*statement.body, *statement.orelse]))
    if isinstance(statement, ast.Assign):
        return all(
            isinstance(target, ast.Name) and target.id.startswith("__") for target in statement.targets
        )
    if isinstance(statement, ast.FunctionDef):
        return statement.name in ("__getattr__", "__dir__")
    return isinstance(statement, ast.Import | ast.ImportFrom) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )
