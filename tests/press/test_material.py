"""What the book changes in Material holds for the installed version; a version that undoes one is named."""

import json
import re

import pytest
from press import cache, material


@pytest.mark.parametrize("patch", material.PATCHES, ids=lambda patch: patch.change)
def test_material_has_what_a_change_relies_on(patch: material.Patch) -> None:
    assert [fault for fault in material.broken(material.material()) if patch.change in fault] == []
    assert all((cache.PRESS.parent / name).is_file() for name in patch.by.split(", "))


def test_the_licence_names_what_its_scripts_hold() -> None:
    """As the maps of the scripts say it, which a new version of Material may have more of."""
    maps = material.material().glob("templates/assets/javascripts/**/*.map")
    sources = [source for file in maps for source in json.loads(file.read_text("utf-8"))["sources"]]
    names = {name for source in sources for name in re.findall(r"node_modules/((?:@[\w-]+/)?[\w-]+)", source)}
    assert "rxjs" in names
    licence = (cache.ROOT / "LICENSE").read_text("utf-8")
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", licence)] == []
