"""How much stain is in a blurred microscope image?"""

# %% [markdown]
# # How much stain is in a blurred microscope image?
#
# The question behind an image is often a number. Here it is the amount of brown stain (DAB) in a section of tissue,
# which marks a protein. The image, which comes with scikit-image, is blurred as by a lens out of focus, and noisy.
# Posterior samples answer with the number *and* its error bar. None of this is meant for diagnosis.

# %%
import matplotlib.pyplot as plt
import torch
from skimage import color, data

import snips

slide = torch.from_numpy(data.immunohistochemistry()[200:264, 200:264].copy())  # 64 x 64 pixels of the slide
x = slide.permute(2, 0, 1)[None] / 255  # (1, 3, 64, 64) in [0, 1]
lens = snips.make_operator("deblur_gauss", x.shape[1:], std=1.5, width=7)
problem = snips.InverseProblem.simulate(lens, x, sigma_0=0.05, seed=0)

# %% [markdown]
# ## Restore
#
# `natural` is the bundled prior of photographs. It has never seen a slide, so we shall ask whether its samples
# explain the measurement, and whether its error bars hold.

# %%
result = snips.restore(problem, "natural", samples=12, nfe=20, seed=0)
print(result)
result.grid()

# %% [markdown]
# ## The number, with its error bar
#
# `rgb2hed` separates the stains; their amounts are logarithms of brightness, so the answer is not linear in the
# image, and taking it from the mean of the samples would be wrong. Compute it for each sample instead.

# %%


def stained(image: torch.Tensor, threshold: float) -> float:
    """The share of pixels with more DAB than a threshold, for (3, H, W)."""
    amounts = color.rgb2hed(image.clamp(0, 1).permute(1, 2, 0).numpy())[..., 2]
    return float((amounts > threshold).mean())


print("more DAB than    truth  measurement  mean of samples  each sample")
for threshold in (0.06, 0.10, 0.12):
    shares = torch.tensor([stained(sample, threshold) for sample in result.samples[:, 0]])
    others = [stained(image[0], threshold) for image in (x, problem.y, result.mean)]
    print(f"{threshold:.2f}             {others[0]:.3f}  {others[1]:.3f}        {others[2]:.3f}", end="            ")
    print(f"{shares.mean():.3f} ± {shares.std():.3f}")
    assert others[1] > others[0], "the noise adds stain"
    assert abs(shares.mean() - others[0]) < 2.5 * shares.std(), "the truth is within the error bar"

# %% [markdown]
# The noise of the measurement lifts pixels over the threshold, so it finds too much strong stain. The mean of the
# samples is smooth, and finds less of the strongest than the samples do. The samples lie between, and say how sure
# they are. Here the truth is within about two of their standard deviations. Where it is further away, the prior is
# wrong about such pixels, and the error bar, which takes it for right, does not know. The higher the threshold, the
# fewer and the more extreme the pixels that decide.
#
# ## Is the error bar right?
#
# One image cannot tell. For 90 % intervals one counts how often they hold the truth; over the pixels of this image,
# which are not independent, the count is a first hint. Twelve samples give intervals of 85 %.

# %%
from snips.metrics.calibration import coverage

held = coverage(result.samples, x, level=0.85)
print(f"{held.share:.1%} of pixels lie inside their {held.level:.1%} interval")

figure, axes = plt.subplots(1, 3, figsize=(8, 2.8))
error = (result.mean - x)[0].abs().mean(0)
scale = {"cmap": "magma", "vmin": 0, "vmax": float(error.max())}  # one for both, so that they can be compared
axes[0].imshow(result.std[0].mean(0).numpy(), **scale)
axes[0].set_title("standard deviation")
axes[1].imshow(error.numpy(), **scale)
axes[1].set_title("error of the mean")
axes[2].imshow(held.inside[0].float().mean(0).numpy(), cmap="gray")
axes[2].set_title("share of channels inside")
for axis in axes:
    axis.set(xticks=[], yticks=[])

# %% [markdown]
# A share well below the level says that the prior is too sure of itself on such images. Then train one on images
# like yours (`snips train`), or say so beside the number. A share well above it says that the prior knows less than
# there is to know: its error bars are wider than they need to be.
