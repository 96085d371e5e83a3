"""Any linear measurement: a matrix of random sums of a small image, restored and handed to xarray."""

import torch

import snips

x = snips.StationaryGaussian.natural((1, 16, 16)).sample(1, seed=1)
H = torch.randn(128, 256, generator=torch.Generator().manual_seed(0)) / 16  # 128 sums of 256 pixels

problem = snips.InverseProblem.simulate(snips.make_operator("matrix", (1, 16, 16), matrix=H), x, 0.01, seed=0)
result = snips.restore(problem, samples=8, nfe=40)
print(result)

dataset = result.to_xarray()  # pip install '.[xarray]'
print(dataset["samples"].std("sample").mean().item(), "is the mean standard deviation of a pixel")
