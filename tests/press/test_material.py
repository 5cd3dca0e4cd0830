"""What the book changes in Material holds for the installed version; a version that undoes one is named."""

import pytest
from press import cache, material


@pytest.mark.parametrize("patch", material.PATCHES, ids=lambda patch: patch.change)
def test_material_has_what_a_change_relies_on(patch: material.Patch) -> None:
    assert [fault for fault in material.broken(material.material()) if patch.change in fault] == []
    assert all((cache.PRESS.parent / name).is_file() for name in patch.by.split(", "))
