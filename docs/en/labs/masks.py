# ---
# title: Masks and leaks
# description: A lab of twenty minutes. Predict, run and change how much attention pads take, in which direction it flows through two layers, how NaN spreads, and what pads on the left do.
# needs: [masks]
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
# # Masks and leaks {#masks-lab}
#
# The chapter on [padding and masks](../masks.md) measures each leak once. Here you turn the knobs yourself, for about
# twenty minutes. The rhythm of each section: **predict** on paper, run the cell, change something.
#
# Symbols: $n$ real tokens, $p$ pads, $t$ a position. $L$ is the leak in, the share of their attention that real queries
# spend on pads. $L'$ is the leak out, the share that pads spend on real tokens.

# %%
import matplotlib.pyplot as plt
import numpy as np

import posenc
from posenc import dot_product_attention
from posenc.masks import (
    check_padding,
    key_padding_mask,
    leak_in,
    leak_out,
    pad_batch,
)

plt.rcParams["figure.constrained_layout.use"] = True
plt.rcParams["axes.prop_cycle"] = plt.cycler(
    color=["#0072b2", "#d55e00", "#008a65", "#b0578d"],
    linestyle=["-", "--", "-.", ":"],
)

# %% [markdown]
# ## Guess a share {#share}
#
# Five tokens, sinusoidal codes, random projections of scale $s$. **Predict:** with one pad, how large is $L$? And with
# five pads: more or less than one half?

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

# %% [markdown]
# Small projections give small scores, and small scores give nearly equal weights. Then each of the $n + p$ keys gets its
# equal share, and the pads together $p/(n+p)$. Whatever is above or below that is chance: how well the codes happen to fit the queries.
#
# **Try it.** Replace the seed 5 by others. How far from $p/(n+p)$ does $L$ get?
#
# ## Sharp and flat attention {#scale}
#
# A trained model has larger scores than one at the start. **Predict:** multiply all projections by 30, so that scores grow
# 900-fold. Do the pads get less?

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

# %% [markdown]
# Figure: Leak by number of pads for three scales of the projections, and the equal share as a broad grey line.
# Description: Four rising curves that start at 0. The flattest attention, s = 0.02, lies on the grey line of p/(n+p) and reaches 0.93. The curve for s = 0.3 runs below it and reaches 0.82. The curve for s = 0.6 stays below 0.2.
#
# Here they do. A real token is a word plus a code, a pad is a code alone: the shorter vector. Large scores, for better or worse, belong to
# long vectors, and sharp attention goes to the largest. But the leak does not reach 0, and it grows with every pad.
#
# **Try it.** Give the pads a vector as long as a word, as an embedding without `padding_idx` does: `x[mask] += rng.normal(size=dim)`. Run
# the cell a few times. With $s = 0.6$ and four pads, what is the smallest share you find, and what is the largest?
#
# ## How far down? {#value}
#
# Add a finite $v$ to the scores of the pads in place of $-\infty$. **Predict:** at which $v$ does $L$ fall below the step of
# `float32`, $2^{-23}$?

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

# %% [markdown]
# Figure: Leak against the value that is added to the scores of pads, on a logarithmic axis, with the step of float32 as a grey line.
# Description: A straight falling line of dots from about 0.4 at v = 0 to about 1e-18 at v = -40. It crosses the grey line between v = -14 and v = -16.
#
# Each step of $-1$ divides the leak by $e$. A straight line never reaches zero; `exp` does only because numbers end. In
# `float64` that happens near $v = -745$.
#
# **Try it.** Real scores can be large. Give the first pad a score bonus of $+30$ by `bias`, and see what $v = -20$ is worth then.
#
# ## Two layers, two directions {#layers}
#
# Three plans for two layers: no key mask (0 0), in the first only (1 0), in both (1 1). Rows of a map are queries, columns
# keys; dashed lines part real tokens from pads. **Predict** $L$ and $L'$ of each map, 0 or 1 or between.

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

# %% [markdown]
# Figure: Attention weights of two layers, the first below the second, under three plans of masking.
# Description: Six heat maps in two rows and three columns. Left column: shades everywhere, L and L' between 0 and 1 in both layers. Middle column: in the lower map the columns of the pads are empty, L = 0.00 and L' = 1.00; in the upper map they are shaded again. Right column: the columns of the pads are empty in both maps.
#
# Look at the middle column. In the lower map pads read the real tokens with all their weight, $L' = 1$. In the upper one
# the real tokens read the pads. So real content makes a detour and comes back, mixed.
#
# **Try it.** Add the plan `"0 1"`. Which of its two leaks reaches the output of real tokens?
#
# ## NaN on the march {#nan}
#
# Now a layer of PyTorch (this cell needs `torch`), without gradients, with four pads on the left under a causal mask. **Predict:** which rows are NaN after the first layer?
# And after the fourth?

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

# %% [markdown]
# Figure: Which rows are NaN after each layer. Upwards: layers, to the right: positions.
# Description: A grid of five rows and nine columns. The lowest row, the input, has no NaN. In row 1 the positions 0 to 3 are NaN. In the rows 2 to 4 all nine positions are NaN.
#
# One layer makes it, the next one spreads it, and there is nothing left for the third to do. The weights of the pads are
# exactly 0 in the second layer. But the weighted sum contains $0 \cdot \mathrm{NaN}$.
#
# **Try it.** Remove `torch.no_grad()`. Then put it back, and give the layer `safe_mask(combine_masks(left, mask=causal))` through
# `multihead_mask` instead of both masks. All three functions are in `posenc.masks`.
#
# ## More pads on the left, more change? {#left}
#
# Pads on the left shift the codes of all real tokens by $p$. The key mask is on, so nothing leaks. **Predict:** does the change grow with
# $p$ without end?

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

# %% [markdown]
# Figure: Largest change of a real output against the number of pads on its left, codes counted by place.
# Description: A curve that starts at 0, rises to a peak of about 0.7 at p = 10, falls to about 0.24 at p = 19, rises to a second peak at p = 29 and falls again.
#
# It swings. The deep dip at $p = 19$ is worth a look at the wavelengths of the code: the fastest hand turns once in 6.28 positions, so after 19 it
# has made three turns; the next one needs 19.87 for a turn. Both fast hands are nearly back where they were, and only the slow ones tell of the
# shift.
#
# **Try it.** At which $p$ near 40 do you expect the next dip? Check. Then use `posenc.masks.positions_from_mask(mask)` as the positions of the codes. What does the curve look like now?
#
# ## Check a model {#check}
#
# `check_padding` does all this for any model. Columns: key mask or not; side of the pads, R or L; whether all is well; the largest change; and the change when
# something else stands in the pads. **Predict** the four lines.

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

# %% [markdown]
# In the first two lines both numbers are large: the pads are read. In the last one the outputs change although the content of the pads does not
# matter: positions were counted by place. And the third line is what you want.
#
# **Try it.** Mend the last line. Then find the other mistakes that one can make: give the key mask to the first of the two layers only; return
# `h.mean(axis=1)`; return `posenc.masks.masked_mean(h, padding_mask)`. Say before each run which lines will be True.
#
# ## What to take away {#take-away}
#
# - Flat attention gives pads the share that their number gives them; sharp attention gives them more or less, and never 0.
# - A mask is $-\infty$ before the softmax, in every layer. Anything finite leaks; a row with nothing left is a case of its own.
# - Content flows out of real tokens into pads, and back wherever one later step reads the pads.
# - Pads on the left move absolute positions, not offsets.
#
# Back to the [chapter](../masks.md), where each of these comes with its cure.
