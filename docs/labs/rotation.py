# ---
# title-en: Turning queries and keys
# title-zh: 旋转查询和键
# description-en: A lab of twenty minutes on RoPE. Turn arrows, see scores that know offsets only, build a head that looks back, break a model with the wrong layout, and stretch a context.
# description-zh: 二十分钟的 RoPE 实验：转箭头，看分数只认偏移，造一个往回看的头，用错的配对弄坏一个模型，再把上下文拉长。
# minutes: 20
# needs: [rotary]
# ---

# %% [markdown] lang="en"
# # Turning queries and keys {#rotation}
#
# The chapter on [rotary position embedding](../rotary.md) gives the formula. Here you turn queries and keys yourself,
# for about twenty minutes. As in the other labs: **predict** first, then run the cell, then change something.
#
# Symbols: $t$ is the position of a query $q$, and $u$ that of a key $k$. Both have width $d$. Pair $i$ turns
# counter-clockwise by the angle $\omega_i$ at each step, with $\omega_i = b^{-2i/d}$. (In the book a plain $k$ is an
# offset; in this lab it is a key.)

# %% [markdown] lang="zh"
# # 旋转查询和键 {#rotation}
#
# [旋转位置编码](../rotary.md)一章给出了公式，这里让你亲手转上二十分钟。和别的实验一样：先**预测**，再运行代码，然后改点什么。
#
# 记号：查询 $q$ 在位置 $t$，键 $k$ 在位置 $u$，宽度都是 $d$。第 $i$ 对每走一步逆时针转 $\omega_i$，其中 $\omega_i = b^{-2i/d}$。

# %%
import matplotlib.pyplot as plt
import numpy as np

import posenc

plt.rcParams["figure.constrained_layout.use"] = True
plt.rcParams["axes.prop_cycle"] = plt.cycler(
    color=["#0072b2", "#d55e00", "#008a65", "#b0578d"],
    linestyle=["-", "--", "-.", ":"],
)

# %% [markdown] lang="en"
# ## An arrow on its way {#arrow}
#
# One vector of width 4: two arrows, one a hundred times slower than the other. **Predict:** after how many steps is
# the fast arrow back where it was? And where is the slow one then?

# %% [markdown] lang="zh"
# ## 边走边转的箭头 {#arrow}
#
# 宽度为 4 的一个向量有两对数，也就是两根箭头，快箭头的速度是慢箭头的一百倍。**预测**：走多少步，快箭头才回到原处？那时慢箭头在哪里？

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

# %% [markdown] lang="en"
# Figure: Where the two arrows point at positions 0 to 44, and where they are at position 7.
# Description: Two squares. On the left dots lie all around a circle, and the arrow points to half past one. On the right the dots form a short arc from three o'clock to about 25 degrees above it; the arrow has hardly left.
#
# The fast arrow is never exactly back. It turns by the angle 1 at each step, and no whole number of steps makes a
# whole number of turns of $2\pi$. After 44 steps it is very close, because 7 turns are $14\pi$, which is nearly 44.
# The slow arrow has then turned by only about 25 degrees. So the slow arrow is what tells the positions 0 and 44
# apart.
#
# **Try it.** Give `apply_rotary` the argument `base=100`. Which of the two arrows changes?

# %% [markdown] lang="zh"
# 图：位置 0 到 44 上两根箭头的去处，以及位置 7 上的箭头。
# 说明：两个方格。左边的点布满一圈，箭头指向一点半。右边的点连成一小段弧，从三点钟方向往上约 25 度；箭头几乎还没动身。
#
# 快箭头永远不会分毫不差地回到原处，因为转一圈要 $2\pi$ 步，而 $2\pi$ 是无理数，转多少整圈都不会正好用整数步。走 44 步时它已经很接近原处，因为 $44/7$ 差不多就是 $2\pi$，这时它转了七圈。单看快箭头，位置 0 和 44 几乎一样；慢箭头转了约 25 度，靠它才分得清。
#
# **动手**：给 `apply_rotary` 加上参数 `base=100`。两根箭头里，哪一根变了？

# %% [markdown] lang="en"
# ## The score knows the offset {#offset}
#
# Draw a query and a key at random, and put the query at three different places. **Predict:** plot the score against
# $u - t$ for each place. Three curves, or one?

