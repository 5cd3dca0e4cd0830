"""What the book changes in Material holds for the installed version; a version that undoes one is named."""

import re
import shutil
from pathlib import Path

import pytest
from book import cache, patches


@pytest.mark.parametrize("patch", patches.PATCHES, ids=lambda patch: patch.change)
def test_material_has_what_a_change_relies_on(patch: patches.Patch) -> None:
    assert [fault for fault in patches.broken(patches.material()) if patch.change in fault] == []
    hooks = cache.HOOKS if patch.by.startswith(("book", "offline")) else cache.HOOKS.parent
    assert all((hooks / name).is_file() for name in patch.by.split(", "))


@pytest.mark.parametrize("patch", patches.PATCHES, ids=lambda patch: patch.change)
def test_a_version_without_it_is_named(tmp_path: Path, patch: patches.Patch) -> None:
    for name in {patch.file for patch in patches.PATCHES}:
        for file in patches.material().glob(name):
            (tmp_path / file.relative_to(patches.material())).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, tmp_path / file.relative_to(patches.material()))
    assert patches.broken(tmp_path) == []
    for file in tmp_path.glob(patch.file):
        file.write_text(re.sub(patch.relies_on, "other", file.read_text(encoding="utf-8")), encoding="utf-8")
    assert f"{patch.by}: {patch.change}: " in "\n".join(patches.broken(tmp_path))
