# ---
# title: Waveforms and clock hands
# description: A lab of twenty minutes. Predict, run and change the waves behind the sinusoidal encoding, then read a position off its clock hands, also through noise.
# needs: [sinusoidal]
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
# # Waveforms and clock hands {#waveforms}
#
# The chapter on the [sinusoidal encoding](../sinusoidal.md) gives the formula. Here you play with it for about
# twenty minutes. Each section has the same rhythm: **predict** first, on paper, then run the cell, then change
# something. A wrong prediction is the useful kind: it shows where your picture of the encoding differs from the
# encoding.
#
# Symbols: $t$ is a position, $d$ the width of the encoding, $b$ its base, and pair $i$ holds
# $\sin \omega_i t$ and $\cos \omega_i t$ with $\omega_i = b^{-2i/d}$. Pairs count from $0$ to $d/2 - 1$.

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
# ## Fast waves, slow waves {#fast-and-slow}
#
# With $d = 16$ there are eight pairs. **Predict:** within the first 100 positions, how often does pair 0 go round?
# And pair 4? Is there a pair that does not even finish a quarter of its first turn?

# %%
dim, n = 16, 100

print(" i        ω          λ    n/λ")
clocks = zip(posenc.sinusoidal_frequencies(dim), posenc.sinusoidal_wavelengths(dim))
for i, (omega, wavelength) in enumerate(clocks):
    print(f"{i:2d}  {omega:.5f}  {wavelength:9.1f}  {n / wavelength:5.2f}")

# %% [markdown]
# The last column counts the turns. Each pair is slower than the one before by the same factor, so the fast ones
# whirl while the slow ones have hardly left. Now the same as a picture.

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

# %% [markdown]
# Figure: Four of the eight pairs over 100 positions, from fast to slow. The model sees the dots only.
# Description: Four panels for i = 0, 2, 4 and 6. The sine and cosine of pair 0 go round nearly sixteen times. Pair 2 goes round between one and two times. Pair 4 rises through the first sixth of its turn. Pair 6 is almost flat: its sine stays near 0, its cosine near 1.
#
# Look at the dots of pair 0. There are only about six to a turn, so neighbouring positions lie far apart: this pair
# tells neighbours from each other, and forgets which turn it is in. Pair 6 does the opposite.
#
# **Try it.** Set `n = 1000` and run both cells again. Which pair is the slowest one that completes a turn now? Check
# the answer against the column $\lambda$ before you look at the picture.

# %% [markdown]
# ## A ladder of wavelengths {#ladder}
#
# The wavelengths are $\lambda_i = 2\pi b^{2i/d}$. **Predict:** draw $\lambda_i$ against $i$ with a logarithmic
# vertical axis. What shape do you get? And does the longest wavelength ever reach $2\pi b$?

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

# %% [markdown]
# Figure: Wavelengths on a logarithmic axis: straight lines, all from 2π, none of which reaches 2πb.
# Description: Three rising straight lines of dots for d = 8, 16 and 64, all starting at about 6.3 on the left. The line for d = 8 is the steepest and ends lowest. A grey line at 2πb, about 62 832, lies above all of them.
#
# Straight lines: each rung is the one below it times a constant, $b^{2/d}$. Once an encoding is wide, a still
# wider one does not reach much further, it has more rungs on the same ladder. The top stays below $2\pi b$ because
# the last exponent is $(d-2)/d$, not $1$.
#
# **Try it.** Find the smallest even $d$ whose longest wavelength exceeds 50,000. Guess from the table first, then
# let a loop answer.

# %% [markdown]
# ## Turning the base {#base}
#
# Long-context models raise the base. **Predict:** go from $b = 10^4$ to $b = 10^6$ at $d = 64$. What happens to the
# fastest pair? By what factor does the slowest one grow: $100$, more, or less?

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

# %% [markdown]
# Figure: The sines of all 32 pairs for three bases: the larger the base, the fewer of them move within 256 positions.
# Description: Three heat maps, position t to the right, pair i downwards. In each, narrow stripes at the top become wider downwards. For b = 100 stripes cross the whole map. For b = 10000 the lower third is plain, for b = 1000000 the lower half.
#
# The first row is the same in all three maps: $\omega_0 = 1$ whatever the base. All the others slow down. A large base
# tells apart positions that are very far from each other, and pays with pairs that say the same everywhere in a
# short text.
#
# **Try it.** At $d = 64$, how large must $b$ be for the longest wavelength to exceed 131,072 positions? Solve
# $2\pi b^{(d-2)/d} = 131072$ for $b$, then check with `posenc.sinusoidal_wavelengths`.

# %% [markdown]
# ## How far apart are two codes? {#distance}
#
# The distance between the codes of $t$ and $t + k$ depends on the offset $k$ alone. **Predict:** sketch it for
# $k = 0 \dots 200$. Does it rise all the way? Is it smoother for a narrow or for a wide encoding?

# %%
offsets = np.linspace(0, 200, 501)

