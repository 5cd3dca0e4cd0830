"""The pictures of learned tables show rows and columns as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from posenc import interpolate_table, learned_encoding, plot
from posenc.plot._style import WIDTH

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
    assert figure.get_figwidth() == WIDTH


def test_curves_show_one_column() -> None:
    ax = plot.table_columns(TABLES, 1)
    for line, table in zip(ax.get_lines(), TABLES.values(), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), table[:, 1])
    assert len({str(line.get_linestyle()) for line in ax.get_lines()}) == 3
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == list(TABLES)
    assert plot.table_columns(TABLES, 0, ax=ax) is ax


def test_chinese_labels() -> None:
    assert plot.table_columns(TABLES, 0, lang="zh").get_xlabel() == "位置 t"
    assert plot.table_lengths(TABLES, lang="zh").axes[0].get_ylabel() == "位置 t"


@pytest.mark.parametrize("draw", [plot.table_lengths, lambda tables, **k: plot.table_columns(tables, 0, **k)])
@pytest.mark.parametrize(
    ("tables", "options", "message"),
    [
        ({}, {}, r"tables must hold 1 to \d tables, got 0"),
        (dict.fromkeys("abcdefg", TABLE), {}, r"tables must hold 1 to \d tables, got 7"),
        ({"a": TABLE[0]}, {}, r"tables\['a'\] must have shape \(length, dim\), got \(3,\)"),
        ({"a": TABLE[:0]}, {}, r"tables\['a'\] must have shape \(length, dim\), got \(0, 3\)"),
        (TABLES, {"lang": "fr"}, 'lang must be "en" or "zh"'),
    ],
)
def test_bad_arguments_are_named(
    draw: Any, tables: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        draw(tables, **options)


def test_a_column_that_is_not_there() -> None:
    with pytest.raises(ValueError, match=r"column must lie in 0\.\.2, the columns of 'trained', got 3"):
        plot.table_columns(TABLES, 3)
