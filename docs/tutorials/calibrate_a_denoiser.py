"""Calibrate a new denoiser."""

# %% [markdown]
# # Calibrate a new denoiser
#
# Any denoiser can be the prior, but samples are only as right as the denoiser is. Three things go wrong most often:
# the units of the image, the units of sigma, and a denoiser that smooths more or less than its sigma says. This
# tutorial finds and mends all three, and shows what the last one does to error bars.
#
# The denoisers of this tutorial stand for those of another library: they take images from 0 to 255. Inside is the
# exact denoiser of a Gaussian, so that we know what is right.

# %%
import torch

import snips

exact = snips.StationaryGaussian.natural((1, 32, 32))


def theirs(image: torch.Tensor, sigma: float) -> torch.Tensor:
    """Wants values from 0 to 255."""
    return 255 * exact.denoise(image / 255, sigma / 255)


images = exact.sample(16, seed=0)  # in practice: clean images of the kind you want to restore

# %% [markdown]
# ## Its units
#
# `as_prior` wraps it, `check_prior` measures it on clean images with known noise. An ideal denoiser has slope 1 and
# error 1. (The error is compared with what its own answers imply. One that changes nothing, as here, implies just the
# error that it makes, and only the slope tells.) Where other units make it clearly better, the report says which, and
# what to write.

# %%
LEVELS = (0.05, 0.1, 0.25, 0.5)
print(snips.check_prior(snips.as_prior(theirs), images, LEVELS))

# %% [markdown]
# ## Its strength
#
# Many denoisers have a knob that somebody has tuned for pleasing pictures. This one smooths as if there were twice
# the noise. In the right units, the report says so: its error is larger than its own answers imply. (With both
# mistakes at once the report would only say that it does not denoise: mend the units first.)

# %%


def pleasing(image: torch.Tensor, sigma: float) -> torch.Tensor:
    """The same, smoothing more than the noise asks for."""
    return theirs(image, 2 * sigma)


in_units = snips.as_prior(pleasing, value_range=(0, 255))
print(snips.check_prior(in_units, images, LEVELS, seek=False))

# %% [markdown]
# `sigma_scale` multiplies the sigma that it is told. The PSNR is highest where it is told what an ideal denoiser
# would want to hear, so try several values and take the best.

# %%
scores = {}
for scale in (0.25, 0.35, 0.5, 0.7, 1.0, 1.4):
    trial = snips.as_prior(pleasing, value_range=(0, 255), sigma_scale=scale)
    report = snips.check_prior(trial, images, LEVELS, seek=False)
    scores[scale] = sum(level.psnr for level in report.levels) / len(LEVELS)
    print(f"sigma_scale = {scale:<4}: {scores[scale]:.2f} dB, error ratio {report.levels[1].error_ratio:.2f}")
best = max(scores, key=lambda scale: scores[scale])
calibrated = snips.as_prior(pleasing, value_range=(0, 255), sigma_scale=best)
print(snips.check_prior(calibrated, images, LEVELS))

# %% [markdown]
# ## What it does to error bars
#
# Draw truths from the prior, measure them, restore, and count how often 90 % intervals hold the truth. This tests
# prior and sampler together. It cannot see a wrong operator or noise level, as the measurements are simulated with
# the very H and sigma_0 that `restore` is given; for those, look at the verdict on real data.

# %%
import matplotlib.pyplot as plt

from snips.metrics.calibration import coverage, ranks

operator = snips.make_operator("sr2", (1, 32, 32))
truths = exact.sample(12, seed=1)
problem = snips.InverseProblem.simulate(operator, truths, sigma_0=0.05, seed=2)
priors, shares = {"as it came": in_units, "calibrated": calibrated, "exact": exact}, {}
figure, axes = plt.subplots(1, 3, figsize=(8, 2.2), sharey=True)
for axis, (name, prior) in zip(axes, priors.items(), strict=True):
    result = snips.restore(problem, prior, samples=19, nfe=30)
    held = coverage(result.samples, truths)
    error = (result.mean - truths).square().mean().sqrt()
    print(f"{name:<10}: {held.share:.1%} in {held.level:.0%} intervals; std {result.std.mean():.4f}, error {error:.4f}")
    shares[name] = held.share
    axis.hist(ranks(result.samples, truths).flatten().numpy(), bins=range(21), density=True)
    axis.axhline(1 / 20, color="black", linewidth=1)
    axis.set(title=name, xlabel="samples below the truth")
assert shares["as it came"] < 0.85 < shares["calibrated"]

# %% [markdown]
# A denoiser that smooths too much believes in smoother images than there are: its samples agree with each other and
# not with the truth, and nothing in a picture would show it. The histograms do: for each pixel they count how many of
# its 19 samples lie below the truth, and should be flat. If samples are too sure of themselves, the truth is often
# below or above all of them.
#
# ## The range of noise
#
# A denoiser that was trained up to some noise level knows nothing above. Say so with `sigma_range`; above it the
# linear estimate for photographs takes its place.

# %%
limited = snips.as_prior(pleasing, value_range=(0, 255), sigma_scale=best, sigma_range=(0.0, 1.0))
result = snips.restore(problem, limited, samples=19, nfe=30)
print(f"{coverage(result.samples, truths).share:.1%} with sigma_range=(0, 1)")

# %% [markdown]
# For a denoiser in a file of yours, `snips check-prior my_module:denoiser --images FOLDER` prints the same table.
