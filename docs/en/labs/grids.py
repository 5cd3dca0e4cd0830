# ---
# title: What a patch sees
# description: A lab of twenty minutes. Predict, run and change which neighbours a position code shows to a patch of a picture, as a list, on a grid, turned, resized, and in the wrong order.
# needs: [grids]
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What a patch sees {#grids-lab}
#
# The chapter on [grids](../grids.md) gives every patch of a picture a coordinate for each axis. Here you look through the
# eyes of one patch, for about twenty minutes. In each section **predict** first, then run the cell, then change something.
#
# Symbols: $t_1$ and $t_2$ are the row and the column of the patch that looks, $g$ multiplies its scores, $w$ are its weights
# after the softmax. θ is the direction in which a pair looks, θᵢ one for each pair. Only positions count: all patches have the same content.

# %%
import matplotlib.pyplot as plt
import numpy as np

import posenc
from posenc.rotary import axial_frequencies, mixed_frequencies

plt.rcParams["figure.constrained_layout.use"] = True

# %% [markdown]
# ## A picture, cut up {#picture}
#
# A hill under the sun, 56 × 56 pixels, cut into 14 × 14 patches. The model gets them row by row. **Predict:** the patch
# marked below has the number 89. Which numbers have its four neighbours?

# %%
n, size = 14, 4
y, x = np.mgrid[0 : n * size, 0 : n * size] / (n * size - 1)
picture = 0.9 - 0.3 * y
picture[np.hypot(y - 0.2, x - 0.75) < 0.11] = 1.0
picture[y > 0.75 - 0.3 * np.exp(-(((x - 0.35) / 0.2) ** 2))] = 0.6

place = (6, 5)
number = place[0] * n + place[1]


def show(ax, title, weights=None):
    edges = (-0.5, n - 0.5, n - 0.5, -0.5)
    ax.imshow(picture, cmap="gray", vmin=0, vmax=1, extent=edges)
    if weights is not None:
        seen = np.clip(weights / weights.max(), 0, 1)
        orange = np.zeros((n, n, 4))
        orange[..., 0], orange[..., 1], orange[..., 3] = 0.84, 0.37, seen
        ax.imshow(orange, interpolation="none")
    square = plt.Rectangle((place[1] - 0.5, place[0] - 0.5), 1, 1, fill=False)
    square.set(edgecolor="#0072b2", linewidth=2)
    ax.add_patch(square)
    ax.set_title(title, fontsize=10)
    ax.set(xticks=[0, 5, 10], yticks=[0, 6, 12], xlabel="t₂", ylabel="t₁")


fig, ax = plt.subplots(figsize=(3.2, 3.2))
show(ax, f"{number}")
ax.set_xticks(np.arange(-0.5, n), minor=True)
ax.set_yticks(np.arange(-0.5, n), minor=True)
ax.grid(which="minor", color="#767676", linewidth=0.5)
ax.tick_params(which="minor", length=0)

# %% [markdown]
# Figure: A picture of 14 times 14 patches. The patch in row 6 and column 5, number 89, has a blue frame.
# Description: A grey picture with a grid of thin lines: a pale sky, a white sun at the upper right, a darker hill left of the middle. A blue square stands at row 6, column 5, at the top of the hill.
#
# Left and right are 88 and 90. Above and below are 75 and 103.
#
# ## Four codes {#codes}
#
# The weights of that patch, as orange on the picture, for four codes: the sinusoidal code of a list (PE), the code of the grid (PE ⊕ PE), and RoPE on
# the grid, axial (θ = 0) and mixed (θᵢ). **Predict** the four shapes: a streak, a cross, a spot?

# %%
dim, g = 64, 7.0
places = posenc.grid_coordinates((n, n))
same = np.tile([1.0, 0.0], (n * n, dim // 2))


def turned(frequencies):
    return posenc.apply_rotary_axes(same, places, frequencies)


spread = 1.94 * np.arange(dim // 4)
codes = {
    "PE": posenc.sinusoidal_encoding(n * n, dim),
    "PE ⊕ PE": posenc.grid_encoding((n, n), dim, base=100),
    "RoPE, θ = 0": turned(axial_frequencies(dim, 2, base=100)),
    "RoPE, θᵢ": turned(mixed_frequencies(dim, spread, base=100)),
}


def weights_of(code):
    scores = g * (code @ code[number]) / (dim / 2)
    w = np.exp(scores - scores.max())
    return (w / w.sum()).reshape(n, n)


fig, axes = plt.subplots(2, 2, figsize=(4.8, 5.0))
for ax, (name, code) in zip(axes.flat, codes.items()):
    show(ax, name, weights_of(code))

# %% [markdown]
# Figure: What the patch sees, four codes. Orange is weight, each panel on its own scale.
# Description: Four times the picture with a blue square at row 6, column 5. First: an orange streak along row 6. Second and third: an orange cross along row 6 and column 5, alike. Fourth: an orange spot around the square, which fades in all directions.
#
# The second and the third are the same numbers: the code of a grid and axial RoPE have the same kernel if all contents are equal.
#
# **Try it.** Set $g = 3$, then $g = 60$. Which picture changes its *shape*?
#
# ## A direction to look along {#directions}
#
# Now turn the directions of all pairs by one angle θ. At θ = 0 they look along rows and columns. **Predict:** what do θ = π/8 and θ = π/4 look like?

# %%
fig, axes = plt.subplots(1, 3, figsize=(4.8, 2.0), sharey=True)
for ax, eighths in zip(axes, [0, 1, 2]):
    code = turned(mixed_frequencies(dim, eighths * np.pi / 8, base=100))
    show(ax, f"θ = {22.5 * eighths:g}°", weights_of(code))
    ax.label_outer()

# %% [markdown]
# Figure: The cross of axial RoPE, turned by 0, 22.5 and 45 degrees.
# Description: Three times the picture with an orange cross on the blue square. Left: upright. Middle: tilted by 22.5 degrees. Right: its four arms along the diagonals.
#
# A head that learns its own θ chooses the directions in which it looks.
#
# **Try it.** Let the first half of the angles be 0 and the others π/4: `np.repeat([0, np.pi / 4], dim // 8)`. How many arms has the star?
#
# ## A larger picture {#larger}
#
# A table of 14 × 14 rows is to serve 21 × 21 patches. Let each row of it remember its own $t_1$ and $t_2$, and stretch the table as a list
# and as a grid. **Predict:** in the first case, what does a patch at the right edge remember?

# %%
remember = places.astype(float)
stretched = {
    "1-D": posenc.interpolate_table(remember, 21 * 21),
    "2-D": posenc.interpolate_grid(remember, (n, n), (21, 21)),
}
shades = {"cmap": "viridis", "vmin": 0, "vmax": n - 1, "interpolation": "none"}
fig, axes = plt.subplots(1, 2, figsize=(4.8, 2.6), sharey=True)
for ax, (name, table) in zip(axes, stretched.items()):
    image = ax.imshow(table[:, 1].reshape(21, 21), **shades)
    ax.set_title(name, fontsize=10)
    ax.set(xticks=[0, 10, 20], yticks=[0, 10, 20], xlabel="t₂")
axes[0].set_ylabel("t₁")
fig.colorbar(image, ax=axes, label="t₂", ticks=[0, 6, 13], shrink=0.8);

# %% [markdown]
# Figure: The column that each of 21 times 21 patches remembers, after its table was stretched as a list and as a grid.
# Description: Two maps of 21 by 21. Left, 1-D: each row shows only a part of the shades, the next row another part, and columns are broken up. Right, 2-D: smooth stripes from dark on the left to light on the right, the same in all rows.
#
# The list breaks the columns up: a row of 21 new patches covers only 9⅓ of the 14 old ones.
#
# **Try it.** Show `table[:, 0]`, the row, instead. Why does it look so much better?
#
# ## The wrong order {#order}
#
# A reader, a linear fit, learns to read the row from the code of this book. **Predict** what it reads from the same code in the order of MAE.

# %%
ours = posenc.grid_encoding((n, n), dim, base=100)
reader = np.linalg.lstsq(ours, places[:, 0].astype(float), rcond=1e-8)[0]
fig, axes = plt.subplots(1, 3, figsize=(4.8, 2.2), sharey=True)
for ax, order in zip(axes, ["interleaved", "mae", "timm"]):
    code = posenc.reorder_grid(ours, 2, "interleaved", order)
    read = (code @ reader).reshape(n, n)
    image = ax.imshow(read, **shades)
    ax.set_title(order, fontsize=10)
    ax.set(xticks=[0, 6, 12], yticks=[0, 6, 12], xlabel="t₂")
    print(f"{order:12} {np.abs(read - places[:, 0].reshape(n, n)).mean():.1f}")
axes[0].set_ylabel("t₁")
fig.colorbar(image, ax=axes, label="t₁", ticks=[0, 6, 13], shrink=0.7);

# %% [markdown]
# Figure: The row that a reader finds, trained on the order of this book, in three orders of the same code.
# Description: Three maps of 14 by 14. Left, interleaved: stripes from dark above to light below. Middle and right, mae and timm: the stripes stand upright, light and dark, in no order.
#
# The printed numbers are mean errors in rows. In every order the code holds the row. But what the reader finds now follows the column of the patch.
#
# **Try it.** Put `posenc.reorder_grid(code, 2, order, "interleaved")` before the reader.
#
# ## What to take away {#take-away}
#
# - A list sees a streak, a code of two axes a cross, pairs of many directions a spot.
# - Axial RoPE with equal contents has the kernel of the code that is added.
# - Stretch a table as a grid, and convert the order of its columns before you use it.
#
# Back to the [chapter](../grids.md).
