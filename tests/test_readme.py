"""README.md keeps what it promises: its pictures are current, its commands are the ones that are run."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.readme_images import FOLDER, drawn

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


def test_the_commands() -> None:
    serve, runtime, offline, test, browser, peers, install = commands()
    for command in (serve, runtime, offline, test):
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install -e '.[")
    assert runtime.endswith("python -m press runtime")
    assert offline.endswith("python -m press offline")
    assert (ROOT / browser.split()[-1]).is_dir()
    assert (ROOT / peers.split()[-1]).is_dir()
    assert install.startswith("pip install ")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_book_gives_the_same_commands(lang: str) -> None:
    """All but those that make what the reader of a page has already, and the one for other libraries."""
    text = (ROOT / "docs" / lang / "index.md").read_text(encoding="utf-8")
    on_one_line = re.sub(r"\\\n +", "", text)  # the box of the book is narrower than that of the README
    assert set(re.findall(r"^\$ (.+)$", on_one_line, re.MULTILINE)) == {
        command for command in commands() if not re.search("runtime|offline|browser|peers", command)
    }


FAKE = """\
#!/bin/sh
echo "in $PWD: $(basename "$0") $*"
case "$0 $*" in
  */bin/mkdocs*) exec python3 -m http.server --bind 127.0.0.1 --directory pages PORT ;;
  */bin/python*) mkdir -p dist; for name in book.zip en.pdf zh.pdf; do echo > "dist/posenc-$name"; done ;;
  */bin/pytest*) exit $(cat status) ;;
esac
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """.ci/run in a repository whose commands are this README's, but for one that makes another `.venv`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    root = tmp_path / "project"
    for page in ("index", "en/sinusoidal", "zh/sinusoidal"):
        path = root / "pages" / f"{page}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('<figure class="plot"><svg>posenc</svg></figure>')
    (root / ".ci").mkdir()
    (root / ".ci" / "run").write_text((ROOT / ".ci" / "run").read_text())
    made = "mkdir -p .venv/bin && for name in mkdocs python pytest pip; do cp -p fake .venv/bin/$name; done"
    text = README.replace("127.0.0.1:8000", f"127.0.0.1:{port}").replace("python3 -m venv .venv", made)
    (root / "README.md").write_text(text, encoding="utf-8")
    (root / "fake").write_text(FAKE.replace("PORT", port))
    (root / "fake").chmod(0o755)
    (root / "status").write_text("0")
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("chromium", "fc-list"):  # nothing to install
        (tools / tool).write_text("#!/bin/sh\necho Noto Sans CJK\n")
        (tools / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "posenc")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "posenc@example.org")
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    return root


def ci(project: Path) -> subprocess.CompletedProcess[str]:
    git = ["git", "-C", str(project)]
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", "as it is"], check=True)
    run = ["bash", str(project / ".ci" / "run")]
    return subprocess.run(run, capture_output=True, text=True, check=False)


def test_ci_runs_the_commands_of_the_readme(project: Path) -> None:
    result = ci(project)
    assert result.returncode == 0, result.stderr
    ran = re.findall(r"^in (.+)/(\w+): (.+)$", result.stdout, re.MULTILINE)
    assert [(clone, what) for _, clone, what in ran] == [
        ("serve", "pip install -e .[docs]"),
        ("serve", "mkdocs serve"),
        ("serve", "pip install -e .[docs]"),
        ("serve", "python -m press runtime"),
        ("offline", "pip install -e .[offline]"),
        ("offline", "python -m press offline"),
        ("test", "pip install -e .[test]"),
        ("test", "pytest "),
        ("test", "python -m press runtime"),
        ("test", "pytest tests/browser"),
        ("test", "pip install -e .[peers]"),
        ("test", "pytest tests/posenc/peers"),
    ]
    assert not Path(ran[0][0]).exists(), "the clones must be gone afterwards"
    # the commands as they stand in the README, to the letter
    shown = re.findall(r"^\$ (.+)$", result.stdout, re.MULTILINE)
    assert shown == re.findall(r"^\$ (.+)$", (project / "README.md").read_text(encoding="utf-8"), re.M)[:6]


def test_ci_fails_with_a_command(project: Path) -> None:
    (project / "status").write_text("1")
    assert ci(project).returncode != 0


def test_ci_fails_where_a_page_is_not_served(project: Path) -> None:
    fake = project / "fake"
    fake.write_text(fake.read_text().replace("exec python3", "exit 0; python3"))
    result = ci(project)
    assert result.returncode != 0
    assert "the server has stopped" in result.stderr


def test_ci_fails_without_a_command(project: Path) -> None:
    (project / "README.md").write_text("no command\n")
    result = ci(project)
    assert result.returncode != 0
    assert "exactly one command" in result.stderr


def test_licences_are_named() -> None:
    for text in (README, (ROOT / "LICENSE").read_text(encoding="utf-8")):
        assert "MIT" in text
        assert "CC BY 4.0" in text
