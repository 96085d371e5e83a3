"""Networks of diffusers as priors: what they predict at which timestep becomes the estimate of the image."""

from __future__ import annotations

import pytest
import torch

import snips
from snips import StationaryGaussian, as_prior
from snips.integrations.torchvision import register_torchvision_operators

SHAPE = (3, 8, 8)
TINY = {
    "sample_size": 8,
    "block_out_channels": (32, 32),
    "layers_per_block": 1,
    "down_block_types": ("DownBlock2D",) * 2,
    "up_block_types": ("UpBlock2D",) * 2,
}


@pytest.fixture(scope="module")
def exact() -> StationaryGaussian:
    return StationaryGaussian.natural(SHAPE)


class TestDiffusers:
    """A real UNet2DModel, and one whose prediction is exact, so that all conversions can be compared."""

    @pytest.fixture
    def diffusers(self):
        register_torchvision_operators()  # which it imports where it is installed
        return pytest.importorskip("diffusers", reason="diffusers is not installed: pip install '.[diffusers]'")

    @pytest.mark.parametrize("prediction", ["epsilon", "v_prediction", "sample"])
    def test_predictions(self, diffusers, prediction, exact):
        scheduler = diffusers.DDPMScheduler(num_train_timesteps=1000, prediction_type=prediction)
        a = scheduler.alphas_cumprod.double()

        class Exact(diffusers.UNet2DModel):
            """Predicts from the exact estimate of x_0 in [-1, 1] given x_vp at timestep t, fractions interpolated."""

            def forward(self, sample, timestep, class_labels=None, return_dict=True):
                assert timestep.shape == (len(sample),)
                t = float(timestep[0])
                log = (((1 - a) / a).sqrt()).log()
                i = min(int(t), len(a) - 2)
                sigma = float((log[i] + (t - i) * (log[i + 1] - log[i])).exp())
                signal, noise = (1 + sigma**2) ** -0.5, sigma * (1 + sigma**2) ** -0.5
                x0 = 2 * exact.denoise((sample / signal + 1) / 2, sigma / 2) - 1
                eps = (sample - signal * x0) / noise
                out = {"epsilon": eps, "v_prediction": signal * eps - noise * x0, "sample": x0}[prediction]
                return type("Output", (), {"sample": torch.cat([out, out], 1)})()  # with learned variances

        network = Exact(**TINY)
        prior = as_prior(network, scheduler=scheduler)
        for sigma in (0.01, 0.0731, 0.5, 3.0, 20.0):
            x = exact.sample(2, seed=1) + sigma * torch.randn(2, *SHAPE)
            torch.testing.assert_close(prior.denoise(x, sigma), exact.denoise(x, sigma), rtol=0, atol=3e-4)

    def test_timesteps_are_where_the_noise_is(self, diffusers):
        scheduler = diffusers.DDIMScheduler()
        prior = as_prior(lambda x, t: x, scheduler=scheduler)
        a = scheduler.alphas_cumprod.double()
        for t in (0, 1, 250, 999):
            assert prior.timestep(float(((1 - a[t]) / a[t]).sqrt())) == pytest.approx(t, abs=1e-4)

    def test_a_real_network(self, diffusers):
        network = diffusers.UNet2DModel(**TINY)
        scheduler = diffusers.DDPMScheduler()
        prior = as_prior(network, scheduler=scheduler)
        x = torch.rand(2, *SHAPE)
        t = 300
        a = float(scheduler.alphas_cumprod[t])
        sigma = ((1 - a) / a) ** 0.5
        x_vp = a**0.5 * (2 * x - 1)
        with torch.no_grad():
            x0 = (x_vp - (1 - a) ** 0.5 * network(x_vp, t).sample) / a**0.5
        torch.testing.assert_close(prior.denoise(x, sigma / 2), (x0 + 1) / 2, rtol=0, atol=1e-4)
        assert prior.denoise(x.double(), 1e-4).dtype == torch.float64
        problem = snips.InverseProblem.simulate(snips.make_operator("sr2", SHAPE), x[:1], 0.1)
        assert snips.restore(problem, prior, samples=1, nfe=6).samples.isfinite().all()

    def test_without_a_scheduler(self, diffusers):
        network = diffusers.UNet2DModel(
            sample_size=8,
            block_out_channels=(32,),
            layers_per_block=1,
            down_block_types=("DownBlock2D",),
            up_block_types=("UpBlock2D",),
        )
        with pytest.raises(ValueError, match="needs its scheduler="):
            as_prior(network)
