"""A noisy array of unknown noise level: estimate it, and see whether the estimate can be trusted."""

import numpy as np
from skimage import data

import snips
from snips.photos.photo import as_photo
from snips.posing.noise import estimate_noise

clean = data.camera()[100:228, 150:278] / 255
noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)

y = as_photo(noisy).pixels
print(estimate_noise(snips.make_operator("denoise", y.shape[1:]), y))

result = snips.restore(noisy, "gaussian", samples=4, nfe=10)  # sigma_0="auto" does the same
error = np.sqrt(((result.to_numpy()[:, 0, 0].mean(0) - clean) ** 2).mean())
print(f"sigma_0 = {result.problem.sigma_0:.3f}; the mean of the samples is {error:.3f} from the truth (rms)")
