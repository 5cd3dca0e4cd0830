"""The pictures of the chapter on grids show what the formulas say, in both languages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawings import points, table

from posenc import grid_encoding, plot
from posenc.rotary import mixed_frequencies, mrope_frequencies


def test_maps_show_their_numbers_and_point_to_the_place() -> None:
    codes = grid_encoding((5, 7), 8)
    scores = (codes @ codes[2 * 7 + 4]).reshape(5, 7)
    figure = plot.grid_maps({"a": scores, "b": -scores}, (2, 4))
    for ax, wanted in zip(figure.axes[:2], (scores, -scores), strict=True):
        np.testing.assert_allclose(table(ax), wanted)
        assert [points(line)[0].tolist() for line in ax.lines] == [[4, -0.5], [6.5, 2]]
        assert ax.images[0].get_clim() == (-4, 4)
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("column", "row")
    assert plot.grid_maps({"a": scores}, (2, 4), lang="zh").axes[0].get_xlabel() == "列"


def test_pairs_stand_at_their_wavelength_in_the_look_of_their_axis() -> None:
    omega = mrope_frequencies(16, (4, 2, 2), interleaved=True)
    figure = plot.axis_pairs({"a": omega, "b": mrope_frequencies(16, (4, 2, 2))}, ["x", "y", "z"])
    first, second = figure.axes
    for row, line in zip(omega, first.lines, strict=True):
        (pairs,) = np.nonzero(row)
        np.testing.assert_allclose(points(line), np.column_stack([pairs, 2 * np.pi / row[pairs]]))
    assert [points(line)[:, 0].tolist() for line in second.lines] == [[0, 1, 2, 3], [4, 5], [6, 7]]
    assert len({(line.get_color(), line.get_marker()) for line in first.lines}) == 3
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["x", "y", "z"]
    mixed = plot.axis_pairs({"a": mixed_frequencies(8, 0.3)}).axes[0]
    assert [len(points(line)) for line in mixed.lines] == [4, 4]


@pytest.mark.parametrize("place", [(5, 0), (0, 7), (-1, 0), (1,), 3])
def test_a_place_beside_the_grid_is_refused(place: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="place must"):
        plot.grid_maps({"a": np.ones((5, 7))}, place)
