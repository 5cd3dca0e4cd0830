# ---
# title: Turning queries and keys
# description: A lab of twenty minutes on RoPE. Turn arrows, see scores that know offsets only, build a head that looks back, break a model with the wrong layout, and stretch a context.
# needs: [rotary]
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
# # Turning queries and keys {#rotation}
#
# The chapter on [rotary position embedding](../rotary.md) gives the formula. Here you turn things yourself, for about
# twenty minutes. As in the other labs: **predict** first, then run the cell, then change something.
#
# Symbols: $t$ is the position of a query $q$, $u$ that of a key $k$; both have width $d$. Pair $i$ turns
# counter-clockwise by $\omega_i$ a step, with $\omega_i = b^{-2i/d}$.

# %%
import matplotlib.pyplot as plt
import numpy as np

import posenc

plt.rcParams["figure.constrained_layout.use"] = True
plt.rcParams["axes.prop_cycle"] = plt.cycler(
    color=["#0072b2", "#d55e00", "#008a65", "#b0578d"],
    linestyle=["-", "--", "-.", ":"],
)

# %% [markdown]
# ## An arrow on its way {#arrow}
#
# One vector of width 4: two arrows, one a hundred times slower than the other. **Predict:** after how many steps is
# the fast arrow back where it was? And where is the slow one then?

# %%
x = np.array([1.0, 0.0, 1.0, 0.0])
path = posenc.apply_rotary(x, np.arange(45))
for t in [0, 1, 6, 7, 22, 44]:
    print(f"t = {t:2d}  {path[t].round(3)}")

fig, axes = plt.subplots(1, 2, figsize=(4.8, 2.5))
for ax, i in zip(axes, [0, 1]):
    ax.plot(path[:, 2 * i], path[:, 2 * i + 1], ".", color="#0072b2")
    arrow = [0, path[7, 2 * i]], [0, path[7, 2 * i + 1]]
    ax.plot(*arrow, color="#d55e00", ls="-", lw=2)
    ax.set(aspect="equal", xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), title=f"i = {i}")

# %% [markdown]
# Figure: Where the two arrows point at positions 0 to 44, and where they are at position 7.
# Description: Two squares. On the left dots lie all around a circle, and the arrow points to half past one. On the right the dots form a short arc that starts at three o'clock and goes up by about 25 degrees; the arrow has hardly left.
#
# Never exactly back: $2\pi$ is no whole number of steps. After 44 steps the fast arrow is very close, for $44/7$ is
# nearly $2\pi$. The slow arrow is what tells 0 and 44 apart.
#
# **Try it.** Give `apply_rotary` the argument `base=100`. Which of the two arrows changes?

# %% [markdown]
# ## The score knows the offset {#offset}
#
# Draw a query and a key at random, and put the query at three different places. **Predict:** plot the score against
# $u - t$ for each place. Three curves, or one?

# %%
rng = np.random.default_rng(0)
q, k = rng.normal(size=(2, 64))

fig, axes = plt.subplots(2, 1, figsize=(4.8, 4.2), sharex=True)
offsets = np.arange(-60, 61)
for t in [100, 1000, 100_000]:
    q_t = posenc.apply_rotary(q, [t])[0]
    scores = posenc.apply_rotary(k, t + offsets) @ q_t
    sums = (k + posenc.sinusoidal_encoding(t + offsets, 64)) @ (
        q + posenc.sinusoidal_encoding([t], 64)[0]
    )
    axes[0].plot(offsets, scores, label=f"t = {t}")
    axes[1].plot(offsets, sums, label=f"t = {t}")
    print(f"t = {t:6d}: R {scores[70]:.6f}  + {sums[70]:.6f}")
axes[0].set_title("R(t) q · R(u) k")
axes[1].set(title="(q + PE(t)) · (k + PE(u))", xlabel="u − t")
axes[1].legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.3));

# %% [markdown]
# Figure: Scores against the offset for three positions of the query. Turned: one curve. Added: three.
# Description: Two panels. In the upper one the three curves lie exactly on each other, a wiggly line. In the lower one three different lines share a peak around offset zero and differ in height and shape elsewhere.
#
# One curve above. Below, where codes are added, the terms that join a word with a position depend on where that
# position is.
#
# **Try it.** Turn first and multiply with a random matrix `w` afterwards: `w @ q_t`, and the same for the keys. What
# becomes of the upper panel?

# %% [markdown]
# ## Left and right {#sides}
#
# **Predict:** is a curve of scores symmetric about offset 0, if $q = k$? If $q$ and $k$ are two different vectors?

# %%
same = posenc.apply_rotary(q, offsets) @ q
other = posenc.apply_rotary(k, offsets) @ q
for name, scores in [("q = k", same), ("q ≠ k", other)]:
    print(f"{name}: symmetric {np.allclose(scores, scores[::-1])}")

# %% [markdown]
# Each pair of $q$ and $k$ has an angle between them before anything is turned. It decides on which side of 0 the
# cosine of that pair has its peak. With $q = k$ all these angles are 0.
#
# **Try it.** Set `k = posenc.apply_rotary(q, [20])[0]`. At which offset does the curve have its peak, and why on that side?

# %% [markdown]
# ## A head that looks back {#look-back}
#
# `posenc.rotary.offset_query` turns a key so that it becomes the query for an offset. **Predict:** which is easier to hit
# exactly, 3 back or 300 back? And does a wider head do better?

