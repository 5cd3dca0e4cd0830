# ---
# title-en: What a patch sees
# title-zh: 图块看见什么
# description-en: A lab of twenty minutes. Predict, run and change which neighbours a position code shows to a patch of a picture, as a list, on a grid, turned, resized, and in the wrong order.
# description-zh: 二十分钟的实验：先预测，再运行，再改动。一个图块靠位置编码看见哪些邻居：排成一串、放上网格、转动、换尺寸，还有列序弄错的时候。
# minutes: 20
# needs: [grids]
# ---

# %% [markdown] lang="en"
# # What a patch sees {#grids-lab}
#
# The chapter on [grids](../grids.md) gives every patch of a picture a coordinate for each axis. In this lab you take
# the place of one patch and see which other patches it attends to, for about twenty minutes. In each section
# **predict** first, then run the cell, then change something.
#
# All patches have the same content, so only their positions differ. The symbols:
#
# - $t_1$, $t_2$: row and column of the patch that looks
# - $g$: what its scores are multiplied by, so a larger $g$ makes its attention sharper
# - $w$: its weights after the softmax
# - θ: the direction along which a pair of RoPE looks, if all pairs have the same one; θᵢ if each has its own

# %% [markdown] lang="zh"
# # 图块看见什么 {#grids-lab}
#
# [网格](../grids.md)一章让每个图块在每条轴上都有一个坐标。这里请你站到一个图块的位置上往外看，大约二十分钟。每一节的做法都一样：先**预测**，再运行，然后改点什么。
#
# 所有图块内容相同，差别只在位置。记号如下：
#
# - $t_1$、$t_2$：正在看的图块的行和列
# - $g$：乘在这个图块的分数上的系数，越大，注意力越集中
# - $w$：softmax 之后的权重
# - θ：所有频率对共同的方向；θᵢ：各对方向不同时，第 i 对的方向

# %%
import matplotlib.pyplot as plt
import numpy as np

import posenc
from posenc.rotary import axial_frequencies, mixed_frequencies

plt.rcParams["figure.constrained_layout.use"] = True

# %% [markdown] lang="en"
# ## A picture, cut up {#picture}
#
# The picture shows a hill under the sun. It has 56 × 56 pixels and is cut into 14 × 14 patches. The model gets the
# patches row by row, counted from 0. The patch that is marked below has the number 89. **Predict:** which numbers do
# its four neighbours have?

# %% [markdown] lang="zh"
# ## 把一张图切开 {#picture}
#
# 太阳下的一座山，56 × 56 个像素，切成 14 × 14 个图块，一行一行交给模型。**预测**：下面标出的图块是 89 号，它的四个邻居各是几号？

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

# %% [markdown] lang="en"
# Figure: A picture of 14 times 14 patches. The patch in row 6 and column 5, number 89, has a blue frame.
# Description: A grey picture with a grid of thin lines: a pale sky, a white sun at the upper right, a darker hill left of the middle. A blue square stands at row 6, column 5, at the top of the hill.
#
# The neighbours on the left and on the right are 88 and 90. Those above and below are 75 and 103, because a row has
# 14 patches.
#
# ## Four codes {#codes}
#
# The next cell draws the weights of that patch in orange on the picture, for four codes: the sinusoidal code of a
# list (PE), the code of the grid (PE ⊕ PE), axial RoPE on the grid (θ = 0), and mixed RoPE on the grid (θᵢ).
# **Predict** the four shapes: is each of them a streak, a cross or a spot?

# %% [markdown] lang="zh"
# 图：14 乘 14 个图块的一张图。第 6 行第 5 列的图块，89 号，加了蓝框。
# 说明：一张灰色的图，上面有细线网格：浅色的天，右上方白色的太阳，中间偏左一座较深的山。蓝色方框在第 6 行第 5 列，山顶上。
#
# 左右是 88 和 90，上下是 75 和 103。
#
# ## 四种编码 {#codes}
#
# 把这个图块的权重用橙色画在图上，四种编码各一张：把图块排成一串的正弦位置编码 (PE)、网格编码 (PE ⊕ PE)、网格上轴向的 (θ = 0) 和混合的 (θᵢ) RoPE。混合的 RoPE 里，代码让相邻两对的方向相差 1.94 弧度，好让各对的方向散开。**预测**四种形状：一道、十字，还是一个斑？

