# ---
# title-en: Train short, ask long
# title-zh: 短文训练，长文考试
# description-en: A lab of twenty minutes. Train a small Transformer on 32 tokens, ask it at 256, look where its attention went, and mend it without training.
# description-zh: 二十分钟的实验：用 32 个词元训练一个小 Transformer，拿 256 个去考，看注意力去了哪里，再不经训练把它修好。
# needs: [extrapolation]
# ---

# %% [markdown] lang="en"
# # Train short, ask long {#extrapolation-lab}
#
# The chapter [past the trained length](../extrapolation.md) has the reasons and the results of many trainings. Here you make one,
# open it and change it, for about twenty minutes. In each section: **predict** on paper, run the cell, change something.
#
# The task: in a random text of 16 symbols, name the symbol that stands three back. The model: two layers, four heads, RoPE.

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
# It gets 600 steps with texts of 32 tokens. **Predict** how many are right near the end of texts of 32, 40, 64, 128
# and 256 tokens. A guess is right one time in 16.

# %% [markdown] lang="zh"
# ## 训练它 {#train}
#
# 用 32 个词元的文本训练 600 步。**预测**：文本有 32、40、64、128、256 个词元时，最后四分之一能答对多少？瞎猜是十六次里对一次。

# %%
run = train_extrapolation("rotary", "back")
print(f"{run.steps} steps of training")
for n, right in zip(LENGTHS, run.scores):
    print(f"{n:3} tokens: {right:4.0%} right")

# %% [markdown] lang="en"
# It has learned the task, as far as 32 tokens can tell. At 40 it does not fail yet, at 256 it is little better than a guess.
#
# **Try it.** Another seed: `seed=1`. How far it holds is a matter of luck, too.
#
# ## Where it looks {#look}
#
# `model.attention` gives the weights of all heads in both layers. Here is the second layer, at two positions: 28, within the trained length,
# and 250. **Predict** the weight of the key three back at both.

# %% [markdown] lang="zh"
# 它学会了这项任务，至少学会了 32 个词元以内的部分。40 个词元还不出错，256 个就比瞎猜好不了多少。
#
# **试一试。** 换一个种子：`seed=1`。能撑多远，也看运气。
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
# Nothing went wrong near the query. Far keys took the weight, and not any far ones. Multiply $122 - 3$ by the two fastest frequencies, $1$ and
# $0.316$: that is $18.9$ and $6.0$ turns. These pairs stand almost as they do three back, and the slow ones, which could tell the two apart,
# stand at angles that training never had.
#
# **Try it.** `layer=0`. Which layer breaks first?
#
# ## Mend it without training {#mend}
#
# The same weights, with other positions. `linear`, `ntk`, `dynamic` and `yarn` are scalings of RoPE's frequencies, `logn` multiplies scores by
# $\ln n / \ln L$, `window` hides all keys but the last 32, `dropped` leaves out the rotation. **Predict** which are right near 256, and which are
# still right within 32.

# %% [markdown] lang="zh"
# 图：第二层四个头的平均权重，按距离画，查询在 28 和在 250。
# 说明：两幅图。上图 t = 28：四条曲线在距离 3 处都是 1，别处是 0。下图 t = 250：最高的峰远在 32 之外，在 122、179、242。
# <!-- holds: all(peak(curve) == 3 for curve in p1.curves); peak(p2.dotted) == 122; peak(p2.dashed) == 179; peak(p2.solid) == 242 -->
#
# 毛病不在查询近旁：是远处的键夺走了权重，而且夺走权重的不是随便哪个。把 $122 - 3$ 乘上最快的两个频率 $1$ 和 $0.316$，折合 $18.9$ 圈和 $6.0$ 圈，都接近整圈。所以这两对转得几乎和三位之前一样；本该把它们区分开的那几对慢的，转到了训练时从没到过的角度。
#
# **试一试。** 换成 `layer=0`。先坏的是哪一层？
#
# ## 不再训练，把它修好 {#mend}
#
# 权重不变，位置换一种用法。`linear`、`ntk`、`dynamic`、`yarn` 缩放 RoPE 的频率，`logn` 把分数乘以 $\ln n / \ln L$，`window` 只留最近 32 个键，`dropped` 去掉旋转。**预测**：哪些在 256 附近答得对？哪些在 32 以内仍然答得对？

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
# The window mends it entirely, since the answer is near: no angle is new within a window of 32 keys. YaRN brings no new angle either and keeps the fast pairs
# as they were; this model is right with it at both ends, others pay a little within 32. Linear scaling brings none, too, but now each step turns only an eighth as far: what it learned to call three
# back stands 24 back. NTK still has new angles. And log-n keeps attention from spreading, which is not what broke this model.
#
# **Try it.** `show(changed("rotary_yarn"))`.
#
# ## How thin is it? {#thin}
#
# $e$ to the entropy is a number of keys. **Predict:** over how many keys does the first layer spread at 28, and at 250? And with log-n?

# %% [markdown] lang="zh"
# 窗口把它完全修好，因为答案就在近处：32 个键的窗口里没有新角度。YaRN 也不带来新角度，快的频率对又保持原样，这个模型用上它，两处都答对；换一个模型，32 以内会错一点。线性插值同样没有新角度，可是现在一步只相当于八分之一步：它学会的那个“三位之前”，如今落在 24 位之前。NTK 还有新角度。log-n 缩放治的是注意力摊薄，而这个模型的毛病不在这里。
#
# **试一试。** 运行 `show(changed("rotary_yarn"))`。
#
# ## 摊得多薄 {#thin}
#
# $e$ 的熵次方，就是注意力相当于平摊在多少个键上。**预测**：第一层在 28 处摊在多少个键上，在 250 处呢？用上 log-n 缩放呢？

# %%
with torch.no_grad():
    for name in ["rotary", "rotary_logn", "rotary_yarn"]:
        for layer, weights in enumerate(changed(name).attention(ids), start=1):
            near, far = attention_entropy(weights).mean(dim=(0, 1))[[28, 250]].exp()
            print(f"{name:11} layer {layer}: {near:4.1f} and {far:4.1f} keys")

# %% [markdown] lang="en"
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

# %% [markdown] lang="zh"
# 键一多，第一层就摊开，log-n 缩放把它收拢了不少。第二层始终只盯着少数几个键，只是盯错了。
#
# **试一试。** 自己造一种方法：`SCHEMES["mine"] = Scheme("mine", rotary="all", base=6.0)`，每一对在 32 个词元以内都转满一圈；前面要先写 `from posenc.experiments.extrapolation import Scheme`。然后训练它。再把任务换成与距离无关的 `recall`，这次训练要久一些。
#
# ## 小结 {#take-away}
#
# - 模型可以在训练长度以内全对，远远超出以后却近乎瞎猜。
# - 它坏在哪里，看得见：远处的键转到没见过的角度，夺走了权重。
# - 坏在哪里，就修哪里：遮住远处的键，或者把角度拉回来。光让注意力更集中没有用。
#
# 回到[这一章](../extrapolation.md)。
