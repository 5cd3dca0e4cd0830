# ---
# title-en: Masks and leaks
# title-zh: 掩码与泄漏
# description-en: A lab of twenty minutes. Predict, run and change how much attention pads take, in which direction it flows through two layers, how NaN spreads, and what pads on the left do.
# description-zh: 二十分钟的实验：先预测，再运行，再改动。填充分走多少注意力，两层之间朝哪边流，NaN 怎样扩散，填充放在左边又会怎样。
# minutes: 20
# needs: [masks]
# ---

# %% [markdown] lang="en"
# # Masks and leaks {#masks-lab}
#
# The chapter on [padding and masks](../masks.md) measures each leak once. Here you change the settings yourself, for
# about twenty minutes. Each section has the same rhythm: **predict** on paper, run the cell, change something.
#
# Symbols: there are $n$ real tokens and $p$ pads (the chapter calls the number of pads $z$), $t$ is the position of a
# query and $u$ that of a key. $L$ is the leak in: the share of their attention that real queries spend on pads. $L'$
# is the leak out: the share of their attention that pads spend on real tokens. In the pictures $\ell$ is the number
# of the layer, and $A$ are the weights of attention.

# %% [markdown] lang="zh"
# # 掩码与泄漏 {#masks-lab}
#
# [填充与掩码](../masks.md)一章把每种泄漏各量了一次。这里由你自己来调，大约二十分钟。每一节的节奏都一样：先在纸上**预测**，再运行，然后改点什么。
#
# 记号：$n$ 个真实词元，$p$ 个填充，$t$ 是位置。$L$ 是流入的泄漏，即真实查询有多少注意力花在填充上；$L'$ 是流出的泄漏，即填充有多少花在真实词元上。

# %%
import matplotlib.pyplot as plt
import numpy as np

import posenc
from posenc import dot_product_attention, key_padding_mask
from posenc.masks import check_padding, leak_in, leak_out, pad_batch

plt.rcParams["figure.constrained_layout.use"] = True
plt.rcParams["axes.prop_cycle"] = plt.cycler(
    color=["#0072b2", "#d55e00", "#008a65", "#b0578d"],
    linestyle=["-", "--", "-.", ":"],
)

# %% [markdown] lang="en"
# ## Guess a share {#share}
#
# There are five tokens with sinusoidal codes. The projections to queries, keys and values are random matrices,
# multiplied by a scale $s$. **Predict:** with one pad, how large is $L$? And with five pads, is it more or less than
# one half?

# %% [markdown] lang="zh"
# ## 猜一个份额 {#share}
#
# 5 个词元，正弦位置编码，尺度为 $s$ 的随机投影。**预测**：只有一个填充时，$L$ 有多大？有 5 个填充时，超过一半，还是不到？

# %%
n, dim = 5, 16
rng = np.random.default_rng(5)
words = rng.normal(size=(n, dim))
w_q, w_k, w_v = rng.normal(size=(3, dim, dim))


def attend(x, s=0.1, **options):
    return dot_product_attention(x @ w_q * s, x @ w_k * s, x @ w_v * s, **options)


def padded(p, side="right"):
    batch, mask = pad_batch([words], length=n + p, side=side)
    return batch[0] + posenc.sinusoidal_encoding(n + p, dim), mask[0]


for p in [1, 2, 4, 8]:
    x, mask = padded(p)
    _, weights = attend(x)
    leak = leak_in(weights, mask)
    print(f"p = {p}  L = {leak:.3f}  p/(n+p) = {p / (n + p):.3f}")

# %% [markdown] lang="en"
# Small projections give small scores, and small scores give nearly equal weights. Then each of the $n + p$ keys gets
# nearly an equal share, and the pads together get nearly $p/(n+p)$. With five pads that is one half. Whether $L$ is a
# little more or a little less is chance, because it depends on how well the codes happen to fit the queries.
#
# **Try it.** Replace the seed 5 by others. How far from $p/(n+p)$ does $L$ get?
#
# ## Sharp and flat attention {#scale}
#
# A trained model has larger scores than a model at the start of training. Multiply all projections by 30. Then the
# scores become 900 times as large. **Predict:** do the pads get less?

