"""A noisy array of unknown noise level: it is estimated, and the estimate says whether it can be trusted."""

import numpy as np
from skimage import data

import snips

clean = data.camera()[100:228, 150:278] / 255
noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)

result = snips.restore(noisy, "gaussian", samples=4, nfe=10)  # sigma_0="auto" is the default
print(result.settings["noise"])
error = np.sqrt(((result.to_numpy()[:, 0, 0].mean(0) - clean) ** 2).mean())
print(f"sigma_0 = {result.problem.sigma_0:.3f}; the mean of the samples is {error:.3f} from the truth (rms)")
