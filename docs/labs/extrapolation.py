# ---
# title-en: Train short, test long
# title-zh: 短文训练，长文考试
# description-en: A lab of twenty minutes. Train a small Transformer on 32 tokens, ask it at 256, look where its attention went, and mend it without training.
# description-zh: 二十分钟的实验：用 32 个词元训练一个小 Transformer，拿 256 个去考，看注意力去了哪里，再不经训练把它修好。
# minutes: 20
# needs: [extrapolation]
# ---

# %% [markdown] lang="en"
# # Train short, test long {#extrapolation-lab}
#
# The chapter [past the trained length](../extrapolation.md) has the reasons and the results of many trainings. Here
# you train one model yourself, look at its attention and change its positions, for about twenty minutes. In each
# section **predict** on paper, run the cell, and then change something.
#
# The task is called *back*: the text consists of random symbols, of which there are 16, and at each place the model
# has to name the symbol that stands three back. The model has two layers, four heads in each, and RoPE.

# %% [markdown] lang="zh"
# # 短文训练，长文考试 {#extrapolation-lab}
#
# [比训练时更长](../extrapolation.md)一章讲了道理，也给出许多次训练的结果。在这里你亲手训练一个模型，打开它，改动它，大约二十分钟。每一节都一样：先在纸上写下**预测**，再运行，最后改一改试试。
#
# 任务是在 16 种符号组成的随机文本里，说出三位之前的符号。模型有两层，四个头，用 RoPE。

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

# %% [markdown] lang="en"
# ## Train it {#train}
#
# The model is trained for 600 steps on texts of 32 tokens. Then it gets texts of 32, 40, 64, 128 and 256 tokens.
# **Predict** which share of its answers is right in the last quarter of each text. A guess is right one time in 16.

# %% [markdown] lang="zh"
# ## 训练它 {#train}
#
# 用 32 个词元的文本训练 600 步。**预测**：文本有 32、40、64、128、256 个词元时，对每篇文本最后四分之一的词元，模型能答对多少？瞎猜是十六次里对一次。

# %%
run = train_extrapolation("rotary", "back")
print(f"{run.steps} steps of training")
for n, right in zip(LENGTHS, run.scores):
    print(f"{n:3} tokens: {right:4.0%} right")

# %% [markdown] lang="en"
# Within 32 tokens the model has learned the task. With 40 tokens it does not fail yet. With 256 tokens it is little
# better than a guess.
#
# **Try it.** Train with another seed: `seed=1`. How far beyond 32 tokens a model is right is also a matter of luck.
#
# ## Where it looks {#look}
#
# `model.attention` gives the weights of all heads in both layers. The next cell draws those of the second layer for
# queries at two positions: 28, which is within the trained length, and 250, which is far beyond it. **Predict** the
# weight of the key three back for each of the two queries.

# %% [markdown] lang="zh"
# 它学会了这项任务，至少学会了 32 个词元以内的部分。40 个词元还不出错，256 个就比瞎猜好不了多少。
#
# **动手**：给 `train_extrapolation` 加上参数 `seed=1`，换一个随机种子。模型在多长的文本里还答得对，也看运气。
#
# ## 它往哪里看 {#look}
#
# `model.attention` 给出两层里所有头的权重。下面看第二层的两个位置：28 在训练长度以内，250 远在以外。**预测**：三位之前的键，在这两处各得多少权重？

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

# %% [markdown] lang="en"
# Figure: Mean weights of the four heads of the second layer by distance, for a query at 28 and one at 250.
# Description: Two panels. Above, t = 28: all four curves are at 1 at distance 3 and at 0 elsewhere. Below, t = 250: the highest peaks stand far beyond 32, at 122, 179 and 242.
# <!-- holds: all(peak(curve) == 3 for curve in p1.curves); peak(p2.dotted) == 122; peak(p2.dashed) == 179; peak(p2.solid) == 242 -->
#
# At 28 the key three back has all the weight. At 250 far keys have taken it, and they are not just any far keys. Take
# the one at distance 122, which is $122 - 3 = 119$ steps further than the right one. The two fastest pairs turn by
# $1$ and $0.316$ at each step. In 119 steps this makes $18.9$ and $6.0$ turns, which are nearly whole turns. So for
# the key 122 back these two pairs stand almost as they do for the key three back. The slow pairs could tell the two
# keys apart, but they stand at angles that never occurred in training.
#
# **Try it.** Look at the first layer, with `layer=0` in `by_distance`. Which of the two layers fails first?
#
# ## Mend it without training {#mend}
#
# The trained weights stay as they are, but the positions are treated in other ways. `linear`, `ntk`, `dynamic` and
# `yarn` are scalings of RoPE's frequencies. `logn` multiplies scores by $\ln n / \ln L$, where $n$ is the number of
# keys, if they are more than the trained length $L = 32$. `window` hides all keys but the last 32. `dropped` leaves out the rotation.
# **Predict** with which of them the model is right near the end of 256 tokens, and with which it is still right
# within the first 32.