# %% [markdown] lang="zh"
# 投影小，分数就小；分数小，权重就差不多相等。于是 $n + p$ 个键各分到差不多相等的一份，填充合起来是 $p/(n+p)$。实际的数比这高一点还是低一点，只是偶然，要看编码与查询恰好合不合。
#
# **动手**：把种子 5 换成别的。$L$ 会偏离 $p/(n+p)$ 多远？
#
# ## 尖锐与平坦的注意力 {#scale}
#
# 训练过的模型，分数比刚开始时大。**预测**：把所有投影放大 30 倍，分数就放大 900 倍。填充会少分一些吗？

# %%
counts = np.array([0, 1, 2, 4, 8, 16, 32, 64])

fig, ax = plt.subplots(figsize=(4.8, 2.8))
for s, marker in [(0.02, "o"), (0.3, "s"), (0.6, "^")]:
    leaks = []
    for p in counts:
        x, mask = padded(p)
        leaks.append(leak_in(attend(x, s)[1], mask))
    ax.plot(counts, leaks, marker=marker, markersize=4, label=f"s = {s}")
equal = counts / (n + counts)
broad = {"color": "#767676", "linewidth": 5, "linestyle": "-"}
ax.plot(counts, equal, label="p/(n+p)", zorder=0, **broad)
ax.set(xlabel="p", ylabel="L", ylim=(-0.03, 1.03))
ax.legend();

# %% [markdown] lang="en"
# Figure: Leak by number of pads for three scales of the projections, and the equal share as a broad grey line.
# Description: Four rising curves that start at 0. The flattest attention, s = 0.02, lies on the grey line of p/(n+p) and reaches 0.93. The curve for s = 0.3 runs below it and reaches 0.82. The curve for s = 0.6 stays below 0.2.
# <!-- holds: rises(circles); rises(squares); rises(triangles); last(circles) == 0.93; last(squares) == 0.82; top(triangles) < 0.2 -->
#
# Here the pads do get less. A real token is a word plus a code. A pad is a code alone, which is a shorter vector. The
# scores that are far from 0, positive or negative, belong to long vectors, and sharp attention goes to the largest
# scores. But the leak does not reach 0, and it grows with every pad.
#
# **Try it.** Give the pads a vector as long as that of a word, as an embedding without `padding_idx` does: `x[mask]
# += rng.normal(size=dim)`. Run the cell a few times. With $s = 0.6$ and four pads, what is the smallest share that
# you find, and what is the largest?
#
# ## How far down? {#value}
#
# Add a finite number $v$ to the scores of the pads, in place of $-\infty$. The step of `float32` is $2^{-23}$: the
# next number after 1 is $1 + 2^{-23}$. **Predict:** at which $v$ does $L$ fall below this step?

# %% [markdown] lang="zh"
# 图：三种投影尺度下，泄漏随填充个数的变化；灰色宽线是各键均分时的份额。
# 说明：四条曲线都从 0 开始上升。最平坦的注意力 s = 0.02 落在灰线 p/(n+p) 上，升到 0.93。s = 0.3 的曲线低一些，升到 0.82。s = 0.6 的曲线始终低于 0.2。
# <!-- holds: rises(circles); rises(squares); rises(triangles); last(circles) == 0.93; last(squares) == 0.82; top(triangles) < 0.2 -->
#
# 在这里，填充确实会少分一些。真实词元是词嵌入加编码，填充只有编码，模长更小。绝对值很大的分数都来自模长大的向量；注意力一尖锐，权重就集中到分数最大的那几个键上，它们多半是真实词元。不过泄漏不会到 0，而且每多一个填充还会再多一点。
#
# **动手**：让填充带上模长与词相同的向量，没有设 `padding_idx` 的嵌入就是这样：`x[mask] += rng.normal(size=dim)`。多运行几次。$s = 0.6$、4 个填充时，你见到的最小份额是多少，最大呢？
#
# ## 要低到多少？ {#value}
#
# 给填充的分数加上一个有限的 $v$，代替 $-\infty$。**预测**：$v$ 到多少时，$L$ 低于 `float32` 的相对精度 $2^{-23}$？