# %% [markdown] lang="zh"
# ## 分数只认偏移 {#offset}
#
# 随机取一个查询、一个键，把查询放到三个不同的地方。**预测**：各画一条分数随 $u - t$ 变化的曲线，会是三条，还是一条？

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

# %% [markdown] lang="en"
# Figure: Scores against the offset for three positions of the query. Turned: one curve. Added: three.
# Description: Two panels. In the upper one the three curves lie exactly on each other, a wiggly line. In the lower one three different lines share a peak around offset zero and differ in height and shape elsewhere.
# <!-- holds: peak(p2.solid) == 0; peak(p2.dashed) == 0; peak(p2.dashdot) == 0 -->
#
# In the upper panel the three curves are one, because the score depends on the offset alone. In the lower panel codes
# are added instead. There the product also has terms in which a word meets a code, such as $q \cdot PE(u)$. These
# terms depend on the position itself, so each place of the query has a curve of its own.
#
# **Try it.** Turn first and multiply by a random matrix `w` afterwards: `w @ q_t`, and the same for the keys. What
# does the upper panel look like now?

# %% [markdown] lang="zh"
# 图：查询在三个位置上，分数随偏移的变化。旋转：一条曲线。相加：三条。
# 说明：上下两幅。上面三条曲线完全重合，弯弯曲曲。下面三条各走各的，在偏移零附近都有一座峰，别处高低和形状都不同。
# <!-- holds: peak(p2.solid) == 0; peak(p2.dashed) == 0; peak(p2.dashdot) == 0 -->
#
# 上面三条重合成一条，因为旋转之后，分数只取决于偏移。下面是把编码加到查询和键上。乘开以后，有两项是内容与编码的点积，$q \cdot PE(u)$ 和 $PE(t) \cdot k$，它们取决于位置本身，所以三条各不相同。
#
# **动手**：先旋转，再乘一个随机矩阵 `w`：`w @ q_t`，键也一样。上面那幅会变成什么样？

# %% [markdown] lang="en"
# ## Left and right {#sides}
#
# **Predict:** is a curve of scores symmetric about offset 0, if $q = k$? If $q$ and $k$ are two different vectors?

# %% [markdown] lang="zh"
# ## 左与右 {#sides}
#
# **预测**：$q = k$ 时，分数曲线关于偏移 0 对称吗？$q$ 和 $k$ 是两个不同的向量呢？

# %%
same = posenc.apply_rotary(q, offsets) @ q
other = posenc.apply_rotary(k, offsets) @ q
for name, scores in [("q = k", same), ("q ≠ k", other)]:
    print(f"{name}: symmetric {np.allclose(scores, scores[::-1])}")

# %% [markdown] lang="en"
# With $q = k$ the curve is symmetric, and with two different vectors it is not. In each pair, $q$ and $k$ have an
# angle between them before anything is turned. This angle decides on which side of offset 0 the cosine of that pair
# has its peak. With $q = k$ all these angles are 0, so every cosine has its peak at 0 and is symmetric.
#
# **Try it.** Set `k = posenc.apply_rotary(q, [20])[0]`. At which offset does the curve have its peak, and why on that side?

# %% [markdown] lang="zh"
# $q = k$ 时对称，$q$ 和 $k$ 不同时不对称。在旋转之前，$q$ 和 $k$ 的每一对数之间就已经有一个夹角，这个夹角决定这一对的余弦在偏移 0 的哪一侧出现峰值。$q = k$ 时，夹角都是 0，每个余弦的峰都在偏移 0，左右对称；$q \ne k$ 时，各对的峰落在不同的偏移上。
#
# **动手**：令 `k = posenc.apply_rotary(q, [20])[0]`。曲线的峰在哪个偏移上？为什么在那一侧？

# %% [markdown] lang="en"
# ## A head that looks back {#look-back}
#
# `posenc.rotary.offset_query` takes a key and an offset, and turns the key by this offset. The result is a query that
# scores highest on a key of this kind at this offset. In the table below, `hit` is the offset with the highest score,
# and `margin` is by how much this score is higher than the second highest one, the runner-up. **Predict:** which is
# easier to hit exactly, 3 back or 300 back? And does a wider head do better?

# %% [markdown] lang="zh"
# ## 往回看的头 {#look-back}
#
# `posenc.rotary.offset_query` 把键转一下，变成专找某个偏移的查询。**预测**：往回 3 位和往回 300 位，哪个更容易正中？头宽一些，会更好吗？打印的各列是：宽度，要找的偏移，分数最高的偏移，最高分领先第二名多少，以及第二名离最高处多少位。

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

# %% [markdown] lang="en"
# Both are hit exactly, with the same margin, so 300 back is not harder than 3 back. A wider head does not do better.
# With 32 or 128 numbers the runner-up is a neighbour, so the margin is what the score loses in one step. Only fast
# pairs lose much in one step. A wider head has more fast pairs, but also more slow ones. With 8 numbers the neighbour
# is not the runner-up. The runner-up stands 63 positions away. There the fastest pair has made almost exactly ten
# turns and the second pair almost exactly one turn, so both are back nearly where they were.
#
# **Try it.** Give both functions `base=500000.0`, the base of Llama 3. What happens to the margins? So what is the
# price of a large base?

# %% [markdown] lang="zh"
# 往回 3 位和往回 300 位都正中，领先的幅度也一样，所以远的并不比近的难。头宽了也没有更好。宽 32 和 128 时，第二名就是相邻的位置，所以领先多少，要看差一步会降多少分。差一步就明显降分的只有快的频率对；宽的头里，快的频率对多些，慢的也多些，所以领先的幅度并不随宽度增大。宽 8 时，相邻的位置得分较低，第二名在 63 位之外：在那里，最快的一对几乎正好转了十圈，第二对几乎正好一圈，都差不多回到了原处。
#
# **动手**：给两个函数都加上 `base=500000.0`，这是 Llama 3 的底数。领先的幅度变成多少？底数大了，为什么附近的位置更难分开？

# %% [markdown] lang="en"
# ## The wrong layout {#layout}
#
# A model was trained with interleaved pairs, and then it is run with the half layout. **Predict:** which entries of
# its table of scores are still right?

# %% [markdown] lang="zh"
# ## 配错了对 {#layout}
#
# **预测**：模型用交错配对训练，却用对半配对来跑。分数表里，还有哪些格是对的？

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

# %% [markdown] lang="en"
# Figure: Scores of 16 queries and keys, and the error that the wrong layout makes.
# Description: Two coloured tables, 16 by 16. The right one, the error, is white along its diagonal and grows more colourful with the distance from it, until it is as colourful as the left one.
#
# Only the diagonal is right. There $t = u$, so query and key are turned by the same angles, and in either layout the
# score is that of the vectors before the rotation. Away from the diagonal the error grows, and it is soon as large as
# the scores.
#
# **Try it.** Between the line that computes `right` and the lines that compute `wrong`, convert `q` and `k` with
# `posenc.rotary.interleaved_to_half`, and see the error vanish. Then convert only `q`.

# %% [markdown] lang="zh"
# 图：16 个查询和键的分数，以及配错对带来的误差。
# 说明：两张 16 乘 16 的彩色表。右边是误差，对角线上是白的，离对角线越远颜色越重，直到和左边一样花。
#
# 只有对角线上的分数是对的，因为那里 $t = u$，查询和键转过同样的角，不论怎样配对，点积都不变。离对角线越远误差越大，很快就和分数一样大。
#
# **动手**：在 `right` 和 `wrong` 两行之间，用 `posenc.rotary.interleaved_to_half` 转换 `q` 和 `k`，看误差消失。然后只转换 `q` 试试。

# %% [markdown] lang="en"
# ## Stretching a context {#stretch}
#
# A head was trained on texts of up to $L = 512$ tokens and is now to read 4096. The curves below are scores of equal
# vectors, $q = k$, whose arrows all have length 1. Such a score is $\sum_i \cos \omega_i (u - t)$. One curve has the
# frequencies as they are. The other two have frequencies that stretch the context by the factor 8: all of them
# divided by 8 (linear interpolation), or those of YaRN. **Predict:** which of these two leaves the curve near offset
# 0 as it was?

