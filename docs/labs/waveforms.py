# ---
# title-en: Waveforms and clock hands
# title-zh: 波形与指针
# description-en: A lab of twenty minutes. Predict, run and change the waves behind the sinusoidal encoding, then read a position off its clock hands, also through noise.
# description-zh: 二十分钟的实验：先预测，再运行，再改一改正弦位置编码背后的波；然后像看钟一样从指针读出位置，有噪声也照读。
# minutes: 20
# needs: [sinusoidal]
# ---

# %% [markdown] lang="en"
# # Waveforms and clock hands {#waveforms}
#
# The chapter on the [sinusoidal encoding](../sinusoidal.md) gives the formula. Here you play with it for about twenty
# minutes. Each section has the same rhythm: **predict** first, on paper, then run the cell, then change something. A
# wrong prediction is useful, because it shows where your picture of the encoding differs from the encoding itself.
#
# Symbols: $t$ is a position, $d$ the width of the encoding, $b$ its base, and pair $i$ holds $\sin \omega_i t$ and
# $\cos \omega_i t$ with $\omega_i = b^{-2i/d}$. Pairs are counted from $0$ to $d/2 - 1$.

# %% [markdown] lang="zh"
# # 波形与指针 {#waveforms}
#
# [正弦位置编码](../sinusoidal.md)一章给出了公式，这里让你亲手玩上二十分钟。每一节都是同样的三步：先在纸上**预测**，再运行代码，然后改点什么。猜错了才有收获：错的地方，就是你的设想和真正的编码不一样的地方。
#
# 记号：$t$ 是位置，$d$ 是编码的宽度，$b$ 是底数；第 $i$ 个频率对存放 $\sin \omega_i t$ 和 $\cos \omega_i t$，其中 $\omega_i = b^{-2i/d}$。频率对从 $0$ 数到 $d/2 - 1$。

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
# ## Fast waves, slow waves {#fast-and-slow}
#
# With $d = 16$ there are eight pairs. **Predict:** within the first 100 positions, how often does pair 0 go round?
# And pair 4? Is there a pair that does not even finish a quarter of its first turn?

# %% [markdown] lang="zh"
# ## 快的波，慢的波 {#fast-and-slow}
#
# $d = 16$ 时有八个频率对。**预测**：在前 100 个位置里，第 0 对转几圈？第 4 对呢？有没有哪一对连第一圈的四分之一都转不完？

# %%
dim, n = 16, 100

print(" i        ω          λ    n/λ")
clocks = zip(posenc.sinusoidal_frequencies(dim), posenc.sinusoidal_wavelengths(dim))
for i, (omega, wavelength) in enumerate(clocks):
    print(f"{i:2d}  {omega:.5f}  {wavelength:9.1f}  {n / wavelength:5.2f}")

# %% [markdown] lang="en"
# The last column counts the turns. Each pair is slower than the one before by the same factor. So the fast pairs go
# round many times, while the slow ones have hardly started their first turn. Pair 4 has not finished a quarter of a
# turn, and neither have the pairs after it. Now the same as a picture.

# %% [markdown] lang="zh"
# 最后一列就是圈数。相邻两对的速度之比都一样：最快的一对转了将近十六圈，最慢的几对几乎没动，连第一圈的四分之一都没转完。再看看图。

# %%
pairs = [0, 2, 4, 6]
codes = posenc.sinusoidal_encoding(n, dim)
time = np.linspace(0, n - 1, 500)
waves = posenc.sinusoidal_encoding(time, dim)

fig, axes = plt.subplots(4, 1, figsize=(4.8, 5.2), sharex=True)
for ax, i in zip(axes, pairs):
    ax.plot(time, waves[:, 2 * i], label="sin")
    ax.plot(time, waves[:, 2 * i + 1], label="cos")
    ax.plot(np.arange(n), codes[:, 2 * i], ".", markersize=2.5, color="#0072b2")
    ax.set_ylabel(f"i = {i}", rotation=0, ha="right", va="center")
    ax.set_ylim(-1.15, 1.15)
