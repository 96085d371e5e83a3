"""Hide a square of a photo and fill it: the samples differ inside, and agree outside."""

import torch

import snips
from snips.images import example_image

x = example_image()  # (1, 3, 64, 64)
seen = torch.ones(64, 64, dtype=torch.bool)
seen[20:44, 20:44] = False

problem = snips.InverseProblem.simulate(snips.make_operator("inpaint", x.shape[1:], mask=seen), x, 0.02, seed=0)
result = snips.restore(problem, "gaussian", samples=8, nfe=30)
std = result.std[0].mean(0)
print(f"standard deviation inside the hole {std[~seen].mean():.3f}, outside {std[seen].mean():.3f}")
