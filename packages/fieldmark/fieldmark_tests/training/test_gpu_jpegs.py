import numpy as np
import pytest
import torch
from PIL import Image

from fieldmark.training.boxes import Crops
from fieldmark.training.gpu_jpegs import can_decode, decode_on, decodes_itself
from fieldmark.training.packs import EncodedSquares, filled, open_pack
from fieldmark.training.photos import PhotoSource, PhotoTransform
from fieldmark.training.sources import evaluation_batches, prepared

CPU = torch.device("cpu")
NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture
def pack(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(6):
        small = Image.fromarray(rng.integers(0, 256, (7, 9, 3), dtype=np.uint8))
        small.resize((90, 70), Image.Resampling.BICUBIC).save(tmp_path / f"{number}.png")
    names = [f"{number}.png" for number in range(6)]
    return open_pack(names, lambda name: (tmp_path / name).read_bytes(), 64, "jpeg", tmp_path / "packs")


def test_a_jpeg_pack_is_read_as_files_and_a_processor_decodes_them(pack):
    rows = np.array([4, 0])
    read, aspects = pack.read(rows)
    assert isinstance(read, EncodedSquares) and [file[:2].tolist() for file in read.files] == [[0xFF, 0xD8]] * 2
    squares, again = pack.squares(rows)
    assert squares.shape == (2, 64, 64, 3) and (filled(read) == squares).all() and (aspects == again).all()
    assert not can_decode(CPU) and not decodes_itself(CPU, 1)


def shown(pack, device):
    source = PhotoSource(pack, np.arange(6), np.zeros(6, dtype=np.int32), None, Crops("squash"))
    batches = evaluation_batches(source, np.arange(6), batch=4, workers=2, device=device)
    transform = PhotoTransform(64, (0.5,) * 3, (0.5,) * 3)
    return torch.cat([batch.inputs.cpu() for batch in prepared(batches, transform, device)])


def test_batches_of_a_jpeg_pack_are_its_squares(pack):
    squares, _ = pack.squares(np.arange(6))
    expected = torch.from_numpy(squares).permute(0, 3, 1, 2) / 127.5 - 1
    torch.testing.assert_close(shown(pack, CPU), expected, atol=1e-4, rtol=0)


@NEEDS_GPU
def test_a_gpu_decodes_to_the_same_pixels_and_trains_on_them(pack):
    device = torch.device("cuda")
    assert decodes_itself(device, 2) and not decodes_itself(device, 16)
    read, _ = pack.read(np.arange(6))
    found = decode_on(device, read).cpu().numpy().astype(int)
    assert (np.abs(found - filled(read)) <= 1).all()
    torch.testing.assert_close(shown(pack, device), shown(pack, CPU), atol=0.02, rtol=0)
