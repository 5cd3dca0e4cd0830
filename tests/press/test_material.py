"""What the book changes in Material holds for the installed version; a version that undoes one is named."""

import re
import shutil
from pathlib import Path

import pytest
from press import cache, material


@pytest.mark.parametrize("patch", material.PATCHES, ids=lambda patch: patch.change)
def test_material_has_what_a_change_relies_on(patch: material.Patch) -> None:
    assert [fault for fault in material.broken(material.material()) if patch.change in fault] == []
    assert all((cache.PRESS.parent / name).is_file() for name in patch.by.split(", "))


@pytest.mark.parametrize("patch", material.PATCHES, ids=lambda patch: patch.change)
def test_a_version_without_it_is_named(tmp_path: Path, patch: material.Patch) -> None:
    for name in {patch.file for patch in material.PATCHES}:
        for file in material.material().glob(name):
            (tmp_path / file.relative_to(material.material())).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, tmp_path / file.relative_to(material.material()))
    assert material.broken(tmp_path) == []
    for file in tmp_path.glob(patch.file):
        file.write_text(re.sub(patch.relies_on, "other", file.read_text(encoding="utf-8")), encoding="utf-8")
    assert f"{patch.by}: {patch.change}: " in "\n".join(material.broken(tmp_path))
