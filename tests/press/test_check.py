"""The one command of all checks: what it finds, and the outputs that it writes anew."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from press import cache
from press import pages as page
from press.check import cli as walk
from press.check import pages, planted
from press.check import update_outputs as update
from press.running import execute as run

from tests.programs import python

GOOD = """---
title: {title}
description: {title}
---

# {title} {{#t}}

```python
x = 1
```

<!--pytest-codeblocks:cont-->

```python
print(x + 1)
print("{title}")
```

- {title}

    ```python
    print("new")
    ```

```python
1 / 0
```

<!--pytest-codeblocks:expected-output-->

```text
as it was
```
"""
WRITTEN = """    print("new")
    ```

    <!--pytest-codeblocks:expected-output-->

    ```text
    new
    ```
"""


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: list[str]) -> Path:
    """Two books of one chapter each, whose outputs are not those of their blocks."""
    monkeypatch.setenv("POSENC_CACHE", str(tmp_path / "cache"))
    for language, title in (("en", "A"), ("zh", "甲")):
        (tmp_path / language).mkdir()
        (tmp_path / language / "a.md").write_text(GOOD.format(title=title), encoding="utf-8")
    chapters = pages.chapters
    monkeypatch.setattr(pages, "chapters", lambda: chapters(tmp_path))
    return tmp_path


def test_outputs_are_written_anew_in_both_languages_and_shown(
    docs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert walk.main(["a", "--run"]) == 1
    said = capfd.readouterr().out
    assert said.count("the block prints and has no expected output") == 4
    assert walk.write_outputs(["a"]) == 1  # a block still fails
    said = capfd.readouterr().out
    assert "has no expected output" not in said
    assert said.count("ZeroDivisionError") == 2
    for language, title in (("en", "A"), ("zh", "甲")):
        text = (docs / language / "a.md").read_text(encoding="utf-8")
        assert f'print("{title}")\n```\n\n{update.DIRECTIVE}\n\n```text\n2\n{title}\n```\n' in text
        assert WRITTEN in text
        assert "as it was" in text
        assert f"+{title}" in said.splitlines()
        assert page.parse(text).faults == []
    assert walk.write_outputs(["a"]) == 1
    assert "+++" not in capfd.readouterr().out  # nothing is left to write


def test_an_output_is_replaced_where_it_stands() -> None:
    text = "??? question\n\n    ```python\n    print('a\\n\\nb')\n    ```\n"
    text += f"    {update.DIRECTIVE}\n"
    text += "    ```text\n    old\n    older\n    oldest\n    ```\n\nAnd so on.\n"
    source = page.parse(text)

    runs: Any = SimpleNamespace(outcome=run.run)
    new = update.updated(source, runs)
    assert new.endswith("    ```text\n    a\n\n    b\n    ```\n\nAnd so on.\n")
    assert update.updated(page.parse(new), runs) == new
    assert "-    oldest" in update.difference(source, new)


EXAMPLES = [(check, *bad) for check in planted.PAGE + planted.PAIR for bad in check.bad]


@pytest.mark.parametrize(
    ("check", "language", "old", "new", "line", "says"),
    EXAMPLES,
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_check_finds_its_example(
    check: planted.Check, language: str, old: str, new: str, line: int, says: str
) -> None:
    good = {name: page.parse(text) for name, text in planted.GOOD.items()}
    bad = planted.broken(language, old, new)
    if check in planted.PAGE:
        assert check.run(good[language], language) == []
        found, everything = check.run(bad, language), pages.faults_of_page(bad, language)
    else:
        assert check.run(good["en"], good["zh"]) == []
        found, everything = check.run(good["en"], bad), pages.faults_of_pair(good["en"], bad)
    assert says in "\n".join(fault.message for fault in found if fault.line == line), found
    assert all(fault in everything for fault in found)


def test_chapters_and_labs_say_what_they_need() -> None:
    docs = page.Path(cache.ROOT / "docs")
    names = page.contents(docs / "sites" / "en" / "mkdocs.yml")
    heads = {name: page.read(docs / "en" / name).meta for name in names}
    chapters = [name for name, meta in heads.items() if meta.get("chapter") is not False]
    assert [name for name in chapters if not heads[name].get("needs")] == ["index.md", "primer.md"]


def test_a_page_that_is_not_there_is_named_and_those_that_are_near(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, said in {
        "nowhere": "there is no page nowhere\n",
        "rotery": "there is no page rotery; rotary or ",
        "practice": "there is no page practice; exercises/practice or solutions/practice?\n",
    }.items():
        with pytest.raises(SystemExit):
            walk.main([name])
        assert said in capsys.readouterr().err


def test_a_page_has_its_name_or_its_path() -> None:
    here, there, below = (page.parse("", Path(f"docs/{name}.md")) for name in ("en/a", "zh/a", "en/b/a"))
    books = {"en": {"a.md": here, "b/a.md": below}, "zh": {"a.md": there}}
    assert pages.named([], books) == books
    for name in ("a", "docs/en/a.md", "docs/zh/a.md"):
        assert pages.named([name], books) == {"en": {"a.md": here}, "zh": {"a.md": there}}


def test_the_book_has_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert walk.main([]) == 0, capsys.readouterr().out


LIGHT = """
import re, sys, tomllib
from importlib import metadata
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
wanted = {re.split("[=><]", each)[0] for each in project["dependencies"] + project["optional-dependencies"]["check"]}
for module, distributions in metadata.packages_distributions().items():
    if not wanted & {each.lower().replace("_", "-") for each in distributions} and module not in ("press", "posenc"):
        sys.modules[module] = None
from press.check import cli, typography
sys.exit(cli.main(["rotary", "check"]))
"""


def test_it_needs_nothing_but_its_extra() -> None:
    done = python("-c", LIGHT, cwd=cache.ROOT, env=os.environ | cache.environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not checked: names of layers and pictures, without torch matplotlib" in done.stdout


def test_a_draft_in_one_language_is_named_and_not_compared(
    docs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page = docs / "en" / "a.md"
    text = page.read_text(encoding="utf-8").replace("{#t}", "{#other}")
    page.write_text(text, encoding="utf-8")
    assert walk.main(["a"]) == 1
    assert "on the English page" in capfd.readouterr().out
    page.write_text(text.replace("---\n", "---\ndraft: true\n", 1), encoding="utf-8")
    walk.main(["a"])
    said = capfd.readouterr().out
    assert "on the English page" not in said
    assert f"drafts: {page}" in said
    (docs / "zh" / "a.md").unlink()
    assert pages.same_files(docs / "en", docs / "zh") == []
    page.rename(docs / "zh" / "a.md")  # alone in Chinese, and called by its name
    walk.main(["a"])
    assert f"drafts: {docs / 'zh' / 'a.md'}" in capfd.readouterr().out
    page.write_text(text, encoding="utf-8")
    (docs / "zh" / "a.md").unlink()
    assert len(pages.same_files(docs / "en", docs / "zh")) == 1


def test_a_draft_may_have_sections_yet_to_come() -> None:
    text = planted.GOOD["en"].replace("{#one}", "{#goals}")
    assert "no section" in str(pages.faults_of_page(page.parse(text), "en"))
    assert pages.faults_of_page(page.parse(text.replace("title:", "draft: true\ntitle:")), "en") == []


@pytest.mark.parametrize("command", ["check", "outputs", "offline", "runtime"])
def test_a_command_runs_from_anywhere(command: str, tmp_path: Path) -> None:
    done = python("-m", "press", command, "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout
