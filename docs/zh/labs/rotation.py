# ---
# title: 旋转查询和键
# description: 二十分钟的 RoPE 实验：转箭头，看分数只认偏移，造一个往回看的头，用错的配对弄坏一个模型，再把上下文拉长。
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
# # 旋转查询和键 {#rotation}
#
# [旋转位置编码](../rotary.md)一章给出了公式，这里让你亲手转上二十分钟。和别的实验一样：先**预测**，再运行代码，最后改点什么。
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

# %% [markdown]
# ## 边走边转的箭头 {#arrow}
#
# 宽度为 4 的一个向量，两根箭头，快的比慢的快一百倍。**预测**：走多少步，快箭头才回到原处？那时慢箭头在哪里？

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
# 图：位置 0 到 44 上两根箭头的去处，以及位置 7 上的箭头。
# 说明：两个方格。左边的点布满一圈，箭头指向一点半。右边的点连成一小段弧，从三点钟方向往上约 25 度；箭头几乎还没动身。
#
# 永远不会分毫不差地回来，因为 $2\pi$ 不是整数步。走 44 步，快箭头已经很接近了，因为 $44/7$ 差不多就是 $2\pi$。分得清 0 和 44 的，是慢箭头。
#
# **动手**：给 `apply_rotary` 加上参数 `base=100`。两根箭头里，哪一根变了？

# %% [markdown]
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

# %% [markdown]
# 图：查询在三个位置上，分数随偏移的变化。旋转：一条曲线。相加：三条。
# 说明：上下两幅。上面三条曲线完全重合，弯弯曲曲。下面三条各走各的，在偏移零附近都有一座峰，别处高低和形状都不同。
#
# 上面只有一条。下面是编码相加，词与位置相乘的那几项，取决于位置本身。
#
# **动手**：先旋转，再乘一个随机矩阵 `w`：`w @ q_t`，键也一样。上面那幅会变成什么样？

# %% [markdown]
# ## 左与右 {#sides}
#
# **预测**：$q = k$ 时，分数曲线关于偏移 0 对称吗？$q$ 和 $k$ 是两个不同的向量呢？

# %%
same = posenc.apply_rotary(q, offsets) @ q
other = posenc.apply_rotary(k, offsets) @ q
for name, scores in [("q = k", same), ("q ≠ k", other)]:
    print(f"{name}: symmetric {np.allclose(scores, scores[::-1])}")

# %% [markdown]
# 还没旋转，$q$ 和 $k$ 的每一对数之间就已经有一个夹角，它决定这一对的余弦在 0 的哪一侧出现峰值。$q = k$ 时，这些夹角都是 0。
#
# **动手**：令 `k = posenc.apply_rotary(q, [20])[0]`。曲线的峰在哪个偏移上？为什么在那一侧？

# %% [markdown]
# ## 往回看的头 {#look-back}
#
# `posenc.rotary.offset_query` 把键转一下，变成专找某个偏移的查询。**预测**：往回 3 位和往回 300 位，哪个更容易正中？头宽一些，会更好吗？

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
# 两个都正中，领先的幅度也一样：远的并不比近的难。头宽了也没有更好。宽 32 和 128 时，第二名就是邻居，领先多少，要看差一步会降多少分。对一步之差敏感的只有快的频率对；宽的头里，快的频率对多些，慢的也多些。宽 8 时，邻居不是对手，第二名在 63 位之外：在那里，最快的一对几乎正好转了十圈，第二对几乎正好一圈，都差不多回到了原处。
#
# **动手**：给两个函数都加上 `base=500000.0`，这是 Llama 3 的底数。领先的幅度变成多少？底数大了，代价由谁来付？

# %% [markdown]
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

# %% [markdown]
# 图：16 个查询与 16 个键的分数，以及配错对带来的误差。
# 说明：两张 16 乘 16 的彩色表。右边是误差，对角线上是白的，离对角线越远颜色越重，直到和左边一样花。
#
# 只有对角线是对的，那里 $t = u$，谁也没有相对谁转动。离它越远误差越大，很快就和分数一样大。
#
# **动手**：在 `right` 和 `wrong` 两行之间，用 `posenc.interleaved_to_half` 转换 `q` 和 `k`，看误差消失。然后只转换 `q` 试试。

# %% [markdown]
# ## 把上下文拉长 {#stretch}
#
# 一个头训练到 $L = 512$，现在要读 4096 个词元。下面的曲线是 $q = k$、箭头长度都为 1 时的分数 $\sum_i \cos \omega_i (u - t)$：一条用原来的频率，两条用拉长到 8 倍的两种办法。**预测**：哪一种不改变偏移 0 附近的曲线？

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
# 图：查询与键相同时，分数随偏移的变化：近处与远处，三组频率。灰线是训练长度。
# 说明：左图是偏移 0 到 15：原来的曲线和 YaRN 的靠在一起，很快下降；ω/8 的曲线贴着顶端，几乎是平的。右图到 4095：原来的曲线落得最低，另外两条高一些。
#
# 线性插值把相邻的位置弄模糊了：现在一步只当八分之一步用。YaRN 不动快的频率对，相邻位置靠它们分辨；只放慢那些会转到训练时没见过的角度的。
#
# **动手**：加上 `posenc.ntk_frequencies(d, factor)` 和 `posenc.llama3_frequencies(d, factor, original_length=length)`。左图里谁离原来的曲线最近？右图里呢？

# %% [markdown]
# ## 小结 {#take-away}
#
# - 每一对数是一根箭头，位置让它转。分数看的是两根箭头相对转了多少。
# - 旋转之前，什么权重都行；旋转之后，几乎什么权重都不行。
# - 一个头可以偏爱任何偏移。随距离衰减不是定律。
# - 两种配对，同一个旋转；不转换，误差就和分数一样大。
# - 要拉长上下文，就得重新选频率，每一种选法都要舍掉些什么。
#
# 回到[正文](../rotary.md)。