# %% [markdown] lang="zh"
# ## 把上下文拉长 {#stretch}
#
# 一个头训练到 $L = 512$，现在要读 4096 个词元。下面的曲线是 $q = k$、箭头长度都为 1 时的分数 $\sum_i \cos \omega_i (u - t)$：一条用原来的频率，两条用拉长到 8 倍的两种办法。**预测**：哪一种不改变偏移 0 附近的曲线？

# %%
d, length, factor = 64, 512, 8
methods = {
    "ω": posenc.sinusoidal_frequencies(d),
    "ω/8": posenc.rotary.linear_frequencies(d, factor),
    "YaRN": posenc.rotary.yarn_frequencies(d, factor, original_length=length),
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

# %% [markdown] lang="en"
# Figure: Score of equal vectors by offset, near and far, for three sets of frequencies. The grey line is the length of training.
# Description: Left, offsets 0 to 15: the unscaled curve and YaRN's lie close together and fall quickly, the curve of ω/8 stays flat near the top. Right, up to 4095: the unscaled curve falls lowest, the other two stay higher.
# <!-- holds: falls(p1.solid); falls(p1.dashdot); low(p1.dashed) == 28.7; low(p2.solid) < low(p2.dashdot) < low(p2.dashed) -->
#
# YaRN leaves the curve near offset 0 almost as it was. Linear interpolation does not. It blurs neighbours, because
# one step now turns each pair only an eighth as far. YaRN does not change the fast pairs, and these are the ones that
# tell neighbours apart. It slows only the pairs that would otherwise reach angles that they never had in training.
#
# **Try it.** Add `posenc.rotary.ntk_frequencies(d, factor)` and `posenc.rotary.llama3_frequencies(d, factor,
# original_length=length)`. Which curve lies closest to the unscaled one on the left, and which on the right?

# %% [markdown] lang="zh"
# 图：查询与键相同时，分数随偏移的变化：近处与远处，三组频率。灰线是训练长度。
# 说明：左图是偏移 0 到 15：原来的曲线和 YaRN 的靠在一起，很快下降；ω/8 的曲线贴着顶端，几乎是平的。右图到 4095：原来的曲线落得最低，另外两条高一些。
# <!-- holds: falls(p1.solid); falls(p1.dashdot); low(p1.dashed) == 28.7; low(p2.solid) < low(p2.dashdot) < low(p2.dashed) -->
#
# YaRN 不改变偏移 0 附近的曲线。线性插值 (ω/8) 让相邻的位置难以分辨，因为现在一步只当八分之一步用。YaRN 不动快的频率对，因为相邻位置靠它们分辨；它只放慢那些慢的频率对，因为文本一长，这些对会转到训练时没见过的角度。
#
# **动手**：加上 `posenc.rotary.ntk_frequencies(d, factor)` 和 `posenc.rotary.llama3_frequencies(d, factor, original_length=length)`。左图里谁离原来的曲线最近？右图里呢？

# %% [markdown] lang="en"
# ## What to take away {#take-away}
#
# - Each pair is an arrow, and the position turns it. A score depends on how far two arrows are turned against each other.
# - A matrix before the rotation can be any matrix, and the score still depends on the offset alone. With almost any
#   matrix after the rotation it does not.
# - A head can favour any offset. Scores need not fall with distance.
# - The two layouts are the same rotation with the numbers in another order. If you do not convert from one to the
#   other, the errors are as large as the scores.
# - For a [longer context](../longer.md) one has to choose new frequencies, and each choice gives something up.
#
# Back to the [chapter](../rotary.md).

# %% [markdown] lang="zh"
# ## 小结 {#take-away}
#
# - 每一对数是一根箭头，位置让它转。分数看的是两根箭头相对转了多少。
# - 权重矩阵乘在旋转之前，不论是什么矩阵，分数都只取决于偏移；乘在旋转之后，几乎任何矩阵都会破坏这一点。
# - 一个头可以偏爱任何偏移，所以分数不一定随距离衰减。
# - 两种配对做的是同一种旋转，只是列的次序不同；不转换列序就混用，误差就和分数一样大。
# - 要[拉长上下文](../longer.md)，就得重新选频率，每一种选法都要舍掉些什么。
#
# 回到[正文](../rotary.md)。
