# ---
# title-en: Waveforms and clock hands
# title-zh: 波形与指针
# description-en: A lab of twenty minutes. Predict, run and change the waves behind the sinusoidal encoding, then read a position off its clock hands, also through noise.
# description-zh: 二十分钟的实验：先预测，再运行，再改一改正弦位置编码背后的波；然后像看钟一样从指针读出位置，有噪声也照读。
# needs: [sinusoidal]
# ---

# %% [markdown] lang="en"
# # Waveforms and clock hands {#waveforms}
#
# The chapter on the [sinusoidal encoding](../sinusoidal.md) gives the formula. Here you play with it for about
# twenty minutes. Each section has the same rhythm: **predict** first, on paper, then run the cell, then change
# something. A wrong prediction is the useful kind: it shows where your picture of the encoding differs from the
# encoding.
#
# Symbols: $t$ is a position, $d$ the width of the encoding, $b$ its base, and pair $i$ holds
# $\sin \omega_i t$ and $\cos \omega_i t$ with $\omega_i = b^{-2i/d}$. Pairs count from $0$ to $d/2 - 1$.

# %% [markdown] lang="zh"
# # 波形与指针 {#waveforms}
#
# [正弦位置编码](../sinusoidal.md)一章给出了公式，这里让你亲手玩上二十分钟。每一节都是同样的三步：先在纸上**预测**，再运行代码，然后改点什么。猜错了才有收获：错在哪里，你心里的图像就和真正的编码差在哪里。
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
# The last column counts the turns. Each pair is slower than the one before by the same factor, so the fast ones
# whirl while the slow ones have hardly left. Now the same as a picture.

# %% [markdown] lang="zh"
# 最后一列就是圈数。每一对都比前一对慢同样的倍数：快的转个不停，慢的几乎还没出发。再看看图。

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
# Look at the dots of pair 0. There are only about six to a turn, so neighbouring positions lie far apart: this pair
# tells neighbours from each other, and forgets which turn it is in. Pair 6 does the opposite.
#
# **Try it.** Set `n = 1000` and run both cells again. Which pair is the slowest one that completes a turn now? Check
# the answer against the column $\lambda$ before you look at the picture.

# %% [markdown] lang="zh"
# 图：八个频率对中的四个，从快到慢，共 100 个位置。模型看到的只有那些点。
# 说明：四幅小图，分别是 i = 0、2、4、6。第 0 对的正弦和余弦转了将近十六圈；第 2 对转了一圈多，不到两圈；第 4 对才走到第一圈的六分之一；第 6 对近乎水平，正弦贴着 0，余弦贴着 1。
# <!-- holds: len(peaks(p1.dashed)) == 15; rises(p3.solid); top(p4.solid) < 0.1; low(p4.dashed) > 0.99 -->
#
# 看第 0 对的点：一圈只有六个左右，相邻的位置隔得很开。它分得清左邻右舍，却记不住自己转到了第几圈。第 6 对正好相反。
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
# Straight lines: each rung is the one below it times a constant, $b^{2/d}$. Once an encoding is wide, a still
# wider one does not reach much further, it has more rungs on the same ladder. The top stays below $2\pi b$ because
# the last exponent is $(d-2)/d$, not $1$.
#
# **Try it.** Find the smallest even $d$ whose longest wavelength exceeds 50,000. Guess from the table first, then
# let a loop answer.

# %% [markdown] lang="zh"
# 图：对数纵轴上的波长：几条直线，都从 2π 出发，没有一条到达 2πb。
# 说明：三条上升的直线，由点连成，分别是 d = 8、16、64，左端都在 6.3 左右。d = 8 的最陡，终点也最低。一条灰线标出 2πb，约 62832，比三条直线都高。
# <!-- holds: rises(circles); rises(squares); rises(dots); low(circles) == 6.3; low(squares) == 6.3; low(dots) == 6.3; top(circles) < top(squares) < top(dots) < 62832 -->
#
# 直线意味着每一档都是下面那一档乘上同一个常数 $b^{2/d}$。编码够宽以后再加宽，最长的波长长不了多少，只是同一架梯子上的横档更密了。最上面一档总在 $2\pi b$ 之下，因为最后一个指数是 $(d-2)/d$，不是 $1$。
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
# The first row is the same in all three maps: $\omega_0 = 1$ whatever the base. All the others slow down. A large base
# tells apart positions that are very far from each other, and pays with pairs that say the same everywhere in a
# short text.
#
# **Try it.** At $d = 64$, how large must $b$ be for the longest wavelength to exceed 131,072 positions? Solve
# $2\pi b^{(d-2)/d} = 131072$ for $b$, then check with `posenc.sinusoidal_wavelengths`.

# %% [markdown] lang="zh"
# 图：三种底数下全部 32 个频率对的正弦：底数越大，256 个位置之内还在动的频率对越少。
# 说明：三幅热图，向右是位置 t，向下是频率对 i。每幅图上方的条纹很窄，越往下越宽。b = 100 时条纹布满全图；b = 10000 时下面三分之一没有条纹；b = 1000000 时下面一半没有条纹。
#
# 三幅图的第一行完全一样：无论底数多大，$\omega_0 = 1$。其余各行都变慢了。底数大，相隔极远的位置也能分开；代价是，文本一短，许多频率对在各个位置上几乎是同一个数。
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
# A single clock hand comes back to where it was; many hands with different speeds hardly ever do so together, and
# their ripples cancel. Far offsets are told apart less and less: the curve flattens, because only the slow hands
# still have something new to say.
#
# **Try it.** Add `d = 2` to the list. What does a code with a single hand look like, and at which offsets does it
# mistake one position for another?

