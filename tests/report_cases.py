"""A small result for the tests of its page."""

from __future__ import annotations

from snips import InverseProblem, Restoration, StationaryGaussian, make_operator

SHAPE = (3, 16, 24)


def result_of(name: str, sigma_0: float = 0.1, samples: int = 3, **options) -> Restoration:
    """Samples of the exact posterior, so that they are faithful."""
    prior = StationaryGaussian.natural(SHAPE)
    problem = InverseProblem.simulate(make_operator(name, SHAPE, **options), prior.sample(1, seed=1), sigma_0, seed=0)
    drawn = prior.posterior(problem).sample(samples, seed=2)[:, None]
    return Restoration(problem, drawn, {"sampler": "exact", "seed": 2})
