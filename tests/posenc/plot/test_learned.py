"""The pictures of learned tables show rows and columns as they are."""

from __future__ import annotations

import numpy as np
from drawings import curves, legend
from matplotlib.patches import Rectangle

from posenc import learned_encoding, plot
from posenc.learned import interpolate_table

TABLE = np.random.default_rng(0).normal(size=(4, 3))
TABLES = {
    "trained": TABLE,
    "clamped": learned_encoding(10, TABLE, overflow="clamp"),
    "interpolated": interpolate_table(TABLE, 10),
}


def test_tables_share_scale_and_positions() -> None:
    figure = plot.table_lengths(TABLES)
    most = np.abs(TABLE).max()
    for ax, (label, table) in zip(figure.axes, TABLES.items(), strict=False):
        (image,) = ax.get_images()
        np.testing.assert_allclose(np.asarray(image.get_array()), table)
        assert image.get_clim() == (-most, most)
        assert list(image.get_extent()) == [-0.5, 2.5, len(table) - 0.5, -0.5]
        assert ax.get_ylim() == (9.5, -0.5)
        assert ax.get_title(loc="left") == label
        (box,) = [
            patch for patch in ax.patches if isinstance(patch, Rectangle)
        ]  # it ends where the table does
        assert (box.get_y(), box.get_height()) == (-0.5, len(table))


def test_curves_show_one_column() -> None:
    ax = plot.table_columns(TABLES, 1)
    assert curves(ax) == {label: table[:, 1].tolist() for label, table in TABLES.items()}
    assert legend(ax) == list(TABLES)
