"""What must stop a build, and what a build gives again."""

import re
import shutil
from pathlib import Path

import pytest
from press import labs, markup
from press.cache import ROOT

from tests.site.sitebuild import build, different
from tests.site.sitecheck import BOOKS


def test_a_second_build_runs_nothing_and_gives_the_same_bytes(site: Path, tmp_path: Path) -> None:
    status, said, _ = build(ROOT, tmp_path / "site")
    assert status == 0, said
    assert not re.search(r"\bRan ", said), said
    assert different(site, tmp_path / "site") == []


PAGES = "index.md", "order.md", "naive.md", "labs/masks.md", "labs/waveforms.md"


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The machinery of the book around a few pages of one line each."""
    root = tmp_path_factory.mktemp("mini")
    shutil.copy(ROOT / "mkdocs.yml", root)
    for part in ("home", "press", "theme"):
        shutil.copytree(
            ROOT / "docs" / part, root / "docs" / part, ignore=shutil.ignore_patterns("__pycache__")
        )
    for book in BOOKS:
        (root / "docs" / "sites" / book).mkdir(parents=True)
        config = (ROOT / "docs" / "sites" / book / "mkdocs.yml").read_text(encoding="utf-8")
        config = re.sub(r"(?m)^nav:\n(?: .*\n)+", f"nav: [{', '.join(PAGES)}]\n", config)
        (root / "docs" / "sites" / book / "mkdocs.yml").write_text(config, encoding="utf-8")
        for file in PAGES:
            page = labs.source(root / "docs" / book / file)
            page.parent.mkdir(parents=True, exist_ok=True)
            if page.suffix == ".md":
                head = f"---\ntitle: {page.stem}\ndescription: d\n---\n"
                page.write_text(f"{head}# T {{#top}}\n\nText.\n", encoding="utf-8")
            else:
                page.write_text("# %% [markdown]\n# # T {#top}\n\n# %%\nprint(6 * 7)\n", encoding="utf-8")
    (root / "posenc").mkdir()
    return root


@pytest.fixture
def mini_book(mini: Path, tmp_path: Path) -> Path:
    shutil.copytree(mini, tmp_path / "mini")
    return tmp_path / "mini"


def test_links_anchors_and_twins_that_are_missing_stop_a_build_by_name(mini_book: Path) -> None:
    for page, text in (("order.md", "[x](gone.md)"), ("naive.md", "[x](order.md#gone)")):
        with (mini_book / "docs" / "en" / page).open("a", encoding="utf-8") as file:
            file.write(f"\n{text}\n")
    (mini_book / "docs" / "en" / "extra.md").write_text("# Extra {#extra}\n")
    for _ in range(2):  # what a build warned of is said again by the next
        status, said, _ = build(mini_book, mini_book / "site", POSENC_EXECUTE="0")
        assert status != 0, said
        assert "'order.md' contains a link 'gone.md'" in said
        assert "'naive.md' contains a link 'order.md#gone'" in said
        assert "'en/extra.md' has no twin 'zh/extra.md'" in said


def test_a_broken_head_in_the_second_book_alone_stops_a_build_by_page_and_line(mini_book: Path) -> None:
    head = "# ---\n# title-en: a\n# title-zh: a: b\n# ---\n\n# %% [markdown]\n"
    (mini_book / "docs" / "labs" / "masks.py").write_text(f"{head}# # T {{#top}}\n", encoding="utf-8")
    status, said, _ = build(mini_book, mini_book / "site", POSENC_EXECUTE="0")
    assert status != 0, said
    assert "docs/labs/masks.py:3: the front matter is no YAML: mapping values are not allowed here" in said
    assert "Traceback" not in said


def test_a_lab_is_run_once_a_draft_stands_alone_and_what_was_removed_is_gone(mini_book: Path) -> None:
    head = "---\ntitle: D\ndescription: d\ndraft: true\n---\n"
    (mini_book / "docs" / "en" / "draft.md").write_text(f"{head}# D {{#d}}\n\nText.\n", encoding="utf-8")
    site = mini_book / "site"
    (site / "en").mkdir(parents=True)
    (site / "en" / "removed.html").write_text("old")
    status, said, _ = build(mini_book, site, POSENC_CACHE=str(mini_book / "cache"))
    assert status == 0, said
    assert re.findall(r"Ran (\d+) block", said) == ["1"], said  # the stand-ins all hold the same cells
    for book in BOOKS:
        assert "42" in (site / book / "labs" / "masks.html").read_text(encoding="utf-8")
    assert not (site / "en" / "removed.html").exists()
    draft = (site / "en" / "draft.html").read_text(encoding="utf-8")
    assert markup.DRAFT["en"] in draft
    assert 'href="../zh/index.html" hreflang="zh"' in draft
    assert "zh/draft.html" not in draft + (site / "en" / "sitemap.xml").read_text(encoding="utf-8")
    assert markup.DRAFT["en"] not in (site / "en" / "order.html").read_text(encoding="utf-8")
    assert (site / "index.html").is_file()
