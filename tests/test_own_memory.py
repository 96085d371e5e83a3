"""Tensors begin where PyTorch would let them begin: elsewhere, products may round otherwise from run to run."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import snips
from snips.buffers import ALIGNMENT, in_own_memory
from snips.operators.svd_cache import cached
from snips.photos.photo import as_photo
from snips.priors import StationaryGaussian
from snips.results.checkpoints import Checkpoint


def elsewhere(x: torch.Tensor, offset: int) -> torch.Tensor:
    """A copy that begins `offset` bytes after a multiple of 64, as arrays of NumPy and parts of files may."""
    space = torch.empty(x.nbytes + 2 * ALIGNMENT, dtype=torch.uint8)
    begin = -space.data_ptr() % ALIGNMENT + offset
    return space[begin : begin + x.nbytes].view(x.dtype).view(x.shape).copy_(x)


def settled(x: torch.Tensor) -> bool:
    return x.is_contiguous() and x.data_ptr() % ALIGNMENT == 0


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("offset", [8, 16, 40])
def test_values_are_copied_only_where_they_must_be(offset):
    x = noise(3, 5)
    assert in_own_memory(x) is x
    for moved in (elsewhere(x, offset), x.T.contiguous().T):
        assert not settled(moved)
        assert settled(in_own_memory(moved))
        assert torch.equal(in_own_memory(moved), x)


def test_states_and_measurements_are_there(tmp_path):
    """A state is read from the midst of a file, and y may be an array: both go straight into products."""
    file = Checkpoint(tmp_path / "states" / "one.safetensors", seconds=0)
    for odd in range(1, 9):  # the file's header grows with the names, and everything after it moves
        file.save("print", lambda odd=odd: {"x": noise(2, 3, 8, 8), "n" * odd: torch.tensor(1), "memory": noise(2, 3)})
        stored = file.load("print")
        assert stored is not None
        assert all(map(settled, stored.values()))
        assert torch.equal(stored["x"], noise(2, 3, 8, 8))
    operator = snips.make_operator("denoise", (3, 8, 8))
    for offset in (8, 16, 24):
        assert settled(snips.InverseProblem(operator, elsewhere(noise(1, 3, 8, 8), offset), 0.1).y)
    arrays = [np.random.default_rng(0).random((8, 8 + i, 3), dtype=np.float32) for i in range(8)]
    assert all(settled(as_photo(array).pixels) for array in arrays)


def test_a_decomposition_is_the_same_computed_and_read(tmp_path, monkeypatch):
    """The first worker computes and the others read: strides and places must not tell them apart."""
    monkeypatch.setenv("SNIPS_CACHE", str(tmp_path))
    shapes = {"left": (6, 5), "s": (5,)}
    computed = cached("key", shapes, lambda: {"left": noise(5, 6).T, "s": noise(5)})
    read = cached("key", shapes, lambda: pytest.fail("it is stored"))
    for name in shapes:
        assert torch.equal(computed[name], read[name])
        assert computed[name].stride() == read[name].stride()
        assert settled(computed[name])
        assert settled(read[name])


class Products(StationaryGaussian):
    """As a network may do, it multiplies the noisy image itself; such products round by where it begins."""

    def denoise(self, x, sigma):
        turn = noise(x.shape[-1], x.shape[-1])
        return super().denoise(x, sigma) + 1e-3 * torch.nn.functional.linear(x, turn)


@pytest.mark.parametrize("samples", [2, 3])
def test_a_run_that_goes_on_has_the_same_bits(samples, tmp_path):
    """At each step, with a denoiser whose rounding depends on memory where the library's does."""
    operator = snips.make_operator("inpaint", (3, 8, 8))
    problem = snips.InverseProblem.simulate(operator, noise(1, 3, 8, 8).sigmoid(), 0.1, seed=0)
    natural = StationaryGaussian.natural((3, 8, 8))
    prior = Products(0.5, natural.variances[0], 3)
    options = {"samples": samples, "nfe": 6, "chunk": 2}
    calm = snips.restore(problem, prior, **options).samples
    for last in range(1, 6 * -(-samples // 2)):
        file = Checkpoint(tmp_path / str(last) / "state.safetensors", seconds=0)

        def stop(info, last=last):
            if info.step == last:
                raise TimeoutError

        with pytest.raises(TimeoutError):
            snips.restore(problem, prior, checkpoint=file, on_step=stop, **options)
        assert torch.equal(snips.restore(problem, prior, checkpoint=file, **options).samples, calm), last
