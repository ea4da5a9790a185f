from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event

import numpy as np
import pytest
from PIL import Image

from fieldmark.features import photos
from fieldmark.features.crops import Box
from fieldmark.features.jpegs import decode_jpeg
from fieldmark.features.photos import PhotoError, Preprocessing, decode_photo, decode_square
from fieldmark.features.resampling import CompiledForMany, Resampler, ResizedWindow, compiled, same_pixels

HOW = Preprocessing(size_px=64, crop=0.875, mean=(0.5,) * 3, std=(0.5,) * 3)
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def resampler() -> Resampler:
    pytest.importorskip("numba")
    return compiled()


def noise(width: int, height: int) -> np.ndarray:
    return RNG.integers(0, 256, (height, width, 3), dtype=np.uint8)


def jpeg(pixels: np.ndarray, mode: str = "RGB", **options) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(file, "JPEG", quality=90, **options)
    return file.getvalue()


def test_the_loops_give_the_pixels_of_pillow_before_they_are_compiled():
    pytest.importorskip("PIL", minversion="13.0", reason="older ones have another order of rows and columns")
    assert same_pixels(Resampler())


def test_compiled_resampling_gives_the_pixels_of_pillow_whatever_the_sizes(resampler):
    for _ in range(150):
        width, height, *size = (int(one) for one in np.exp(RNG.uniform(np.log(4), np.log(400), 4)))
        left, top = int(RNG.integers(size[0])), int(RNG.integers(size[1]))
        window = ResizedWindow(
            left, top, int(RNG.integers(1, size[0] - left + 1)), int(RNG.integers(1, size[1] - top + 1))
        )
        pixels = noise(width, height)
        theirs = Image.fromarray(pixels).resize(tuple(size), Image.Resampling.BICUBIC, reducing_gap=2.0)
        theirs = theirs.crop((left, top, left + window.width, top + window.height))
        assert np.array_equal(resampler(pixels, tuple(size), window), theirs), (width, height, size, window)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_jpegs_are_decoded_to_the_pixels_of_pillow_whichever_way_up(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = jpeg(noise(333, 251), exif=exif)
    for box in (None, Box(0.1, 0.2, 0.83, 0.77)):
        for at_least_px in (30, 64, 250):
            ours, theirs = decode_jpeg(data, at_least_px, box), decode_photo(data, at_least_px=at_least_px, box=box)
            assert np.array_equal(ours, theirs)


def test_gray_and_progressive_jpegs_too_and_others_are_left_to_pillow():
    for data in (jpeg(noise(90, 70), "L"), jpeg(noise(90, 70), progressive=True, subsampling=0)):
        assert np.array_equal(decode_jpeg(data, 20), decode_photo(data, at_least_px=20))
    png = io.BytesIO()
    Image.fromarray(noise(9, 9)).save(png, "PNG")
    whole = jpeg(noise(90, 70))
    for data in (png.getvalue(), jpeg(noise(90, 70), "CMYK"), whole[: len(whole) // 2], whole[:4], b""):
        assert decode_jpeg(data, 20) is None


def test_squares_do_not_change_when_a_process_begins_to_compile(resampler, monkeypatch):
    ways = [HOW, replace(HOW, resize="squash"), replace(HOW, mirrored=True, place=(0.0, 1.0))]
    boxes = [None, Box(0.4, 0.1, 0.9, 0.95)]
    cases = [
        (jpeg(noise(*size)), how, box) for size in ((300, 200), (90, 400), (20, 30)) for how in ways for box in boxes
    ]
    before = [decode_square(*case) for case in cases]
    monkeypatch.setattr(photos, "resampler_for_many", lambda: resampler)
    assert all(np.array_equal(decode_square(*case), square) for case, square in zip(cases, before, strict=True))
    with pytest.raises(PhotoError, match="a truncated photo"):
        decode_square(cases[0][0][:3000], HOW)


def test_who_knows_that_many_come_compiles_with_the_first(resampler, monkeypatch):
    monkeypatch.setattr("fieldmark.features.resampling.compiled", lambda: resampler)
    for expected, made in ((10, None), (11, resampler)):
        for_many = CompiledForMany(10)
        for_many.expect(expected)
        assert for_many.reader.startswith("Pillow") and for_many() is made


def test_threads_of_many_photos_wait_for_the_one_that_compiles(resampler, monkeypatch):
    begun, go_on = Event(), Event()

    def compiled_slowly() -> Resampler:
        begun.set()
        go_on.wait()
        return resampler

    monkeypatch.setattr("fieldmark.features.resampling.compiled", compiled_slowly)
    for_many = CompiledForMany(10)
    for_many.expect(11)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(for_many)
        begun.wait()
        second = threads.submit(for_many)
        go_on.set()
        assert first.result() is second.result() is resampler


@pytest.mark.parametrize("package", ["simplejpeg", "numba"])
def test_without_a_package_pillow_reads_and_one_line_names_it_once_for_many_photos(package, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    ask = CompiledForMany(few=2)
    assert [ask(), ask()] == [None, None] and capsys.readouterr().err == ""
    assert ask.reader == "Pillow, as for 2 photos or fewer"
    assert [ask() for _ in range(5)] == [None] * 5
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and f"{package} is not installed" in said[0] and "pip install 'fieldmark[fast]'" in said[0]
    assert ask.reader == f"Pillow: {package} is not installed"


def test_a_numba_made_for_another_numpy_is_named_with_what_it_says_itself(tmp_path, monkeypatch, capsys):
    (tmp_path / "numba.py").write_text("raise ImportError('Numba needs NumPy 1.9 or less. Got NumPy 2.4.')")
    for name in [name for name in sys.modules if name.partition(".")[0] == "numba"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    assert CompiledForMany(few=0)() is None
    (said,) = capsys.readouterr().err.splitlines()
    assert f"does not import with NumPy {np.__version__} (Numba needs NumPy 1.9 or less. Got NumPy 2.4)" in said
    assert said.endswith("pip install --upgrade numba")


def test_loops_that_do_not_compile_leave_the_photos_to_pillow(monkeypatch, capsys):
    numba = pytest.importorskip("numba")

    def njit(loop, **options):
        raise ValueError("no such instruction")

    monkeypatch.setattr(numba, "njit", njit)
    assert CompiledForMany(few=0)() is None
    assert "does not compile here (no such instruction)" in capsys.readouterr().err


def test_only_jpegs_count_as_many_photos(monkeypatch):
    png, asked = io.BytesIO(), []
    Image.fromarray(noise(70, 70)).save(png, "PNG")
    monkeypatch.setattr(photos, "resampler_for_many", lambda: asked.append(1))
    for data in (png.getvalue(), jpeg(noise(70, 70))):
        decode_square(data, HOW)
    assert len(asked) == 1


def test_a_process_compiles_when_it_has_read_more_than_a_few_photos(resampler):
    ask = CompiledForMany(few=2)
    assert [ask() is None for _ in range(4)] == [True, True, False, False]
    assert ask.reader == "compiled loops"