# %%
x, mask = padded(4)
values = np.arange(0, -41, -2.0)
leaks = []
for v in values:
    _, weights = attend(x, bias=np.tile(v * mask, (n + 4, 1)))
    leaks.append(leak_in(weights, mask))

fig, ax = plt.subplots(figsize=(4.8, 2.6))
ax.semilogy(values, leaks, marker="o", markersize=4)
step = np.finfo(np.float32).eps
ax.axhline(step, color="#767676", linewidth=1, linestyle="-")
ax.annotate("2⁻²³", (0, step), xytext=(0, 3), textcoords="offset points")
ax.set(xlabel="v", ylabel="L", xlim=(1, -41), yticks=[1, 1e-4, 1e-8, 1e-12, 1e-16])
ax.set_yticklabels(["1", "10⁻⁴", "10⁻⁸", "10⁻¹²", "10⁻¹⁶"])
ax.minorticks_off()

# %% [markdown] lang="en"
# Figure: Leak against the value that is added to the scores of pads, on a logarithmic axis, with the step of float32 as a grey line.
# Description: A straight falling line of dots from about 0.4 at v = 0 to about 3e-18 at v = -40. It crosses the grey line between v = -14 and v = -16.
# <!-- holds: rises(solid); last(solid) == 0.4; at(solid, -14) > 2**-23; at(solid, -16) < 2**-23; first(solid) < 4e-18 -->
#
# Each step of $-1$ divides the leak by $e$, so on the logarithmic axis the dots lie on a straight line. It crosses
# the grey line between $v = -14$ and $v = -16$. A straight line on such an axis never reaches zero. `exp` returns
# exactly 0 only because there is a smallest positive floating-point number. In `float64` that happens near $v =
# -745$.
#
# **Try it.** In a real model scores can be large. Use `bias` to add $+30$ to the scores of the first pad. Is $v =
# -20$ then still enough to keep the leak small?
#
# ## Two layers, two directions {#layers}
#
# There are three plans for two layers: no key mask (0 0), a key mask in the first layer only (1 0), and a key mask in
# both (1 1). In each map a row is a query and a column is a key. Dashed lines separate real tokens from pads.
# **Predict** $L$ and $L'$ of each map: are they 0, 1, or in between?

# %% [markdown] lang="zh"
# 图：泄漏与填充分数所加之值的关系，纵轴为对数；灰线是 float32 的相对精度。
# 说明：一串点连成下降的直线，从 v = 0 处的约 0.4 降到 v = -40 处的约 3e-18，在 v = -14 与 v = -16 之间穿过灰线。
# <!-- holds: rises(solid); last(solid) == 0.4; at(solid, -14) > 2**-23; at(solid, -16) < 2**-23; first(solid) < 4e-18 -->
#
# 泄漏小到一定程度以后，$v$ 每减 1，泄漏就除以 $e$，所以从数学上说永远到不了零。程序里的 `exp` 会得到零，只因为浮点数有最小的正数，比它再小就舍入成零。在 `float64` 里，要到 $v = -745$ 附近才会这样。
#
# **动手**：真实的分数可以很大。用 `bias` 给第一个填充的分数加 $+30$，看看这时 $v = -20$ 还顶不顶用。
#
# ## 两层，两个方向 {#layers}
#
# 两层，三种方案：都不加键填充掩码 (0 0)，只有第一层加 (1 0)，两层都加 (1 1)。图中一行是一个查询，一列是一个键，虚线隔开真实词元与填充。
# **预测**每张图的 $L$ 和 $L'$：是 0，是 1，还是中间？

# %%
x, mask = padded(4)
plans = {"0 0": (None, None), "1 0": (mask, None), "1 1": (mask, mask)}

fig, axes = plt.subplots(2, 3, figsize=(4.8, 3.9), sharex=True, sharey=True)
for column, (name, plan) in enumerate(plans.items()):
    h = x
    for depth, hidden in enumerate(plan):
        mixed, weights = attend(h, 0.2, key_padding_mask=hidden)
        h = h + mixed
        ax = axes[1 - depth, column]
        shades = {"cmap": "Blues", "vmin": 0, "vmax": 0.4, "interpolation": "none"}
        image = ax.imshow(weights, **shades)
        ax.axvline(n - 0.5, color="#d55e00", linewidth=1, linestyle="--")
        ax.axhline(n - 0.5, color="#d55e00", linewidth=1, linestyle="--")
        leaks = leak_in(weights, mask), leak_out(weights, mask)
        ax.set_title("L = {:.2f}\nL′ = {:.2f}".format(*leaks), fontsize=10)
        ax.set(xticks=[0, 4, 8], yticks=[0, 4, 8])
    axes[1, column].set_xlabel(f"u\n({name})")
