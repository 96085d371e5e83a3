"""Are the error bars right? With a Gaussian prior the posterior is known exactly: compare."""

import snips

prior = snips.StationaryGaussian.natural((1, 16, 16))
problem = snips.InverseProblem.simulate(snips.make_operator("sr2", (1, 16, 16)), prior.sample(1, seed=0), 0.05, seed=1)
exact = prior.posterior(problem).sample(200, seed=2)
result = snips.restore(problem, prior, samples=200, nfe=50)

ours, true = result.std.mean(), exact.std(0).mean()
distance = (result.mean[0] - exact.mean(0)).square().mean().sqrt()
print(f"mean std {ours:.4f}, exactly {true:.4f}; the means differ by {distance:.4f} (rms)")
