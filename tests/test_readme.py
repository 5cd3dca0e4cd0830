"""README.md keeps what it promises: its pictures are current, its commands are the ones that are run."""

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


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.iterdir()))
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


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_book_gives_the_same_commands(lang: str) -> None:
    """All but those that make what the reader of a page has already, and those for slow tests and the peers."""
    text = (ROOT / "docs" / lang / "index.md").read_text(encoding="utf-8")
    on_one_line = re.sub(r"\\\n +", "", text)  # the box of the book is narrower than that of the README
    assert set(re.findall(r"^\$ (.+)$", on_one_line, re.MULTILINE)) == {
        command for command in commands() if not re.search("runtime|offline|slow|peers", command)
    }


def ci(folder: Path, *commands: str) -> subprocess.CompletedProcess[str]:
    """What .ci/run does in a project with these commands and a page; it finds a browser and a font."""
    page, tools = folder / "project" / "en" / "sinusoidal.html", folder / "tools"
    for path, text in (
        (page, '<figure class="plot"><svg>'),
        (page.parents[1] / "zh" / page.name, '<figure class="plot"><svg>'),
        (page.parents[1] / "README.md", "\n".join(["http://127.0.0.1:PORT", *(f"$ {c}" for c in commands)])),
        (page.parents[1] / ".ci" / "run", (ROOT / ".ci" / "run").read_text()),
        (tools / "chromium", "#!/bin/sh\n"),
        (tools / "fc-list", "#!/bin/sh\necho Noto Sans CJK\n"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("PORT", str(PORT)))
        path.chmod(0o755)
    git = ["git", "-C", str(page.parents[1]), "-c", "user.name=posenc", "-c", "user.email=posenc@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "as it is"]):
        subprocess.run([*git, *words], check=True)
    environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}
    command = ["bash", str(page.parents[1] / ".ci" / "run")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    PORT = free.getsockname()[1]
SERVE = "python3 -m http.server --bind 127.0.0.1 PORT # mkdocs serve"


def test_ci_runs_all_commands_to_the_letter(tmp_path: Path) -> None:
    done = ci(tmp_path, SERVE, "echo '1  2'", "echo $POSENC_REQUIRE # peers", "pwd")
    assert done.returncode == 0, done.stderr
    said = re.findall(r"(?m)^(?!== \d+ s$).+$", done.stdout)
    assert said[-6:-1] == [
        "== echo '1  2'",
        "1  2",
        "== echo $POSENC_REQUIRE # peers",
        "browser fonts runtime peers",
        "== pwd",
    ]
    assert not Path(said[-1]).exists(), "the clone must be gone afterwards"


def test_ci_fails_with_a_command(tmp_path: Path) -> None:
    done = ci(tmp_path, "false; echo 1", "echo 2")
    assert done.returncode == 1
    assert "\n1\n" not in done.stdout
    assert "echo 2" not in done.stdout


def test_ci_fails_where_no_page_is_served(tmp_path: Path) -> None:
    done = ci(tmp_path, "true # mkdocs serve")
    assert done.returncode == 1
    assert "the server has stopped" in done.stderr


def test_licences_are_named() -> None:
    for text in (README, (ROOT / "LICENSE").read_text(encoding="utf-8")):
        assert "MIT" in text
        assert "CC BY 4.0" in text
