"""Deblur a face, and see what is uncertain."""

# %% [markdown]
# # Deblur a face, and see what is uncertain
#
# A blurred and noisy face has lost details for good. Many sharp faces fit it; this tutorial draws eight of them and
# asks what they agree on. It runs in a few seconds on one core, with everything from the package.

# %%
import matplotlib.pyplot as plt

import snips
from snips.images import example_image

x = example_image()  # (1, 3, 64, 64), values in [0, 1]
operator = snips.make_operator("deblur_uniform", x.shape[1:], width=5)
problem = snips.InverseProblem.simulate(operator, x, sigma_0=0.1, seed=0)
result = snips.restore(problem, "faces", samples=8, nfe=25, seed=0)
print(result)

# %% [markdown]
# Twenty-five calls of the denoiser are few (the default is 100), and enough to see how it works. From left to
# right: the original, the measurement, eight samples, their mean, and their standard deviation four times brighter.

# %%
result.grid()

# %% [markdown]
# ## One sample or the mean?
#
# Their mean is closer to the truth and smoother than any of them, because details on which the samples disagree
# cancel. Samples of the exact posterior would be as rough as real photos. These are less rough than the truth: the
# bundled network is small, and the calls are few.

# %%
from snips.metrics.calibration import SUMMARIES

roughness = SUMMARIES["roughness"]
samples_psnr, mean_psnr = result.psnr()
print(f"PSNR: samples {samples_psnr.mean():.2f} dB, mean {mean_psnr.mean():.2f} dB")
print(f"roughness: truth {roughness(x).item():.3f}, samples {roughness(result.samples).mean():.3f}, ", end="")
print(f"mean {roughness(result.mean).item():.3f}")

# %% [markdown]
# ## Where is it uncertain?
#
# A map of the standard deviation: edges and eyes are uncertain, since a blur leaves their exact place open; flat
# regions are not.

# %%
figure, axes = plt.subplots(1, 2, figsize=(7, 3))
axes[0].imshow(result.mean[0].permute(1, 2, 0).clamp(0, 1).numpy())
picture = axes[1].imshow(result.std[0].mean(0).numpy(), cmap="magma")
figure.colorbar(picture, ax=axes[1])
for axis, title in zip(axes, ("mean", "standard deviation"), strict=True):
    axis.set(title=title, xticks=[], yticks=[])

# %% [markdown]
# ## What varies together?
#
# Pixels do not vary alone. The singular vectors of the samples, taken as deviations from their mean, are the
# directions in which they differ most; eight samples have seven. Two standard deviations to either side show what
# the first one means. A blur leaves many small details open, so no direction dominates here; with colorization, or
# a hole, a few would.

# %%
import torch

deviations = (result.samples - result.mean)[:, 0].flatten(1)  # (8, 3 * 64 * 64)
_, lengths, directions = torch.linalg.svd(deviations, full_matrices=False)
share = lengths**2 / (lengths**2).sum()
print("share of the variance:", ", ".join(f"{value:.0%}" for value in share[:7]))

step = 2 * lengths[0] / 7**0.5 * directions[0].reshape(3, 64, 64)
figure, axes = plt.subplots(1, 3, figsize=(7, 2.6))
for axis, (title, image) in zip(
    axes,
    {"- 2 std": result.mean[0] - step, "mean": result.mean[0], "+ 2 std": result.mean[0] + step}.items(),
    strict=True,
):
    axis.imshow(image.permute(1, 2, 0).clamp(0, 1).numpy())
    axis.set(title=title, xticks=[], yticks=[])

# %% [markdown]
# ## A quantity of your own
#
# Whatever you want to know, compute it for each sample. The spread of the answers is its uncertainty: here the
# brightness of a small patch over the left eye, and that of the whole image. A large region averages over what is
# uncertain.

# %%
eye = (slice(None), 0, slice(None), slice(30, 36), slice(20, 28))  # all samples, first image, all channels
for name, of_samples, of_truth in (
    ("eye", result.samples[eye], x[eye[1:]]),
    ("all", result.samples[:, 0], x[0]),
):
    values = of_samples.flatten(1).mean(1)
    print(f"{name}: {values.mean():.3f} ± {values.std():.3f}, truth {of_truth.mean():.3f}")

# %% [markdown]
# ## Do the samples explain the measurement?
#
# If a sample is right, what is left of the measurement is its noise: as strong, Gaussian, and without structure.
# [Reading the results](../reading_results.md) explains the figures.

# %%
verdict = result.faithfulness()
print("residual / sigma_0:", ", ".join(f"{value:.3f}" for value in verdict.std_ratio[:, 0]))
print("p of normality:    ", ", ".join(f"{value:.2f}" for value in verdict.p_value[:, 0]))
print(f"faithful: {int(verdict.faithful.sum())} of {len(verdict.faithful)}")