# %%
print("  d  offset   hit  margin  runner-up")
for d in [8, 32, 128]:
    key = np.ones(d) / np.sqrt(d)
    for offset in [-3, -300]:
        u = np.arange(1001)
        q_t = posenc.apply_rotary(posenc.rotary.offset_query(key, offset), [800])[0]
        scores = posenc.apply_rotary(key, u) @ q_t
        second, first = np.argsort(scores)[-2:]
        margin, away = scores[first] - scores[second], abs(second - first)
        hit = first - 800
        print(f"{d:3d}  {offset:6d}  {hit:4d}  {margin:.4f}  {away:3d} away")

# %% [markdown]
# Both are hit exactly, with the same margin: far is not harder than near. A wider head does not do better. With 32 or
# 128 numbers the runner-up is a neighbour, and the margin is what one step costs. Only fast pairs feel one step; a
# wider head has more of them, but more slow ones, too. With 8 numbers a neighbour is no danger. The runner-up stands
# 63 positions away, where the fastest pair has made ten turns and the second one turn, almost exactly.
#
# **Try it.** Give both functions `base=500000.0`, as Llama 3 has it. What becomes of the margins? Who pays for a
# large base?

# %% [markdown]
# ## The wrong layout {#layout}
#
# **Predict:** a model was trained with interleaved pairs and is run with the half layout. Which entries of its table of
# scores are still right?

# %%
q, k = rng.normal(size=(2, 16, 64)) / np.sqrt(8)
right = posenc.apply_rotary(q, 16) @ posenc.apply_rotary(k, 16).T
wrong = (
    posenc.apply_rotary(q, 16, layout="half")
    @ posenc.apply_rotary(k, 16, layout="half").T
)
print(f"max |wrong − right| = {np.abs(wrong - right).max():.2f}")
print(f"max |right|         = {np.abs(right).max():.2f}")

fig, axes = plt.subplots(1, 2, figsize=(4.8, 2.5), sharey=True)
for ax, table, title in zip(axes, [right, wrong - right], ["s", "Δs"]):
    image = ax.imshow(table, cmap="RdBu_r", vmin=-3, vmax=3)
    ax.set(title=title, xlabel="u")
axes[0].set_ylabel("t")
fig.colorbar(image, ax=axes, label="s, Δs", shrink=0.8);

# %% [markdown]
# Figure: Scores of 16 queries and keys, and the error that the wrong layout makes.
# Description: Two coloured tables, 16 by 16. The right one, the error, is white along its diagonal and grows more colourful with the distance from it, until it is as colourful as the left one.
#
# Only the diagonal, where $t = u$ and nothing turns against anything, is right. Away from it the error grows, and is
# soon as large as the scores.
#
# **Try it.** Convert `q` and `k` with `posenc.interleaved_to_half` between the lines of `right` and `wrong`, and see the
# error vanish. Then convert only `q`.

# %% [markdown]
# ## Stretching a context {#stretch}
#
# A head was trained up to $L = 512$ and is to read 4096 tokens. The curve below is the score of $q = k$ with arrows of
# length 1, $\sum_i \cos \omega_i (u - t)$, for frequencies as they are and for two ways of stretching the context by 8.
# **Predict:** which of them leaves the curve near offset 0 as it was?

# %%
d, length, factor = 64, 512, 8
methods = {
    "ω": posenc.sinusoidal_frequencies(d),
    "ω/8": posenc.linear_frequencies(d, factor),
    "YaRN": posenc.yarn_frequencies(d, factor, original_length=length),
}
unit = np.tile([1.0, 0.0], d // 2)

fig, axes = plt.subplots(1, 2, figsize=(4.8, 2.8), sharey=True)
for name, omega in methods.items():
    for ax, n in zip(axes, [np.arange(16), np.arange(0, 4096, 16)]):
        ax.plot(
            n, posenc.apply_rotary(unit, n, frequencies=omega) @ unit, label=name
        )
    one, far = posenc.apply_rotary(unit, [1, 4095], frequencies=omega) @ unit
    print(f"{name:>4}: u − t = 1 {one:6.2f}   u − t = 4095 {far:6.2f}")
axes[0].set(xlabel="u − t", ylabel="s", title="0 … 15")
axes[1].set(xlabel="u − t", title="0 … 4095")
axes[1].axvline(length, color="#767676", linestyle="-", linewidth=1)
axes[0].legend();

# %% [markdown]
# Figure: Score of equal vectors by offset, near and far, for three sets of frequencies. The grey line is the length of training.
# Description: Left, offsets 0 to 15: the unscaled curve and YaRN's lie close together and fall quickly, the curve of ω/8 stays flat near the top. Right, up to 4095: the unscaled curve falls lowest, the other two stay higher.
#
# Linear interpolation blurs neighbours: one step now counts for an eighth. YaRN leaves the fast pairs alone, which see
# neighbours, and slows those that would otherwise go where they never were in training.
#
# **Try it.** Add `posenc.ntk_frequencies(d, factor)` and `posenc.llama3_frequencies(d, factor, original_length=length)`.
# Which lies closest to the unscaled curve on the left, and on the right?

# %% [markdown]
# ## What to take away {#take-away}
#
# - Each pair is an arrow; positions turn it. Scores see how far two arrows are turned against each other.
# - Before the rotation any weights will do; after it almost none.
# - A head can favour any offset. Fading with distance is no law.
# - Two layouts, one rotation: convert, or get errors as large as the scores.
# - A longer context is a choice of frequencies, and each choice gives something up.
#
# Back to the [chapter](../rotary.md).