# %%
dim, g = 64, 7.0
places = posenc.grids.grid_coordinates((n, n))
same = np.tile([1.0, 0.0], (n * n, dim // 2))


def turned(frequencies):
    return posenc.rotary.apply_rotary_axes(same, places, frequencies)


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

# %% [markdown] lang="en"
# Figure: What the patch sees, four codes. Orange is weight, each panel on its own scale.
# Description: Four times the picture with a blue square at row 6, column 5. First: an orange streak along row 6. Second and third: an orange cross along row 6 and column 5, alike. Fourth: an orange spot around the square, which fades in all directions.
#
# The list gives a streak, because there only the patches of the same row have numbers near 89. The code of the grid
# and axial RoPE give a cross, and mixed RoPE gives a spot. The crosses consist of the same numbers: if all contents
# are equal, the code of a grid and axial RoPE have the same kernel.
#
# **Try it.** Set $g = 3$, then $g = 60$. Which picture changes its *shape*?
#
# ## A direction to look along {#directions}
#
# Now turn the directions of all pairs by one angle θ. At θ = 0 the pairs look along rows and columns. **Predict:**
# what do the weights look like at θ = π/8, and at θ = π/4?

# %% [markdown] lang="zh"
# 图：四种编码下图块看见的东西。橙色是权重，每幅各用各的尺度。
# 说明：同一张图四次，蓝色方框在第 6 行第 5 列。第一幅：沿第 6 行一道橙色。第二、三幅：沿第 6 行和第 5 列的橙色十字，一模一样。第四幅：方框周围一个橙色的斑，向四面八方变淡。
#
# 第二幅和第三幅的数完全相同，因为内容全都相同时，网格编码和轴向 RoPE 的核是同一个。
#
# **动手**：令 $g = 3$，再令 $g = 60$。哪一幅变了**形状**？
#
# ## 朝着一个方向看 {#directions}
#
# 把所有频率对的方向转同一个角度 θ：θ = 0 时是沿着行和列。**预测**：θ = π/8 和 θ = π/4 是什么样子？

# %%
fig, axes = plt.subplots(1, 3, figsize=(4.8, 2.0), sharey=True)
for ax, eighths in zip(axes, [0, 1, 2]):
    code = turned(mixed_frequencies(dim, eighths * np.pi / 8, base=100))
    show(ax, f"θ = {22.5 * eighths:g}°", weights_of(code))
    ax.label_outer()

# %% [markdown] lang="en"
# Figure: The cross of axial RoPE, turned by 0, 22.5 and 45 degrees.
# Description: Three times the picture with an orange cross on the blue square. Left: upright. Middle: tilted by 22.5 degrees. Right: its four arms along the diagonals.
#
# The cross turns by the angle θ. If θ is trained, each head can learn in which directions it looks.
#
# **Try it.** Let the first half of the angles be 0 and the others π/4: `np.repeat([0, np.pi / 4], dim // 8)`. How
# many arms does the star have?
#
# ## A larger picture {#larger}
#
# A table with a row for each of 14 × 14 patches is to be used for 21 × 21 patches. To see what stretching does, let
# each row of the table hold its own $t_1$ and $t_2$, as if it remembered its place. Then stretch the table once as a
# list and once as a grid. **Predict:** if it is stretched as a list, which column does a patch at the right edge
# remember?

# %% [markdown] lang="zh"
# 图：轴向 RoPE 的十字，转 0、22.5 和 45 度。
# 说明：同一张图三次，蓝色方框上有橙色的十字。左：正立。中：斜了 22.5 度。右：四条臂沿着对角线。
#
# 如果 θ 也参加训练，每个头就能自己选定朝哪个方向看。
#
# **动手**：让前一半的角为 0，其余为 π/4：`np.repeat([0, np.pi / 4], dim // 8)`。这颗星有几条臂？
#
# ## 更大的图 {#larger}
#
# 一张 14 × 14 行的表要用在 21 × 21 个图块上。这里在表的每一行里存放自己的 $t_1$ 和 $t_2$，再用两种办法拉伸这张表：当成一串，或者当成网格。**预测**：当成一串来拉，右边缘的图块里存着什么列号？

# %%
remember = places.astype(float)
stretched = {
    "1-D": posenc.learned.interpolate_table(remember, 21 * 21),
    "2-D": posenc.grids.interpolate_grid(remember, (n, n), (21, 21)),
}
shades = {"cmap": "viridis", "vmin": 0, "vmax": n - 1, "interpolation": "none"}
fig, axes = plt.subplots(1, 2, figsize=(4.8, 2.6), sharey=True)
for ax, (name, table) in zip(axes, stretched.items()):
    image = ax.imshow(table[:, 1].reshape(21, 21), **shades)
    ax.set_title(name, fontsize=10)
    ax.set(xticks=[0, 10, 20], yticks=[0, 10, 20], xlabel="t₂")
axes[0].set_ylabel("t₁")
fig.colorbar(image, ax=axes, label="t₂", ticks=[0, 6, 13], shrink=0.8);

# %% [markdown] lang="en"
# Figure: The column that each of 21 times 21 patches remembers, after its table was stretched as a list and as a grid.
# Description: Two maps of 21 by 21. Left, 1-D: each row shows only a part of the shades, the next row another part, and columns are broken up. Right, 2-D: smooth stripes from dark on the left to light on the right, the same in all rows.
#
# Stretching as a list breaks the columns up, because a row of 21 new patches covers only 9⅓ of the 14 old ones. So
# the patch at the right end of the first row remembers a column near 9, and the patch at the right end of the second
# row remembers one near 4. If the table is stretched as a grid, all patches at the right edge remember a column near
# 13, the last one.
#
# **Try it.** Show `table[:, 0]`, which is the row that each patch remembers. Why does it look so much better?
#
# ## The wrong order {#order}
#
# A linear fit learns to read the row of a patch from the code of this book. We call the fit a *reader*. Other
# programs use the same code, but with the columns in another order: two of these orders are those of MAE and of timm.
# **Predict:** what does the reader read from the code in the order of MAE?

# %% [markdown] lang="zh"
# 图：当成一串、当成网格拉伸之后，21 乘 21 个图块各自记着的列号。
# 说明：两张 21 乘 21 的图。左图，1-D：每一行只有一段深浅，下一行是另一段，列都断开了。右图，2-D：平滑的竖条，左深右浅，各行相同。
#
# 当成一串来拉，列就断了，因为新的一行有 21 个图块，只对应旧的一行 14 个中的 9⅓ 个。所以同在右边缘，各行存着的列号却不一样，大多不是最右边的 13。
#
# **动手**：把代码里的 `table[:, 1]` 换成 `table[:, 0]`，也就是改画行号。为什么看上去好得多？
#
# ## 列序错了 {#order}
#
# 训练一个线性的读数器，从本书的编码里读出行号。把同样的编码换成 MAE 的次序，**预测**它会读出什么。

# %%
ours = posenc.grid_encoding((n, n), dim, base=100)
reader = np.linalg.lstsq(ours, places[:, 0].astype(float), rcond=1e-8)[0]
fig, axes = plt.subplots(1, 3, figsize=(4.8, 2.2), sharey=True)
for ax, order in zip(axes, ["interleaved", "mae", "timm"]):
    code = posenc.grids.reorder_grid(ours, 2, "interleaved", order)
    read = (code @ reader).reshape(n, n)
    image = ax.imshow(read, **shades)
    ax.set_title(order, fontsize=10)
    ax.set(xticks=[0, 6, 12], yticks=[0, 6, 12], xlabel="t₂")
    print(f"{order:12} {np.abs(read - places[:, 0].reshape(n, n)).mean():.1f}")
axes[0].set_ylabel("t₁")
fig.colorbar(image, ax=axes, label="t₁", ticks=[0, 6, 13], shrink=0.7);

# %% [markdown] lang="en"
# Figure: The row that the reader finds in three orders of the same code. The reader was trained on the order of this book.
# Description: Three maps of 14 by 14. Left, interleaved: stripes from dark above to light below. Middle and right, mae and timm: the stripes stand upright, light and dark, in no order.
#
# The printed numbers are the mean errors of the reader, counted in rows. In every order the code still holds the row
# of the patch. But in the orders of MAE and timm the reader looks for it in the wrong columns of the code, so what it
# finds follows the column of the patch.
#
# **Try it.** Bring the columns back into the order of this book before the reader gets them, with
# `posenc.grids.reorder_grid(code, 2, order, "interleaved")`. What are the errors now?
#
# ## What to take away {#take-away}
#
# - With the code of a list a patch sees a streak, with a code of two axes it sees a cross, and with pairs that look in
#   many directions it sees a spot.
# - If all contents are equal, axial RoPE has the same kernel as the code of the grid that is added.
# - Stretch a table as a grid. If it comes from another program, convert the order of its columns before you use it.
#
# Back to the [chapter](../grids.md).

# %% [markdown] lang="zh"
# 图：按本书的次序训练的读数器，在同一编码的三种次序里读出的行号。
# 说明：三张 14 乘 14 的图。左图，interleaved：横条，上深下浅。中图和右图，mae 和 timm：条纹竖了起来，深浅不按次序。
#
# 打印的数是平均误差，单位是行。每种次序的编码里都有行号，可是次序错了以后，读数器读的是别的列，读出来的数就不再按图块的行来变，而是主要随图块的列变。
#
# **动手**：在读数器前面加上 `posenc.grids.reorder_grid(code, 2, order, "interleaved")`。
#
# ## 小结 {#take-away}
#
# - 图块排成一串时，看见的是一道；每条轴各有一份编码时，看见的是十字；频率对朝着许多方向时，看见的是一个斑。
# - 内容相同时，轴向 RoPE 的核就是网格编码的核。
# - 表要按网格拉伸，用之前先换好列序。
#
# 回到[那一章](../grids.md)。