axes[0, 0].set_ylabel("ℓ = 2\nt")
axes[1, 0].set_ylabel("ℓ = 1\nt")
fig.colorbar(image, ax=axes, label="A", ticks=[0, 0.2, 0.4], shrink=0.5);

# %% [markdown] lang="en"
# Figure: Attention weights of two layers, the first below the second, under three plans of masking.
# Description: Six heat maps in two rows and three columns. Left column: shades everywhere, L and L' between 0 and 1 in both layers. Middle column: in the lower map the columns of the pads are empty, L = 0.00 and L' = 1.00; in the upper map they are shaded again. Right column: the columns of the pads are empty in both maps.
#
# Without a mask both leaks lie between 0 and 1. With a mask in both layers $L = 0$ and $L' = 1$. Now look at the
# middle column. In the lower map, the first layer, pads read the real tokens with all their weight, $L' = 1$. In the
# upper map, the second layer, the real tokens read the pads. So the content of real tokens has gone into the pads,
# was mixed there, and comes back.
#
# **Try it.** Add the plan `"0 1"`. Which of its two leaks reaches the output of real tokens?
#
# ## NaN on the march {#nan}
#
# Now take layers of PyTorch (this cell needs `torch`), without gradients, under a causal mask and with four pads on
# the left. The pads are hidden, and a causal mask hides all later keys. So a query that is a pad has no key left.
# **Predict:** which rows are NaN after the first layer? And after the fourth?

# %% [markdown] lang="zh"
# 图：三种方案下两层的注意力权重，第一层在下，第二层在上。
# 说明：六张热图，两行三列。左列：处处有颜色，两层的 L 和 L' 都在 0 与 1 之间。中列：下图里填充的几列是空的，L = 0.00，L' = 1.00；上图里它们又有了颜色。右列：两张图里填充的几列都是空的。
#
# 看中间一列。下图里，填充把全部权重都用来读真实词元，$L' = 1$。上图里，第二层没有掩码，真实词元又去读填充。填充里现在有真实词元的内容，所以这些内容混在一起，经过填充又回到了真实词元。
#
# **动手**：加上方案 `"0 1"`。两种泄漏里，哪一种会到达真实词元的输出？
#
# ## NaN 怎样蔓延 {#nan}
#
# 换成 PyTorch 的层（这一格需要 `torch`），不求梯度，因果掩码，左边 4 个填充。**预测**：第一层之后哪些行是 NaN？第四层之后呢？

# %%
import torch
from torch import nn

depths = 4
rows = np.zeros((depths + 1, n + 4))
torch.manual_seed(0)
h = torch.randn(1, n + 4, dim)
causal = posenc.causal_mask(n + 4, like=h)
left = key_padding_mask([n], n + 4, side="left", like=h)
with torch.no_grad():
    for depth in range(1, depths + 1):
        layer = nn.TransformerEncoderLayer(dim, 2, batch_first=True).eval()
        h = layer(h, src_mask=causal, src_key_padding_mask=left)
        rows[depth] = h[0].isnan().any(dim=-1)

fig, ax = plt.subplots(figsize=(4.8, 2.0))
style = {"cmap": "Oranges", "vmin": 0, "vmax": 1.3, "interpolation": "none"}
ax.imshow(rows, aspect="auto", origin="lower", **style)
for depth, t in zip(*np.nonzero(rows)):
    ax.text(t, depth, "NaN", ha="center", va="center", color="white", fontsize=10)
ax.set(xlabel="t", ylabel="ℓ", xticks=range(n + 4), yticks=range(depths + 1));