# %% [markdown] lang="zh"
# 图：第二层四个头的平均权重，按距离画，查询在 28 和在 250。
# 说明：两幅图。上图 t = 28：四条曲线在距离 3 处都是 1，别处是 0。下图 t = 250：最高的峰远在 32 之外，在 122、179、242。
# <!-- holds: all(peak(curve) == 3 for curve in p1.curves); peak(p2.dotted) == 122; peak(p2.dashed) == 179; peak(p2.solid) == 242 -->
#
# 毛病不在查询近旁：是远处的键夺走了权重，而且不是随便哪个远处的键。以距离 122 的键为例，它比三位之前的键远 $122 - 3 = 119$ 位。把 119 乘上最快的两个频率 $1$ 和 $0.316$，折合 $18.9$ 圈和 $6.0$ 圈，都接近整圈。所以看这两对，距离 122 的键几乎和三位之前的键一样。本该把这两个键区分开的是慢的几对，可是它们转到了训练时从没到过的角度。
#
# **动手**：换成 `layer=0`。先坏的是哪一层？
#
# ## 不再训练，把它修好 {#mend}
#
# 训练得到的权重不变，只换一种使用位置的办法。`linear`、`ntk`、`dynamic`、`yarn` 缩放 RoPE 的频率，`logn` 把分数乘以 $\ln n / \ln L$，`window` 只留最近 32 个键，`dropped` 去掉旋转。**预测**：哪些在最后 32 个位置（从 224 起）答得对？哪些在 32 以内仍然答得对？

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

# %% [markdown] lang="en"
# - The window mends the model entirely. The answer is near, and within a window of 32 keys no angle is new.
# - With YaRN no angle is new either, and the fast pairs stay as they were. This model is then right at both ends. Models
#   trained with other seeds make a few mistakes within the first 32 tokens.
# - With linear scaling no angle is new, but each step turns only an eighth as far. What the model learned to find three
#   back now stands 24 back.
# - With NTK scaling there are still new angles. The dynamic form has the same frequencies here, because the text is 8
#   times as long as the texts in training.
# - Log-n scaling keeps attention from spreading. But this model did not fail because its attention spread.
# - Without the rotation the heads have no angle left by which they could find the key three back.
#
# **Try it.** Look at the weights that YaRN gives: `show(changed("rotary_yarn"))`.
#
# ## How thin is it? {#thin}
#
# If $m$ keys have equal weights, the entropy of the weights is $\ln m$, and $e$ to the entropy is $m$. So $e$ to the
# entropy says over how many keys attention is spread. **Predict:** over how many keys does the first layer spread at
# 28, and over how many at 250? And over how many with log-n scaling?

# %% [markdown] lang="zh"
# 窗口把模型完全修好，因为答案就在近处，而 32 个键的窗口里没有训练时没见过的角度。YaRN 也不带来这样的新角度，快的频率对又保持原样，这个模型用上 YaRN，两处都答对；换一个模型，32 以内会错一点。线性插值同样没有新角度，可是现在一步只相当于八分之一步：它学会的那个“三位之前”，如今落在 24 位之前。NTK 还会带来新角度，`dynamic` 也是按文本长度来用的 NTK，所以远处都答不对。log-n 缩放对付的是注意力摊薄，而这个模型的毛病不在这里。去掉旋转以后，近处也答不对，因为模型正是靠旋转找到三位之前的。
#
# **动手**：运行 `show(changed("rotary_yarn"))`。
#
# ## 摊得多薄 {#thin}
#
# 以 $e$ 为底、以熵为指数的幂，说的是注意力相当于平摊在多少个键上。**预测**：在第一层，位置 28 的查询把注意力摊在多少个键上？位置 250 的查询呢？用上 log-n 缩放以后呢？

# %%
with torch.no_grad():
    for name in ["rotary", "rotary_logn", "rotary_yarn"]:
        for layer, weights in enumerate(changed(name).attention(ids), start=1):
            near, far = attention_entropy(weights).mean(dim=(0, 1))[[28, 250]].exp()
            print(f"{name:11} layer {layer}: {near:4.1f} and {far:4.1f} keys")

# %% [markdown] lang="en"
# The first layer spreads over more keys when there are more keys, and log-n scaling reduces this. The second layer
# stays on a few keys at 250, too. But they are the wrong ones.
#
# **Try it.** Make a scheme of your own. Write `from posenc.experiments.extrapolation import SCHEMES, Scheme`, and
# then `SCHEMES["mine"] = Scheme("mine", rotary="all", base=6.0)`. With this base every pair makes at least one turn
# within 32 tokens. Train a model with it: `train_extrapolation("mine", "back")`. Then train it on the task `recall`,
# in which no distance matters. That takes longer.
#
# ## What to take away {#take-away}
#
# - A model can be always right within the trained length and hardly better than a guess far beyond it.
# - One can see why: far keys, at angles that training never had, take the weight.
# - The cure follows from the cause: hide the far keys, or bring their angles back into the trained range. Sharper
#   attention alone does not help.
#
# Back to the [chapter](../extrapolation.md).

# %% [markdown] lang="zh"
# 键一多，第一层的注意力就摊开，log-n 缩放把它收拢了不少。第二层的注意力始终集中在少数几个键上，只是这几个键不对。
#
# **动手**：自己造一种方法：`SCHEMES["mine"] = Scheme("mine", rotary="all", base=6.0)`，每一对在 32 个词元以内都转满一圈；前面要先写 `from posenc.experiments.extrapolation import Scheme`。然后训练它。再把任务换成与距离无关的 `recall`，这次训练要久一些。
#
# ## 小结 {#take-away}
#
# - 模型可以在训练长度以内全对，远远超出以后却近乎瞎猜。
# - 它坏在哪里，看得见：远处的键转到没见过的角度，夺走了权重。
# - 坏在哪里，就修哪里：遮住远处的键，或者把角度拉回来。只让注意力更集中没有用，因为集中到的键不对。
#
# 回到[这一章](../extrapolation.md)。
