# ---
# title: Train short, ask long
# description: A lab of twenty minutes. Train a small Transformer on 32 tokens, ask it at 256, look where its attention went, and mend it without training.
# needs: [extrapolation]
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
# # Train short, ask long {#extrapolation-lab}
#
# The chapter [past the trained length](../extrapolation.md) has the reasons and the results of many trainings. Here you make one,
# open it and change it, for about twenty minutes. In each section: **predict** on paper, run the cell, change something.
#
# The task: in a random text of 16 symbols, name the symbol that stands three back. The model: two layers, four heads, RoPE.

# %%
import matplotlib.pyplot as plt
import torch

from posenc.experiments.extrapolation import (
    LENGTHS,
    TASKS,
    train_extrapolation,
    use_weights,
)
from posenc.extrapolation import attention_entropy

plt.rcParams["figure.constrained_layout.use"] = True
plt.rcParams["axes.prop_cycle"] = plt.cycler(
    color=["#0072b2", "#d55e00", "#008a65", "#b0578d"],
    linestyle=["-", "--", "-.", ":"],
)

# %% [markdown]
# ## Train it {#train}
#
# It gets 600 steps with texts of 32 tokens. **Predict** how many are right near the end of texts of 32, 40, 64, 128
# and 256 tokens. A guess is right one time in 16.

# %%
run = train_extrapolation("rotary", "back")
print(f"{run.steps} steps of training")
for n, right in zip(LENGTHS, run.scores):
    print(f"{n:3} tokens: {right:4.0%} right")

# %% [markdown]
# It has learned the task, as far as 32 tokens can tell. At 40 it does not fail yet, at 256 it is little better than a guess.
#
# **Try it.** Another seed: `seed=1`. How far it holds is a matter of luck, too.
#
# ## Where it looks {#look}
#
# `model.attention` gives the weights of all heads in both layers. Here is the second layer, at two positions: 28, within the trained length,
# and 250. **Predict** the weight of the key three back at both.

# %%
ids, targets = TASKS["back"].make(64, 256, torch.Generator().manual_seed(1))


@torch.no_grad()
def by_distance(model, t, layer=1):
    """Mean weight of each distance for the query at t, a row a head."""
    return model.attention(ids)[layer][:, :, t, : t + 1].mean(0).flip(-1).numpy()


def show(model):
    _, axes = plt.subplots(2, 1, figsize=(4.8, 3.6), sharey=True)
    for ax, t in zip(axes, [28, 250]):
        for head, weights in enumerate(by_distance(model, t)):
            ax.plot(weights, label=f"{head + 1}")
        ax.set_title(f"t = {t}", fontsize=10, loc="left")
        ax.set(ylim=(-0.03, 1.05), ylabel="w")
        ax.spines[["top", "right"]].set_visible(False)
    axes[1].set_xlabel("t − u")
    axes[0].legend(ncols=4, frameon=False, fontsize=10)


show(run.model)

# %% [markdown]
# Figure: Mean weights of the four heads of the second layer by distance, for a query at 28 and one at 250.
# Description: Two panels. Above, t = 28: all four curves are at 1 at distance 3 and at 0 elsewhere. Below, t = 250: the highest peaks stand far beyond 32, at 122, 179 and 242.
#
# Nothing went wrong near the query. Far keys took the weight, and not any far ones. Multiply $122 - 3$ by the two fastest frequencies, 1 and
# 0.316: that is 18.9 and 6.0 turns. These pairs stand almost as they do three back, and the slow ones, which could tell the two apart,
# stand at angles that training never had.
#
# **Try it.** `layer=0`. Which layer breaks first?
#
# ## Mend it without training {#mend}
#
# The same weights, with other positions. `linear`, `ntk`, `dynamic` and `yarn` are scalings of RoPE's frequencies, `logn` multiplies scores by
# $\ln n / \ln L$, `window` hides all keys but the last 32, `dropped` leaves out the rotation. **Predict** which are right near 256, and which are
# still right within 32.

# %%
def changed(name):
    """The trained model with the positions of another scheme."""
    return use_weights(run, name)


@torch.no_grad()
def shares(model):
    right = (model(ids).argmax(-1) == targets).double()
    return right[:, 3:32].mean().item(), right[:, 224:].mean().item()


for how in ["linear", "ntk", "dynamic", "yarn", "logn", "window", "dropped"]:
    near, far = shares(changed(f"rotary_{how}"))
    print(f"{how:8} within 32: {near:4.0%}, from 224 on: {far:4.0%}")

# %% [markdown]
# The window mends it entirely, since the answer is near: no angle is new within a window of 32 keys. YaRN brings no new angle either and keeps the fast pairs
# as they were; this model is right with it at both ends, others pay a little within 32. Linear scaling brings none, too, but now each step turns only an eighth as far: what it learned to call three
# back stands 24 back. NTK still has new angles. And log-n keeps attention from spreading, which is not what broke this model.
#
# **Try it.** `show(changed("rotary_yarn"))`.
#
# ## How thin is it? {#thin}
#
# $e$ to the entropy is a number of keys. **Predict:** over how many keys does the first layer spread at 28, and at 250? And with log-n?

# %%
with torch.no_grad():
    for name in ["rotary", "rotary_logn", "rotary_yarn"]:
        for layer, weights in enumerate(changed(name).attention(ids), start=1):
            near, far = attention_entropy(weights).mean(dim=(0, 1))[[28, 250]].exp()
            print(f"{name:11} layer {layer}: {near:4.1f} and {far:4.1f} keys")

# %% [markdown]
# The first layer spreads as keys become more, and log-n holds it back. The second stays on a few keys. They are the wrong ones.
#
# **Try it.** A scheme of your own: `SCHEMES["mine"] = Scheme("mine", rotary="all", base=6.0)`, where every pair goes round within 32 tokens, with
# `from posenc.experiments.extrapolation import Scheme`. Train it. Then give `recall` as the task, in which no distance matters; that takes longer.
#
# ## What to take away {#take-away}
#
# - A model can be perfect within the trained length and almost guess far beyond it.
# - What breaks it can be seen: far keys at angles never met take the weight.
# - What mends it follows from what broke it: hide the far keys, or bring their angles back. Sharper attention alone does not mend it.
#
# Back to the [chapter](../extrapolation.md).