# %% [markdown] lang="en"
# Figure: Which rows are NaN after each layer. Upwards: layers, to the right: positions.
# Description: A grid of five rows and nine columns. The bottom row, the input, has no NaN. In row 1 the positions 0 to 3 are NaN. In the rows 2 to 4 all nine positions are NaN.
#
# The first layer makes NaN in the rows of the four pads, because they have no key. The second layer spreads NaN to
# all rows, so nothing is left for the third. In the second layer the weights of the pads are exactly 0. But the
# weighted sum contains $0 \cdot \mathrm{NaN}$, which is NaN.
#
# **Try it.** Remove `torch.no_grad()`. Then put it back, and give the layer one mask instead of the two:
# `src_mask=multihead_mask(safe_mask(combine_masks(left, mask=causal)), 2)`, where 2 is the number of heads. All three
# functions are in `posenc.masks`.
#
# ## More pads on the left, more change? {#left}
#
# Pads on the left shift the codes of all real tokens by $p$ positions. The key mask is on, so nothing leaks. But the
# outputs of the real tokens change, because their codes are others. **Predict:** does this change grow with $p$
# without end?

# %% [markdown] lang="zh"
# 图：每一层之后哪些行是 NaN。纵向是层，横向是位置。
# 说明：五行九列的格子。最下面一行是输入，没有 NaN。第 1 行里位置 0 到 3 是 NaN。第 2 到 4 行里九个位置全是 NaN。
#
# NaN 产生在第一层：左边的填充前面只有填充，因果掩码和键填充掩码合起来，让它一个键也看不到，这一层不求梯度时用的程序就算出 NaN。第二层把 NaN 传遍全句：填充的权重恰好是 0，可加权和里有 $0 \cdot \mathrm{NaN}$，结果还是 NaN。到第三层，所有的行早已是 NaN。
#
# **动手**：去掉 `torch.no_grad()`，看看图有没有变。再放回去，改用 `multihead_mask` 把 `safe_mask(combine_masks(left, mask=causal))` 传给这一层，代替那两张掩码。这三个函数都在 `posenc.masks` 里。
#
# ## 左边补得越多，变得越多？ {#left}
#
# 左边的填充让所有真实词元的编码后移 $p$ 位。这里加了键填充掩码，所以没有泄漏，输出如果变了，就只是因为位置变了。**预测**：$p$ 越大，输出的变化就一直越大吗？

# %%
alone, _ = attend(words + posenc.sinusoidal_encoding(n, dim))
shifts = np.arange(0, 41)
changes = []
for p in shifts:
    x, mask = padded(p, side="left")
    output, _ = attend(x, key_padding_mask=mask)
    changes.append(np.abs(output[p:] - alone).max())

fig, ax = plt.subplots(figsize=(4.8, 2.6))
ax.plot(shifts, changes, marker=".", markersize=4)
ax.set(xlabel="p", ylabel="max |Δ|", ylim=(0, None));

# %% [markdown] lang="en"
# Figure: Largest change of a real output against the number of pads on its left. Positions are counted by place, pads included.
# Description: A curve that starts at 0, rises to a peak of about 0.7 at p = 10 and falls to about 0.24 at p = 19. Then it swings, with peaks at p = 24, 29 and 36, of which that at 29 is the highest.
# <!-- holds: peaks(solid) == 10, 24, 29, 36; top(solid) == 0.7; dip(solid, 10, 40) == 19; at(solid, 19) == 0.24; peak(solid, 20) == 29 -->
#
# The change does not grow without end. It goes up and down. The wavelengths of the code explain the deep dip at $p =
# 19$. The fastest hand turns once in $6.28$ positions, so after 19 positions it has made almost exactly three turns.
# The next hand needs $19.87$ positions for one turn. So both fast hands are nearly back where they were, and only the
# slow hands show the shift.
#
# **Try it.** At which $p$ near 40 do you expect the next dip? Check it. Then use
# `posenc.masks.positions_from_mask(mask)` as the positions of the codes. What does the curve look like now?
#
# ## Check a model {#check}
#
# `check_padding` looks for such changes in any model. The cell prints one line for each case. Its columns say whether
# the model has a key mask, on which side the pads stand (R or L), whether all is well, how much the outputs of real
# tokens change at most when pads are added, and how much they change when the pads get another content. **Predict**
# the four lines.

