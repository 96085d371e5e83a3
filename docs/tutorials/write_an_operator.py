"""Write an operator in 40 lines."""

# %% [markdown]
# # Write an operator in 40 lines
#
# A line sensor adds up light as it moves along a row, and reports the running sum after each step. The image is
# hidden in these sums: differences of neighbours would bring it back, if there were no noise. This tutorial writes
# the sensor as an operator with its singular value decomposition, tests it, and restores with it.
#
# An operator needs two shapes, its singular values and five methods. Rows are independent here, so one small matrix
# is enough for images of any height: the W x W matrix of the running sum.

# %%
import torch
from torch import Tensor

import snips


class RunningSum(snips.LinearOperator):
    """y_j = (x_1 + ... + x_j) / W along each row: H = I (x) A with a triangular A."""

    def __init__(self, image_shape: tuple[int, ...]) -> None:
        super().__init__(image_shape, measurement_shape=image_shape)
        width = self.image_shape[2]
        U, s, Vt = torch.linalg.svd(torch.ones(width, width, dtype=torch.float64).tril() / width)
        self.register_exact("left", U)  # computed in float64, used in the precision of the image
        self.register_exact("right", Vt)
        self.register_exact("singular_values", s[None, None, :])  # broadcasts against (C, H, W)

    def forward(self, x: Tensor) -> Tensor:  # written without the SVD, so that one can test the other
        return x.cumsum(-1) / x.shape[-1]

    def Vt(self, x: Tensor) -> Tensor:
        return x @ self.right.T

    def V(self, x_bar: Tensor) -> Tensor:
        return x_bar @ self.right

    def Ut(self, y: Tensor) -> Tensor:
        return y @ self.left

    def U(self, y_bar: Tensor) -> Tensor:
        return y_bar @ self.left.T


print(snips.check_operator(RunningSum((1, 16, 24))))

# %% [markdown]
# ## What the test is worth
#
# The most common mistake is a transposed factor. Everything still has the right shape, but the test says what
# fails.

# %%


class Transposed(RunningSum):
    """The same with one factor the wrong way round."""

    def Ut(self, y: Tensor) -> Tensor:
        return y @ self.left.T


report = snips.check_operator(Transposed((1, 16, 24)))
print(report)
assert not report

# %% [markdown]
# ## What will be hard?
#
# The singular values tell before anything is restored. A coordinate with singular value s is seen with noise
# sigma_0 / s. The sum sees smooth rows well, and alternating pixels hardly.

# %%
import matplotlib.pyplot as plt

operator = RunningSum((1, 32, 32))
s, sigma_0 = operator.singular_values[0, 0], 0.002
figure, axes = plt.subplots(1, 2, figsize=(7, 2.6))
axes[0].semilogy((sigma_0 / s).numpy(), ".-")
axes[0].set(xlabel="coordinate", ylabel="sigma_0 / s", title="noise of each coordinate")
for k in (0, 3, 31):
    axes[1].plot(operator.right[k].numpy(), label=f"s = {s[k]:.3f}")
axes[1].set(xlabel="pixel of a row", title="three columns of V")
axes[1].legend(loc="upper left", bbox_to_anchor=(1, 1))

# %% [markdown]
# ## Restore
#
# The prior is a Gaussian with the spectrum of photographs, for which the exact posterior is known, so that we can
# compare. Differences of neighbours undo the sum, and make its noise sqrt(2) W times stronger; the prior holds the
# samples back.

# %%
prior = snips.StationaryGaussian.natural((1, 32, 32))
problem = snips.InverseProblem.simulate(operator, prior.sample(1, seed=3), sigma_0, seed=0)
result = snips.restore(problem, prior, samples=16, nfe=40)
print(result)

differences = operator.pinv(problem.y)
exact = prior.posterior(problem)
print(f"error of differences: {(differences - problem.truth).std():.4f}")
print(f"error of the mean of the samples: {(result.mean - problem.truth).std():.4f}")
print(f"standard deviation: samples {result.std.mean():.4f}, exactly {exact.sample(400, seed=1).std(0).mean():.4f}")

# %%
figure, axes = plt.subplots(1, 5, figsize=(9, 2.2))
shown = {
    "truth": problem.truth[0, 0],
    "running sum": problem.y[0, 0],
    "differences": differences[0, 0],
    "a sample": result.samples[0, 0, 0],
    "mean": result.mean[0, 0],
}
low, high = problem.truth.min().item(), problem.truth.max().item()
for axis, (title, image) in zip(axes, shown.items(), strict=True):
    limits = {} if title == "running sum" else {"vmin": low, "vmax": high}
    axis.imshow(image.numpy(), cmap="gray", **limits)
    axis.set(title=title, xticks=[], yticks=[])

# %% [markdown]
# ## Give it a name
#
# To use it on the command line, register it in a package of yours ([Plug-ins](../bring_your_own.md#plug-ins)); to
# add it to snips itself, see *Add an operator* in `CONTRIBUTING.md`. If you have a matrix, or functions for $Hx$
# and $H^T y$, you need none of this: see [Functions](../bring_your_own.md#functions).