fig, ax = plt.subplots(figsize=(4.8, 2.8))
for d in [4, 16, 128]:
    distance = posenc.sinusoidal.code_distance(offsets, d) / np.sqrt(d / 2)
    ax.plot(offsets, distance, linewidth=1.2, label=f"d = {d}")
ax.set(xlabel="k", ylabel="‖PE(t+k) − PE(t)‖ / √(d/2)", ylim=(0, 2))
ax.legend(ncols=3, loc="lower right", bbox_to_anchor=(1, 1));

# %% [markdown]
# Figure: Distance between codes against the offset, in units of the length of a code.
# Description: The curve for d = 4 swings up and down about thirty times on a slowly rising ground. The one for d = 16 rises with large ripples. The one for d = 128 rises fast at first, then slowly, with small ripples.
#
# A single clock hand comes back to where it was; many hands with different speeds hardly ever do so together, and
# their ripples cancel. Far offsets are told apart less and less: the curve flattens, because only the slow hands
# still have something new to say.
#
# **Try it.** Add `d = 2` to the list. What does a code with a single hand look like, and at which offsets does it
# mistake one position for another?

# %% [markdown]
# ## Reading a clock with many hands {#hands}
#
# Draw each pair as a clock hand: $\sin \omega_i t$ to the right, $\cos \omega_i t$ upwards. All hands start at
# twelve and turn clockwise. With $d = 8$ there are four clocks, each ten times slower than the one before.
#
# **Predict:** the cell below draws the hands at one position. Cover its first line, look at the picture only: from the
# slowest hand, how closely can you tell the position?

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

# %% [markdown]
# Figure: The four hands of a code of width 8, from the fastest on the left to the slowest on the right.
# Description: Four circles with a tick at twelve and one hand each. The hand of i = 0 stands at half past six, that of i = 1 between eleven and twelve, that of i = 2 between eight and nine. The hand of i = 3 has moved from twelve to nearly one.
#
# A person would begin with the slowest hand: it has gone through a small part of its single turn, so it gives a
# rough position without any doubt about the number of turns. The next hand is finer, but has gone round an unknown
# number of times; the rough position says how many. And so on, hand by hand. Below, each hand is read to two decimals
# only, like a person reading a dial. The search starts in the middle of the slowest turn.

# %%
frequencies = posenc.sinusoidal_frequencies(8)
estimate = np.pi / frequencies[-1]
for omega, (x, y) in zip(frequencies[::-1], hands.round(2)[::-1]):
    angle = np.arctan2(x, y)
    turns = round((estimate * omega - angle) / (2 * np.pi))
    estimate = (angle + 2 * np.pi * turns) / omega
    print(f"{omega:5.3f} t = {turns:2d}·2π + {angle:6.3f}   t ≈ {estimate:6.1f}")

# %% [markdown]
# Four readings with two decimals each are enough. This is how decimal digits work, too: the slow hand is the
# leading digit, the fast hand the last one. The difference: digits jump, hands move evenly, and so nearby
# positions keep similar codes.
#
# **Try it.** How coarse may the readings be? Round to one decimal with `hands.round(1)`, then to none. At which hand
# does the chain break? Then set `position = 7000`. Why is the answer no whole number, and what does it have to do
# with the wavelength of the slowest hand?

# %% [markdown]
# ## Reading through noise {#noise}
#
# In a model the code is added to a token embedding, so nobody reads it undisturbed. Add Gaussian noise of standard
# deviation $\sigma$ to every number of the code, and let `posenc.sinusoidal.decode_position` name the position whose
# code lies nearest.
#
# **Predict:** which survives more noise, a code of width 8 or one of width 128? And when the decoder errs, is it wrong
# by one or two positions, or by hundreds?

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

# %% [markdown]
# Figure: Share of positions that are read wrongly, against the strength of the noise.
# Description: Three rising curves. The one for d = 8 leaves 0 first and comes close to 1 in the middle of the axis. The one for d = 32 climbs later and more slowly. The one for d = 128 stays at 0 longest and is the lowest throughout.
#
# Width buys robustness: every pair is one more witness to the same position. Now that you know the ladder, you can
# also explain the size of the errors: a small error means that the fast hands were drowned, a large one that a slow
# hand was misread.
#
# **Try it.** Keep $d = 32$ and pass `base=100` to both functions, `sinusoidal_encoding` and `decode_position`.
# Do errors become rarer or more frequent for $n = 1000$? On which wavelengths does the new ladder spend its rungs?
# Then compare the sizes of the errors at $\sigma = 1$.

# %% [markdown]
# ## What to take away {#take-away}
#
# - A code is a row of clock hands, from one that tells neighbours apart to one that hardly moves.
# - `dim` sets how many hands there are, `base` the limit that the slowest approaches. The fastest never changes.
# - The distance between codes depends on the offset alone; wide codes make it smooth.
# - Slow hands give the rough position, fast hands the fine one; more hands withstand more noise.
#
# Back to the [chapter](../sinusoidal.md), where the same pictures come with their proofs.
