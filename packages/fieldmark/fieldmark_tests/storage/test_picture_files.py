"""Files as cameras, phones, scanners and mischief make them: right, or refused in one sentence, everywhere alike."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

import fieldmark
from fieldmark.errors import InputError
from fieldmark.features.photos import PhotoError, decode_photo, decode_square
from fieldmark.identification.packaged.imagenet_model import imagenet_model
from fieldmark.models import load_model
from fieldmark.storage import picture_files
from fieldmark.tables.media import PHOTO

# Left half red, right half blue, wider than high.
HALVES = np.zeros((40, 60, 3), dtype=np.uint8)
HALVES[:, :30, 0], HALVES[:, 30:, 2] = 230, 230


def saved(form: str, picture: Image.Image | None = None, **options) -> bytes:
    data = io.BytesIO()
    (picture or Image.fromarray(HALVES)).save(data, form, **options)
    return data.getvalue()


def heif() -> bytes:
    pillow_heif = pytest.importorskip("pillow_heif")
    data = io.BytesIO()
    pillow_heif.from_pillow(Image.fromarray(HALVES)).save(data, quality=90)
    return data.getvalue()


def huge_png(side: int) -> bytes:
    """A PNG of so many pixels in a few hundred kilobytes: rows of zeros, compressed."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    packer = zlib.compressobj(9)
    row = bytes(1 + side)
    body = b"".join(packer.compress(row * 1000) for _ in range(side // 1000)) + packer.flush()
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def animated(form: str) -> bytes:
    frames = [Image.fromarray(np.full((20, 20, 3), shade, np.uint8)) for shade in (0, 120, 240)]
    return saved(form, frames[0], save_all=True, append_images=frames[1:])


def turned() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6  # shown after a quarter turn to the right
    return saved("JPEG", Image.fromarray(np.rot90(HALVES)), exif=exif, quality=95)


GOOD = {
    "jpg": lambda: saved("JPEG", quality=95),
    "png": lambda: saved("PNG"),
    "webp": lambda: saved("WEBP", quality=95),
    "avif": lambda: saved("AVIF", quality=95),
    "tif": lambda: saved("TIFF"),
    "heic": heif,
    "CMYK": lambda: saved("JPEG", Image.fromarray(HALVES).convert("CMYK"), quality=95),
    "palette": lambda: saved("PNG", Image.fromarray(HALVES).convert("P")),
    "turned by EXIF": turned,
    "pages of a TIFF": lambda: saved("TIFF", save_all=True, append_images=[Image.new("RGB", (8, 8))]),
}


@pytest.mark.parametrize("name", GOOD)
def test_every_form_of_a_photo_shows_the_same(name):
    photo = decode_photo(GOOD[name]())
    assert photo.mode == "RGB" and photo.size == (60, 40)
    left, right = np.asarray(photo)[20, 8].astype(int), np.asarray(photo)[20, 52].astype(int)
    assert left[0] > 170 > 90 > left[2] and right[2] > 170 > 90 > right[0], name


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
def test_sixteen_bits_keep_their_range(form):
    ramp = np.tile(np.linspace(0, 65535, 64).astype(np.uint16), (16, 1))
    shown = np.asarray(decode_photo(saved(form, Image.fromarray(ramp))))[0, :, 0].astype(int)
    assert shown[0] == 0 and shown[-1] == 255 and abs(shown - np.linspace(0, 255, 64)).max() <= 1


def test_a_photo_of_one_pixel_is_a_plain_square_and_unknown(tmp_path):
    pixel = saved("PNG", Image.new("RGB", (1, 1), (90, 120, 60)))
    square = decode_square(pixel, imagenet_model().supply.main.backbone.preprocessing)
    assert square.shape == (260, 260, 3) and (square == (90, 120, 60)).all()
    (tmp_path / "pixel.png").write_bytes(pixel)
    assert fieldmark.identify(tmp_path / "pixel.png").verdict.known is False


BAD = {
    "20,000 x 20,000": (lambda: huge_png(20_000), "more pixels than can be decoded"),
    "12,000 x 12,000": (lambda: huge_png(12_000), "12,000 x 12,000 pixels, where at most 100 million"),
    "an animated GIF": (lambda: animated("GIF"), "an animation of 3 pictures"),
    "an animated WebP": (lambda: animated("WEBP"), "an animation of 3 pictures"),
    "a PDF": (lambda: b"%PDF-1.7\n%...", "a PDF"),
    "nothing": (lambda: b"", "an empty file"),
    "half a JPEG": (lambda: GOOD["jpg"]()[:400], "a truncated photo"),
    "fractions": (lambda: saved("TIFF", Image.fromarray(np.ones((9, 9), np.float32))), "fractional numbers"),
}


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("name", BAD)
def test_what_is_no_photo_is_refused_in_a_few_words(name):
    make, sentence = BAD[name]
    with pytest.raises(PhotoError, match=sentence) as refused:
        decode_photo(make(), at_least_px=64)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 200


def test_without_the_package_a_heic_photo_says_what_to_install(monkeypatch):
    data = heif()
    picture_files.register_heif.cache_clear()
    monkeypatch.setattr(picture_files, "find_spec", lambda name: None)
    with pytest.raises(PhotoError, match=r"a photo in HEIC, which can be read after pip install 'fieldmark\[media\]'"):
        decode_photo(data)
    picture_files.register_heif.cache_clear()


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model of folders whose photos come in every form."""
    root = tmp_path_factory.mktemp("forms")
    for part in ("train", "val", "test"):
        for label, turn in (("Rubra vera", 0), ("Azura vera", 180)):
            folder = root / "photos" / part / label
            folder.mkdir(parents=True)
            for ending in ("jpg", "png", "webp", "avif", "tif", "heic"):
                picture = Image.open(io.BytesIO(GOOD["png"]())).rotate(turn + 3)
                data = (
                    heif() if ending == "heic" else saved({"jpg": "JPEG", "tif": "TIFF"}.get(ending, ending), picture)
                )
                (folder / f"{part}-{turn}.{ending}").write_bytes(data)
    made = fieldmark.fit("folder", root / "photos", "centroid", out=root / "run", settings={"size": 32})
    return root, made


def test_fit_extraction_predict_and_identify_take_the_same_forms(fitted, run_main):
    root, _ = fitted
    assert set(PHOTO.suffixes) >= {".heic", ".heif", ".avif", ".tif", ".tiff", ".webp"} and not PHOTO.owns("a.gif")
    photos = sorted((root / "photos" / "test").glob("*/*"))
    assert len(photos) == 12
    predictions = load_model(root / "run").predict_photos(photos)
    assert len(predictions.items) == 12
    for ending in ("heic", "avif", "tif"):
        answer = fieldmark.identify(next(path for path in photos if path.suffix == f".{ending}"), root / "run")
        assert answer.names
    code, out, _ = run_main("predict", root / "run", root / "photos" / "test")
    assert code == 0 and ".heic" in out and ".avif" in out


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("name", ["12,000 x 12,000", "an animated GIF", "a PDF"])
def test_predict_identify_and_extraction_refuse_the_same_files_by_name(fitted, tmp_path, name):
    root, _ = fitted
    make, sentence = BAD[name]
    path = tmp_path / "photo.jpg"
    path.write_bytes(make())
    with pytest.raises(InputError, match=rf"photo\.jpg: found .*{sentence[-10:]}"):
        fieldmark.identify(path, root / "run")
    with pytest.raises(InputError, match=rf"photo\.jpg: found .*{sentence[-10:]}"):
        load_model(root / "run").predict_photos([path])
    with pytest.raises(InputError, match=rf"photo\.jpg: found .*{sentence[-10:]}"):
        fieldmark.identify(path)


@pytest.mark.parametrize("ending", [".pdf", ".gif", ".docx"])
def test_other_endings_are_refused_before_anything_is_read(tmp_path, ending):
    (tmp_path / f"file{ending}").write_bytes(b"%PDF-1.7")
    with pytest.raises(InputError, match=rf"found a file ending in \{ending}, expected one of \.jpg"):
        fieldmark.identify(tmp_path / f"file{ending}")
