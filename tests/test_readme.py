"""README.md keeps what it promises: its pictures are current, its commands are the ones that are run."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from readme_images import FOLDER, drawn

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


def same_drawing(first: str, second: str) -> bool:
    """Equal but for the last digits of coordinates, which differ between processors."""
    if NUMBER.sub("#", first) != NUMBER.sub("#", second):
        return False
    a, b = (np.array(NUMBER.findall(text), dtype=float) for text in (first, second))
    return bool(np.allclose(a, b, atol=0.01))


@pytest.mark.parametrize("name", sorted(drawn()))
def test_pictures_are_current_and_shown(name: str) -> None:
    assert same_drawing((FOLDER / name).read_text(encoding="utf-8"), drawn()[name]), (
        f"{name} is not what the package draws today: run python tests/readme_images.py"
    )
    assert f"docs/home/images/{name}" in README


def test_a_changed_picture_is_noticed() -> None:
    svg = drawn()["waveforms.svg"]
    assert same_drawing(svg, svg)
    assert not same_drawing(svg, svg.replace("sine", "sinus"))
    x = NUMBER.findall(svg)[-1]
    assert not same_drawing(svg, svg.replace(x, f"{float(x) + 5:.6f}"))


def test_no_picture_is_left_over() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(drawn())


def commands() -> list[str]:
    return re.findall(r"^\$ (.+)$", README, re.MULTILINE)


def test_three_commands_and_one_more() -> None:
    serve, offline, test, install = commands()
    for command in (serve, offline, test):
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install -e '.[")
    assert serve.endswith(".venv/bin/mkdocs serve")
    assert offline.endswith(".venv/bin/python docs/hooks/offline")
    assert (ROOT / offline.split()[-1] / "__main__.py").is_file()
    assert test.endswith(".venv/bin/pytest")
    assert install.startswith("pip install ")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_book_gives_the_same_commands(lang: str) -> None:
    """All but the one that makes what the reader of a page has already."""
    text = (ROOT / "docs" / lang / "index.md").read_text(encoding="utf-8")
    on_one_line = re.sub(r"\\\n +", "", text)  # the box of the book is narrower than that of the README
    assert set(re.findall(r"^\$ (.+)$", on_one_line, re.MULTILINE)) == {
        command for command in commands() if "offline" not in command
    }


def test_ci_runs_the_command_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """.ci/run with a README of our own: it takes the command from there, with a fresh environment in it."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_text((ROOT / ".ci" / "run").read_text())
    run = ["bash", str(tmp_path / ".ci" / "run")]
    readme = tmp_path / "README.md"
    for tool in ("chromium", "fc-list"):  # nothing to install
        (tmp_path / tool).write_text("#!/bin/sh\necho Noto Sans CJK\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    readme.write_text("$ echo made '.[test]' .venv/bin/pytest\n")
    result = subprocess.run(run, capture_output=True, text=True, check=True)
    said = re.search(r"^made \.\[peers\] (.+)/venv/bin/pytest$", result.stdout, re.MULTILINE)
    assert said is not None
    assert not Path(said[1]).exists(), "the environment must be fresh, and gone afterwards"

    readme.write_text("$ false && .venv/bin/pytest\n")
    assert subprocess.run(run, capture_output=True, check=False).returncode != 0

    readme.write_text("no command\n")
    result = subprocess.run(run, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "exactly one test command" in result.stderr


def test_licences_are_named() -> None:
    for text in (README, (ROOT / "LICENSE").read_text(encoding="utf-8")):
        assert "MIT" in text
        assert "CC BY 4.0" in text