# %% [markdown] lang="zh"
# 图：两个编码的距离随偏移的变化，以编码自身的模长为单位。
# 说明：d = 4 的曲线在缓缓抬高的底线上来回摆动约三十次；d = 16 的曲线先升得很快，然后在 0.6 和 1.4 之间摆动；d = 128 的曲线先快后慢，波纹很小。
# <!-- holds: len(peaks(solid)) == 32; low(solid, 175) == 1.1; low(dashed, 10) == 0.6; top(dashed, 10) == 1.4; low(dashdot, 25) == 0.9; top(dashdot) == 1.2 -->
#
# 一根指针总会回到原处；许多根快慢不同的指针却几乎不会同时回来，它们的波纹彼此抵消。偏移越大，越难再拉开距离：曲线变平，因为还能拉开距离的只剩慢的指针。
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
# 把每个频率对画成一根指针：$\sin \omega_i t$ 向右，$\cos \omega_i t$ 向上。所有指针从十二点出发，顺时针转。$d = 8$ 时有四只钟，每一只都比前一只慢十倍。
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
# A person would begin with the slowest hand: it has gone through a small part of its single turn, so it gives a
# rough position without any doubt about the number of turns. The next hand is finer, but has gone round an unknown
# number of times; the rough position says how many. And so on, hand by hand. Below, each hand is read to two decimals
# only, like a person reading a dial. The search starts in the middle of the slowest turn.

# %% [markdown] lang="zh"
# 图：宽度为 8 的编码的四根指针，左边最快，右边最慢。
# 说明：四个圆，十二点处有刻度，各有一根指针。i = 0 的指针在六点半，i = 1 的在十一点和十二点之间，i = 2 的在八点和九点之间，i = 3 的从十二点走到了将近一点。
#
# 人会从最慢的指针读起：它只有一圈，而且只走了一小段，所以给出的位置虽然粗略，却没有“第几圈”的疑问。下一根更精细，只是不知道转过几圈；粗略的位置正好告诉我们圈数。就这样一根一根读下去。下面的代码每根指针只读两位小数，像人看表盘那样；最慢的一圈从正中间找起。

# %%
frequencies = posenc.sinusoidal_frequencies(8)
estimate = np.pi / frequencies[-1]
for omega, (x, y) in zip(frequencies[::-1], hands.round(2)[::-1]):
    angle = np.arctan2(x, y)
    turns = round((estimate * omega - angle) / (2 * np.pi))
    estimate = (angle + 2 * np.pi * turns) / omega
    print(f"{omega:5.3f} t = {turns:2d}·2π + {angle:6.3f}   t ≈ {estimate:6.1f}")

# %% [markdown] lang="en"
# Four readings with two decimals each are enough. This is how decimal digits work, too: the slow hand is the
# leading digit, the fast hand the last one. The difference: digits jump, hands move evenly, and so nearby
# positions keep similar codes.
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
# Width buys robustness: every pair is one more witness to the same position. Now that you know the ladder, you can
# also explain the size of the errors: a small error means that the fast hands were drowned, a large one that a slow
# hand was misread.
#
# **Try it.** Keep $d = 32$ and pass `base=100` to both functions, `sinusoidal_encoding` and `decode_position`.
# Do errors become rarer or more frequent for $n = 1000$? On which wavelengths does the new ladder spend its rungs?
# Then compare the sizes of the errors at $\sigma = 1$.

# %% [markdown] lang="zh"
# 图：读错的位置所占的比例，随噪声强度的变化。
# 说明：三条上升的曲线。d = 8 的最先离开 0，到横轴中间已接近 1；d = 32 的升得晚一些，也缓一些；d = 128 的在 0 停留得最久，始终最低。
# <!-- holds: rises(circles); rises(squares); rises(triangles); at(circles, 0.5) == 0.89; above(circles, 0) < above(squares, 0) < above(triangles, 0); top(triangles) == 0.34; low(triangles) == 0 -->
#
# 编码越宽越稳健：每个频率对都是一名证人，证明的是同一个位置。明白了波长的梯子，也就能解释错误为什么有大有小：差得少，是快的指针被淹没了；差得多，是慢的指针读错了。
#
# **动手**：保持 $d = 32$，给 `sinusoidal_encoding` 和 `decode_position` 都加上 `base=100`。$n = 1000$ 时读错的变少了还是变多了？新的梯子把横档都用在了哪些波长上？再比一比 $\sigma = 1$ 时错误的大小。

# %% [markdown] lang="en"
# ## What to take away {#take-away}
#
# - A code is a row of clock hands, from one that tells neighbours apart to one that hardly moves.
# - `dim` sets how many hands there are, `base` the limit that the slowest approaches. The fastest never changes.
# - The distance between codes depends on the offset alone; wide codes make it smooth.
# - Slow hands give the rough position, fast hands the fine one; more hands withstand more noise.
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
