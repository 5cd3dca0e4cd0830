"""Figures of the pages stand out in both palettes."""

import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from press import figures

from tests.site import contrast, sitecheck


def test_figures_of_the_pages_stand_out_in_both_palettes(site: Path) -> None:
    """What blocks and labs draw themselves as well."""
    faults = []
    for page in sitecheck.all_pages(site):
        html = page.file(".html").read_text(encoding="utf-8")
        for svg in re.findall(r'<figure class="plot">(<svg.*?</svg>)', html):
            for palette, (ground, letters) in contrast.palettes().items():
                faults += [f"{page}, {palette}: {fault}" for fault in contrast.faint(svg, ground, letters)]
    assert faults == []


@pytest.mark.parametrize(("draw", "palette", "fault"), contrast.BAD)
def test_a_faint_colour_is_found(draw: contrast.Draw, palette: str, fault: str) -> None:
    with mpl.rc_context():
        figures.set_up()
        _, ax = plt.subplots()
        draw(ax)
        faults = contrast.faint(figures.to_svg(plt.gcf()), *contrast.palettes()[palette])
    assert any(fault in found for found in faults), faults


def test_the_palettes_are_those_of_the_theme() -> None:
    palettes = contrast.palettes()
    white, ink = palettes["light"]
    assert white == (1, 1, 1, 1)
    assert ink == pytest.approx((0, 0, 0, 0.87), abs=0.005)
    ground, letters = palettes["dark"]
    assert max(ground[:3]) < 0.2
    assert contrast.ratio(letters, ground) > 7
