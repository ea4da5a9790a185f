import numpy as np
import pytest
import torch

from fieldmark.training.draws import Draws, example_seeds
from fieldmark.training.fused_views import equalizing_tables, numbers_for, turned
from fieldmark.training.photos import PhotoTransform
from fieldmark.training.randaugment import OPERATIONS, apply_operations, posterized_bits, solarized_from

MAGNITUDE, SIDE_PX, EACH = 20, 33, 4
NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def pictures(count: int, side_px: int = SIDE_PX) -> torch.Tensor:
    """Smooth pictures of all levels, one of them flat."""
    rough = torch.rand((count, 3, 9, 9), generator=torch.Generator().manual_seed(0))
    smooth = torch.nn.functional.interpolate(rough, size=side_px, mode="bicubic").mul(255).clamp(0, 255)
    smooth[-1] = 77
    return smooth.to(torch.uint8)


@pytest.mark.parametrize("magnitude", [0, 9, 20, 30])
def test_all_operations_in_one_pass_give_the_pixels_of_one_by_one(magnitude):
    chosen = np.repeat(np.arange(len(OPERATIONS)), EACH)
    signs = np.tile([-1.0, 1.0], len(chosen) // 2)
    pixels = pictures(EACH).repeat(len(OPERATIONS), 1, 1, 1)
    told = torch.from_numpy(numbers_for(chosen, signs, magnitude, SIDE_PX))
    tables = equalizing_tables(pixels, chosen)
    found = turned(pixels, told, tables, posterized_bits(magnitude), solarized_from(magnitude))
    expected = apply_operations(pixels, chosen, signs, magnitude)
    for number, name in enumerate(OPERATIONS):
        these = slice(number * EACH, (number + 1) * EACH)
        assert (found[these] == expected[these]).all(), name


def test_photos_that_are_not_equalized_have_no_table():
    chosen = np.zeros(3, dtype=np.int64)
    assert not equalizing_tables(pictures(3), chosen).any()


@NEEDS_GPU
@pytest.mark.parametrize("turns", [0, 2])
def test_compiled_views_are_those_of_single_steps(turns):
    device = torch.device("cuda")
    squares = pictures(64, 64).permute(0, 2, 3, 1).contiguous().to(device)
    boxes = torch.tensor([[0.1, 0.0, 0.9, 0.8], [1.0, 0.1, 0.2, 0.9]], device=device).repeat(32, 1)
    draws = Draws(example_seeds(0, 0, np.arange(64)))
    plain, compiled = (
        PhotoTransform(48, (0.5,) * 3, (0.5,) * 3, turns, MAGNITUDE, fused)([squares, boxes], draws)
        for fused in (False, True)
    )
    assert compiled.is_contiguous(memory_format=torch.channels_last)
    levels = (plain - compiled).abs() * 127.5
    # Where a pixel comes from is rounded: a few of them may come from the one beside.
    assert (levels > 1.5).float().mean() < 0.01