# %% [markdown] lang="zh"
# 图：真实输出的最大变化与左边填充个数的关系，编码按列计数。
# 说明：曲线从 0 升到 p = 10 处约 0.7 的峰，落到 p = 19 处约 0.24；接着来回摆动，在 p = 24、29、36 处有峰，其中 29 处的最高。
# <!-- holds: peaks(solid) == 10, 24, 29, 36; top(solid) == 0.7; dip(solid, 10, 40) == 19; at(solid, 19) == 0.24; peak(solid, 20) == 29 -->
#
# 不会，变化随 $p$ 上下摆动。$p = 19$ 处的低谷值得对照编码的波长来看：最快的指针 $6.28$ 个位置转一圈，到 19 时转了三圈；第二快的要 $19.87$ 才转一圈。所以两根快的指针都差不多回到了原处，只有慢的指针还留着这次移动。
#
# **动手**：$p$ 接近 40 时，下一个低谷会在哪里？验证一下。再把编码的位置换成 `posenc.masks.positions_from_mask(mask)`，曲线会变成什么样？
#
# ## 检查一个模型 {#check}
#
# `check_padding` 对任何模型做的就是这些。各列依次是：有没有键填充掩码；填充在哪边，R 或 L；是否一切正常；最大的变化；以及换掉填充的内容时的变化。**预测**这四行。

# %%
from functools import partial


def model(x, padding_mask, key_mask=True):
    t = np.arange(x.shape[1])
    h = x + posenc.sinusoidal_encoding(t, dim)
    for _ in range(2):
        mask = padding_mask if key_mask else None
        mixed, _ = attend(h, 0.2, key_padding_mask=mask)
        h = h + mixed
    return h


sentences = [words, words[:2], words[1:4]]
for key_mask in [False, True]:
    report = check_padding(partial(model, key_mask=key_mask), sentences)
    for side, r in [("R", report.right), ("L", report.left)]:
        numbers = f"{r.change:.2f}  {r.content:.2f}"
        print(f"{key_mask!s:5}  {side}  {r.ok!s:5}  {numbers}")

# %% [markdown] lang="en"
# In the first two lines both numbers are large, because the real tokens read the pads. The third line is what you
# want: nothing changes. In the last line the content of the pads does not matter, but the outputs change all the
# same. The reason is that positions were counted by place, pads included, so the pads on the left shift the codes.
#
# **Try it.** Change `model` so that the last line becomes True. Then try other changes, one at a time: give the key
# mask to the first of the two layers only; return `h.mean(axis=1)`; return `posenc.masks.masked_mean(h,
# padding_mask)`. Not all of them are mistakes. Say before each run which lines will be True.
#
# ## What to take away {#take-away}
#
# - With flat attention the share of the pads is their share of all tokens. With sharp attention it can be larger or
#   smaller, but it is never 0.
# - A mask adds $-\infty$ before the softmax, in every layer. Any finite number leaks. A row in which no key is left needs
#   care of its own.
# - Content flows from real tokens into pads. It flows back if any later step reads the pads.
# - Pads on the left change absolute positions, but not offsets.
#
# Back to the [chapter](../masks.md), which has a cure for each of these leaks.

# %% [markdown] lang="zh"
# 前两行没有键填充掩码，两个数都大，说明真实词元读到了填充。最后一行，填充在左边，换掉填充的内容没有影响，输出却变了，因为位置是按列数的。第三行才是想要的结果。
#
# **动手**：把最后一行修好。再把别的错误也犯一遍：只给两层中的第一层加键填充掩码；返回 `h.mean(axis=1)`；返回 `posenc.masks.masked_mean(h, padding_mask)`。每次运行之前，先说出哪几行会是 True。
#
# ## 小结 {#take-away}
#
# - 注意力平坦时，填充按个数分得份额；注意力尖锐时，填充分得的可多可少，但不会是 0。
# - 掩码是 softmax 之前的 $-\infty$，每一层都要有。用有限的数代替 $-\infty$，就会有泄漏；一个键也看不到的行要另外处理。
# - 内容从真实词元流进填充，后面只要有一步去读填充，就会流回来。
# - 左边的填充改变绝对位置，不改变偏移。
#
# 回到[填充与掩码](../masks.md)，那里每个毛病都有药方。