axes[0].legend(ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
axes[-1].set_xlabel("t");

# %% [markdown] lang="en"
# Figure: Four of the eight pairs over 100 positions, from fast to slow. The model sees the dots only.
# Description: Four panels for i = 0, 2, 4 and 6. The sine and cosine of pair 0 go round nearly sixteen times. Pair 2 goes round between one and two times. Pair 4 rises through the first sixth of its turn. Pair 6 is almost flat: its sine stays near 0, its cosine near 1.
# <!-- holds: len(peaks(p1.dashed)) == 15; rises(p3.solid); top(p4.solid) < 0.1; low(p4.dashed) > 0.99 -->
#
# Look at the dots of pair 0. There are only about six of them in each turn, so neighbouring positions lie far apart.
# This pair tells neighbours from each other, but it does not show how many turns it has made. Pair 6 does the
# opposite: it hardly tells neighbours apart, but it is still in its first turn.
#
# **Try it.** Set `n = 1000` and run both cells again. Which pair is the slowest one that completes a turn now? Check
# the answer against the column $\lambda$ before you look at the picture.

# %% [markdown] lang="zh"
# 图：八个频率对中的四个，从快到慢，共 100 个位置。模型看到的只有那些点。
# 说明：四幅小图，分别是 i = 0、2、4、6。第 0 对的正弦和余弦转了将近十六圈；第 2 对转了一圈多，不到两圈；第 4 对才走到第一圈的六分之一；第 6 对近乎水平，正弦贴着 0，余弦贴着 1。
# <!-- holds: len(peaks(p1.dashed)) == 15; rises(p3.solid); top(p4.solid) < 0.1; low(p4.dashed) > 0.99 -->
#
# 看第 0 对的点：一圈只有六个左右，相邻的位置隔得很开。这一对分得清相邻的位置，却说不出这是第几圈。第 6 对正好相反：第一圈都没转完，所以不会弄混圈数，可是相邻的位置几乎一样。
#
# **动手**：改成 `n = 1000`，重新运行上面两段代码。现在能转完一圈的频率对里，最慢的是哪一个？先对照 $\lambda$ 那一列给出答案，再看图。

# %% [markdown] lang="en"
# ## A ladder of wavelengths {#ladder}
#
# The wavelengths are $\lambda_i = 2\pi b^{2i/d}$. **Predict:** draw $\lambda_i$ against $i$ with a logarithmic
# vertical axis. What shape do you get? And does the longest wavelength ever reach $2\pi b$?

# %% [markdown] lang="zh"
# ## 波长的梯子 {#ladder}
#
# 波长是 $\lambda_i = 2\pi b^{2i/d}$。**预测**：以 $i$ 为横轴画 $\lambda_i$，纵轴取对数，会是什么形状？最长的波长会不会到达 $2\pi b$？

# %%
top = 2 * np.pi * 10000
print("   d  λ[1]/λ[0]     λ[-1]  λ[-1]/2πb")
for d in [4, 16, 64, 512, 4096]:
    ladder = posenc.sinusoidal_wavelengths(d)
    ratio, last = ladder[1] / ladder[0], ladder[-1]
    print(f"{d:4d}  {ratio:9.4f}  {last:8.1f}  {last / top:9.4f}")

fig, ax = plt.subplots(figsize=(4.8, 2.8))
for d, marker in [(8, "o"), (16, "s"), (64, ".")]:
    ax.semilogy(
        posenc.sinusoidal_wavelengths(d), marker=marker, ms=4, label=f"d = {d}"
    )
ax.axhline(top, color="#767676", linewidth=1, linestyle="-")
ax.text(31, 1.2 * top, "2πb", ha="right")
ax.set(xlabel="i", ylabel="λ", ylim=(3, 3e5))
ax.legend(loc="lower right");

# %% [markdown] lang="en"
# Figure: Wavelengths on a logarithmic axis: straight lines, all from 2π, none of which reaches 2πb.
# Description: Three rising straight lines of dots for d = 8, 16 and 64, all starting at about 6.3 on the left. The line for d = 8 is the steepest and ends lowest. A grey line at 2πb, about 62 832, lies above all of them.
# <!-- holds: rises(circles); rises(squares); rises(dots); low(circles) == 6.3; low(squares) == 6.3; low(dots) == 6.3; top(circles) < top(squares) < top(dots) < 62832 -->
#
# The dots lie on straight lines, because each rung of the ladder is the one below it times a constant, $b^{2/d}$. If
# an encoding is already wide, a wider one does not reach much further. It only has more rungs on the same ladder. The
# longest wavelength stays below $2\pi b$, because the last exponent is $(d-2)/d$ and not $1$.
#
# **Try it.** Find the smallest even $d$ whose longest wavelength exceeds 50,000. Guess from the table first, then
# let a loop answer.

# %% [markdown] lang="zh"
# 图：对数纵轴上的波长：几条直线，都从 2π 出发，没有一条到达 2πb。
# 说明：三条上升的直线，由点连成，分别是 d = 8、16、64，左端都在 6.3 左右。d = 8 的最陡，终点也最低。一条灰线标出 2πb，约 62832，比三条直线都高。
# <!-- holds: rises(circles); rises(squares); rises(dots); low(circles) == 6.3; low(squares) == 6.3; low(dots) == 6.3; top(circles) < top(squares) < top(dots) < 62832 -->
#
# 把波长看成一架梯子，每个频率对是一根横档。直线意味着每一档的波长都是下面那一档乘上同一个常数 $b^{2/d}$。编码够宽以后再加宽，最长的波长长不了多少，只是横档更密了。最上面一档总在 $2\pi b$ 之下，因为最后一个指数是 $(d-2)/d$，不是 $1$。
#
# **动手**：要让最长的波长超过 50000，偶数 $d$ 最小是多少？先看着表猜，再写个循环来回答。

# %% [markdown] lang="en"
# ## Turning the base {#base}
#
# Long-context models raise the base. **Predict:** go from $b = 10^4$ to $b = 10^6$ at $d = 64$. What happens to the
# fastest pair? By what factor does the slowest one grow: $100$, more, or less?

# %% [markdown] lang="zh"
# ## 调一调底数 {#base}
#
# 长上下文的模型会把底数调大。**预测**：从 $b = 10^4$ 调到 $b = 10^6$，$d = 64$ 不变，最快的一对会怎样？最慢的一对波长变成原来的几倍：正好 $100$ 倍，还是更多，还是更少？

# %%
dim = 64
print("      b  λ[0]  λ[16]       λ[-1]")
for base in [100, 10_000, 1_000_000]:
    ladder = posenc.sinusoidal_wavelengths(dim, base)
    first, middle, last = ladder[[0, 16, -1]]
    print(f"{base:7d}  {first:.2f}  {middle:5.0f}  {last:10.0f}")

fig, axes = plt.subplots(3, 1, figsize=(4.8, 4.6), sharex=True)
for ax, base in zip(axes, [100, 10_000, 1_000_000]):
    codes = posenc.sinusoidal_encoding(256, dim, base=base)
    sines = codes[:, 0::2].T
    image = ax.imshow(sines, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    ax.set_ylabel("i", rotation=0)
    ax.set_title(f"b = {base}")
axes[-1].set_xlabel("t")
fig.colorbar(image, ax=axes, label="sin ωt", ticks=[-1, 0, 1], shrink=0.6);

# %% [markdown] lang="en"
# Figure: The sines of all 32 pairs for three bases: the larger the base, the fewer of them move within 256 positions.
# Description: Three heat maps, position t to the right, pair i downwards. In each, narrow stripes at the top become wider downwards. For b = 100 stripes cross the whole map. For b = 10000 the lower third is plain, for b = 1000000 the lower half.
#
# The first row is the same in all three maps, because $\omega_0 = 1$ for every base. All other pairs become slower.
# The wavelength of the slowest one grows by less than the factor 100, from 47,117 to 4,080,185, because its exponent
# $(d-2)/d$ is less than 1. With a large base the code can tell apart positions that are very far from each other. The
# price is that in a short text many pairs have nearly the same numbers at all positions.
#
# **Try it.** At $d = 64$, how large must $b$ be for the longest wavelength to exceed 131,072 positions? Solve
# $2\pi b^{(d-2)/d} = 131072$ for $b$, then check with `posenc.sinusoidal_wavelengths`.

# %% [markdown] lang="zh"
# 图：三种底数下全部 32 个频率对的正弦：底数越大，256 个位置之内还在动的频率对越少。
# 说明：三幅热图，向右是位置 t，向下是频率对 i。每幅图上方的条纹很窄，越往下越宽。b = 100 时条纹布满全图；b = 10000 时下面三分之一没有条纹；b = 1000000 时下面一半没有条纹。
#
# 三幅图的第一行完全一样：无论底数多大，$\omega_0 = 1$。底数越大，其余各行越慢。最慢的一对，波长是 $2\pi b^{62/64}$，所以 $b$ 变成 100 倍时，它只变成 $100^{62/64} \approx 87$ 倍，不到 100 倍。底数大，相隔极远的位置也能分开；代价是，文本一短，许多频率对在各个位置上几乎是同一个数。
#
# **动手**：$d = 64$ 时，要让最长的波长超过 131072 个位置，$b$ 至少多大？从 $2\pi b^{(d-2)/d} = 131072$ 解出 $b$，再用 `posenc.sinusoidal_wavelengths` 验算。

# %% [markdown] lang="en"
# ## How far apart are two codes? {#distance}
#
# The distance between the codes of $t$ and $t + k$ depends on the offset $k$ alone. **Predict:** sketch it for
# $k = 0 \dots 200$. Does it rise all the way? Is it smoother for a narrow or for a wide encoding?

# %% [markdown] lang="zh"
# ## 两个编码相距多远 {#distance}
#
# $t$ 和 $t + k$ 的编码之间的距离只取决于偏移 $k$。**预测**：画出 $k = 0 \dots 200$ 的草图。它会一路上升吗？编码窄的时候更平滑，还是宽的时候更平滑？

# %%
offsets = np.linspace(0, 200, 501)

fig, ax = plt.subplots(figsize=(4.8, 2.8))
for d in [4, 16, 128]:
    distance = posenc.sinusoidal.code_distance(offsets, d) / np.sqrt(d / 2)
    ax.plot(offsets, distance, linewidth=1.2, label=f"d = {d}")
ax.set(xlabel="k", ylabel="‖PE(t+k) − PE(t)‖ / √(d/2)", ylim=(0, 2))
ax.legend(ncols=3, loc="lower right", bbox_to_anchor=(1, 1));

# %% [markdown] lang="en"
# Figure: Distance between codes against the offset, in units of the length of a code.
# Description: The curve for d = 4 swings up and down about thirty times on a slowly rising ground. The one for d = 16 rises fast and then swings between 0.6 and 1.4. The one for d = 128 rises fast at first, then slowly, with small ripples.
# <!-- holds: len(peaks(solid)) == 32; low(solid, 175) == 1.1; low(dashed, 10) == 0.6; top(dashed, 10) == 1.4; low(dashdot, 25) == 0.9; top(dashdot) == 1.2 -->
#
# The distance does not rise all the way, and the wide encoding has the smoothest curve. A single clock hand comes
# back to where it was. Many hands with different speeds hardly ever come back at the same time, so their ripples
# cancel. At large offsets the curve flattens, because there only the slow hands still add to the distance. So far
# offsets are harder to tell from each other than near ones.
#
# **Try it.** Add `d = 2` to the list. What does a code with a single hand look like, and at which offsets does it
# mistake one position for another?

# %% [markdown] lang="zh"
# 图：两个编码的距离随偏移的变化，以编码自身的模长为单位。
# 说明：d = 4 的曲线在缓缓抬高的底线上来回摆动约三十次；d = 16 的曲线先升得很快，然后在 0.6 和 1.4 之间摆动；d = 128 的曲线先快后慢，波纹很小。
# <!-- holds: len(peaks(solid)) == 32; low(solid, 175) == 1.1; low(dashed, 10) == 0.6; top(dashed, 10) == 1.4; low(dashdot, 25) == 0.9; top(dashdot) == 1.2 -->
#
# 所以距离不会一路上升，而编码越宽，曲线越平滑。一根指针总会回到原处；许多根快慢不同的指针却几乎不会同时回来，它们的波纹彼此抵消。偏移大了以后，曲线变平，因为快的指针早已转过许多圈，只有慢的指针还能让距离继续变大。
#
# **动手**：在列表里加上 `d = 2`。只有一根指针的编码是什么样子？它会在哪些偏移上把一个位置认成另一个？

# %% [markdown] lang="en"
# ## Reading a clock with many hands {#hands}
#
# Draw each pair as a clock hand: $\sin \omega_i t$ to the right, $\cos \omega_i t$ upwards. All hands start at
# twelve and turn clockwise. With $d = 8$ there are four clocks, each ten times slower than the one before.
#
# **Predict:** the cell below draws the hands at one position. Cover its first line, look at the picture only: from the
# slowest hand, how closely can you tell the position?

# %% [markdown] lang="zh"
# ## 读一只多指针的钟 {#hands}
#
# 把每个频率对画成一根指针：$\sin \omega_i t$ 向右，$\cos \omega_i t$ 向上。所有指针从十二点出发，顺时针转。$d = 8$ 时有四只钟，每一只的速度都是前一只的十分之一。
#
# **预测**：下面的代码画出某个位置上的指针。遮住它的第一行，只看图：凭最慢的那根指针，你能把位置说准到什么程度？

# %%
position = 437
hands = posenc.sinusoidal_encoding(np.array([position]), 8)[0].reshape(4, 2)

fig, axes = plt.subplots(1, 4, figsize=(4.8, 1.6))
turn = np.linspace(0, 2 * np.pi, 100)
for i, (ax, (x, y)) in enumerate(zip(axes, hands)):
    ax.plot(np.sin(turn), np.cos(turn), color="#767676", ls="-", lw=1)
    ax.plot([0, x], [0, y], color="#d55e00", ls="-", lw=2.5)
    ax.plot(0, 1, "k|", markersize=6)
    ax.set(aspect="equal", title=f"i = {i}")
    ax.axis("off")

# %% [markdown] lang="en"
# Figure: The four hands of a code of width 8, from the fastest on the left to the slowest on the right.
# Description: Four circles with a tick at twelve and one hand each. The hand of i = 0 stands at half past six, that of i = 1 between eleven and twelve, that of i = 2 between eight and nine. The hand of i = 3 has moved from twelve to nearly one.
#
# A person would begin with the slowest hand. It has gone through a small part of its first turn, so it gives a rough
# position without any doubt about the number of turns. The next hand is finer, but it has gone round an unknown
# number of times. The rough position says how many. And so on, hand by hand.
#
# The cell below does the same. The sine and the cosine of each hand are rounded to two decimals, because a person
# cannot read a dial more closely. For each hand the cell takes the number of turns that brings the position nearest
# to the estimate so far. The slowest hand is the first, so for it there is no estimate yet. There the cell starts
# from the middle of the turn, and so finds a position within this one turn.

# %% [markdown] lang="zh"
# 图：宽度为 8 的编码的四根指针，左边最快，右边最慢。
# 说明：四个圆，十二点处有刻度，各有一根指针。i = 0 的指针在六点半，i = 1 的在十一点和十二点之间，i = 2 的在八点和九点之间，i = 3 的从十二点走到了将近一点。
#
# 人会从最慢的指针读起：它只有一圈，而且只走了一小段，所以给出的位置虽然粗略，却没有“第几圈”的疑问。下一根更精细，只是不知道转过几圈；用粗略的位置算出它大约转过几圈，取最接近的整数，就知道了圈数。就这样一根一根读下去。下面的代码像人看表盘那样，每根指针的两个数只取两位小数。读最慢的指针之前还没有粗略的位置，就先假定位置在它那一圈的正中间，即 $t = \pi / \omega_3$。

# %%
frequencies = posenc.sinusoidal_frequencies(8)
estimate = np.pi / frequencies[-1]
for omega, (x, y) in zip(frequencies[::-1], hands.round(2)[::-1]):
    angle = np.arctan2(x, y)
    turns = round((estimate * omega - angle) / (2 * np.pi))
    estimate = (angle + 2 * np.pi * turns) / omega
    print(f"{omega:5.3f} t = {turns:2d}·2π + {angle:6.3f}   t ≈ {estimate:6.1f}")

# %% [markdown] lang="en"
# The slowest hand alone gives about 432, five positions too few. All four readings together give 437, although
# each has only two decimals. Decimal digits work in the same way: the slow hand is like the leading digit, and the
# fast hand is like the last one. But digits jump, and hands move evenly, so nearby positions have similar codes.
#
# **Try it.** How coarse may the readings be? Round to one decimal with `hands.round(1)`, then to none. At which hand
# does the chain break? Then set `position = 7000`. Why is the answer no whole number, and what does it have to do
# with the wavelength of the slowest hand?

# %% [markdown] lang="zh"
# 四个读数，各两位小数，就够了。十进制数也是这个道理：慢的指针是高位，快的指针是个位。不同的是，数字会跳，指针却走得平稳，所以相邻的位置编码也相近。
#
# **动手**：读数可以粗到什么程度？用 `hands.round(1)` 保留一位小数，再试试一位也不留。读到哪一根指针就读不下去了？然后令 `position = 7000`：答案为什么不是整数？这和最慢那根指针的波长有什么关系？

# %% [markdown] lang="en"
# ## Reading through noise {#noise}
#
# In a model the code is added to a token embedding, so nobody reads it undisturbed. Add Gaussian noise of standard
# deviation $\sigma$ to every number of the code, and let `posenc.sinusoidal.decode_position` name the position whose
# code lies nearest.
#
# **Predict:** which survives more noise, a code of width 8 or one of width 128? And when the decoder errs, is it wrong
# by one or two positions, or by hundreds?

# %% [markdown] lang="zh"
# ## 隔着噪声读 {#noise}
#
# 模型把编码加到词嵌入上，所以读到的从来不是原样的编码。给编码的每个数加上标准差为 $\sigma$ 的高斯噪声，再让 `posenc.sinusoidal.decode_position` 说出哪个位置的编码离它最近。
#
# **预测**：宽度 8 和宽度 128，哪个更经得起噪声？读错的时候，是差一两个位置，还是差上几百个？

# %%
n = 1000
rng = np.random.default_rng(0)
sigmas = np.linspace(0, 1, 11)

fig, ax = plt.subplots(figsize=(4.8, 2.8))
print("  d    σ  P(t̂ ≠ t)  median |t̂ − t|")
for d, marker in [(8, "o"), (32, "s"), (128, "^")]:
    clean = posenc.sinusoidal_encoding(n, d)
    shares = []
    for sigma in sigmas:
        noise = sigma * rng.standard_normal(clean.shape)
        guess = posenc.sinusoidal.decode_position(clean + noise, n)
        error = np.abs(guess - np.arange(n))
        shares.append(np.mean(error > 0))
        if np.isclose(sigma, [0.1, 0.5, 1.0]).any():
            share, median = shares[-1], np.median(error)
            print(f"{d:3d}  {sigma:3.1f}  {share:8.3f}  {median:14.0f}")
    ax.plot(sigmas, shares, marker=marker, ms=4, label=f"d = {d}")
ax.set(xlabel="σ", ylabel="P(t̂ ≠ t)", ylim=(-0.03, 1.03))
ax.legend();

# %% [markdown] lang="en"
# Figure: Share of positions that are read wrongly, against the strength of the noise.
# Description: Three rising curves. The one for d = 8 leaves 0 first and comes close to 1 in the middle of the axis. The one for d = 32 climbs later and more slowly. The one for d = 128 stays at 0 longest and is the lowest throughout.
# <!-- holds: rises(circles); rises(squares); rises(triangles); at(circles, 0.5) == 0.89; above(circles, 0) < above(squares, 0) < above(triangles, 0); top(triangles) == 0.34; low(triangles) == 0 -->
#
# The wide code survives more noise, because every pair is one more witness to the same position. Errors can be small
# or large. At $\sigma = 1$ the median error is 3 positions for $d = 32$ and 125 positions for $d = 8$. The ladder of
# wavelengths explains both sizes. An error is small if the noise hid what the fast hands say. It is large if a slow
# hand was misread.
#
# **Try it.** Keep $d = 32$ and pass `base=100` to both functions, `sinusoidal_encoding` and `decode_position`. Do
# errors become rarer or more frequent for $n = 1000$? At which wavelengths does the new ladder have its rungs? Then
# compare the sizes of the errors at $\sigma = 1$.

# %% [markdown] lang="zh"
# 图：读错的位置所占的比例，随噪声强度的变化。
# 说明：三条上升的曲线。d = 8 的最先离开 0，到横轴中间已接近 1；d = 32 的升得晚一些，也缓一些；d = 128 的在 0 停留得最久，始终最低。
# <!-- holds: rises(circles); rises(squares); rises(triangles); at(circles, 0.5) == 0.89; above(circles, 0) < above(squares, 0) < above(triangles, 0); top(triangles) == 0.34; low(triangles) == 0 -->
#
# 编码越宽，越经得起噪声，因为频率对多了，每一对都为同一个位置提供证据。错误为什么有大有小，看波长就明白：如果快的指针被噪声淹没，读出的位置只差一点；如果慢的指针读错，读出的位置就差得很远。
#
# **动手**：保持 $d = 32$，给 `sinusoidal_encoding` 和 `decode_position` 都加上 `base=100`。$n = 1000$ 时读错的变少了还是变多了？新的梯子把横档都用在了哪些波长上？再比一比 $\sigma = 1$ 时错误的大小。

# %% [markdown] lang="en"
# ## What to take away {#take-away}
#
# - A code is a row of clock hands. The fastest tells neighbours apart, and the slowest hardly moves.
# - `dim` sets how many hands there are. `base` sets how slow the slowest can be: its wavelength stays below $2\pi b$.
#   The fastest hand is the same for every `base`.
# - The distance between codes depends on the offset alone. The wider the code, the smoother the distance changes.
# - Slow hands give the rough position, and fast hands the exact one. A code with more hands withstands more noise.
#
# Back to the [chapter](../sinusoidal.md), where the same pictures come with their proofs.

# %% [markdown] lang="zh"
# ## 小结 {#take-away}
#
# - 编码是一排指针：最快的分得清左邻右舍，最慢的几乎不动。
# - `dim` 决定有多少根指针，`base` 决定最慢的至多有多慢；最快的永远不变。
# - 两个编码的距离只取决于偏移，编码越宽，这个距离变化得越平滑。
# - 慢的指针给出大概的位置，快的指针给出精确的位置；指针越多，越经得起噪声。
#
# 回到[正文](../sinusoidal.md)，同样的图像在那里有证明。
