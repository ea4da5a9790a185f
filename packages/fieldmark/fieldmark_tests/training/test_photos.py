import io

import numpy as np
import pytest
import torch
from PIL import Image

from fieldmark.errors import InputError
from fieldmark.features.crops import Box, PhotoBoxes
from fieldmark.features.photos import PhotoError
from fieldmark.training import packs
from fieldmark.training.boxes import Crops, middle_boxes, random_boxes, resample
from fieldmark.training.draws import Draws, example_seeds
from fieldmark.training.packs import UnpackedPhotos, decode_squashed, open_pack
from fieldmark.training.photos import PhotoSource, PhotoTransform, pack_side
from fieldmark.training.randaugment import OPERATIONS, apply_operations

DRAWS = Draws(example_seeds(0, 0, np.arange(4000)))


def photo(color, size=(60, 40), form="PNG"):
    picture = Image.new("RGB", size, color)
    picture.putpixel((0, 0), (255, 255, 255))
    data = io.BytesIO()
    picture.save(data, form)
    return data.getvalue()


PHOTOS = {f"p{n}": photo((n * 20, 100, 200 - n * 20)) for n in range(8)}


@pytest.mark.parametrize("form", ["raw", "jpeg"])
def test_a_pack_holds_what_decoding_gives(tmp_path, form):
    pack = open_pack(list(PHOTOS), PHOTOS.__getitem__, 32, form, tmp_path)
    squares, aspects = pack.squares(np.array([5, 0]))
    np.testing.assert_allclose(aspects, 1.5)
    for square, name in zip(squares, ["p5", "p0"], strict=True):
        expected = decode_squashed(PHOTOS[name], 32)[0]
        assert np.abs(square.astype(int) - expected).mean() <= (0 if form == "raw" else 2)


def test_a_pack_is_made_once_and_again_when_a_photo_was_replaced(tmp_path, monkeypatch):
    photos = dict(PHOTOS)
    first = open_pack(list(photos), photos.__getitem__, 32, "raw", tmp_path)
    written = (first.folder / "pixels.bin").stat().st_mtime_ns
    open_pack(list(photos), photos.__getitem__, 32, "raw", tmp_path)
    assert (first.folder / "pixels.bin").stat().st_mtime_ns == written
    photos["p3"] = photo((255, 0, 0))
    again = open_pack(list(photos), photos.__getitem__, 32, "raw", tmp_path)
    assert again.squares(np.array([3]))[0][0, 16, 16].tolist() == [255, 0, 0]


def test_boxes_make_a_pack_of_their_own_and_whole_photos_keep_theirs(tmp_path):
    boxes = PhotoBoxes("boxes", {"p2": Box(0.0, 0.0, 1 / 60, 1 / 40)}, len(PHOTOS))  # the white pixel in the corner
    whole = open_pack(list(PHOTOS), PHOTOS.__getitem__, 32, "raw", tmp_path)
    cropped = open_pack(list(PHOTOS), PHOTOS.__getitem__, 32, "raw", tmp_path, boxes)
    unpacked = UnpackedPhotos(list(PHOTOS), PHOTOS.__getitem__, 32, boxes)
    assert cropped.folder != whole.folder
    for photos in (cropped, unpacked):
        squares, aspects = photos.squares(np.arange(len(PHOTOS)))
        assert (squares[2] == 255).all() and aspects[2] == 1
        assert (np.delete(squares, 2, axis=0) == np.delete(whole.squares(np.arange(len(PHOTOS)))[0], 2, axis=0)).all()
    again = open_pack(list(PHOTOS), PHOTOS.__getitem__, 32, "raw", tmp_path, PhotoBoxes("boxes", {}, len(PHOTOS)))
    assert again.folder == whole.folder


def test_packs_that_were_made_before_there_were_boxes_are_found(tmp_path):
    photos = {"a.jpg": PHOTOS["p0"], "b.jpg": PHOTOS["p1"]}
    pack = open_pack(list(photos), photos.__getitem__, 32, "raw", tmp_path)
    assert pack.folder.name == "cd93c1d6c84dc54e4e90de8d40e473d1"


def test_a_photo_that_was_mended_is_read_again(tmp_path):
    photos = {f"p{n}": photo((n, 100, 100), (8, 8)) for n in range(120)}  # more than are watched
    photos["p50"] = b""
    assert list(open_pack(list(photos), photos.__getitem__, 16, "raw", tmp_path).find_problems()) == ["p50"]
    photos["p50"] = PHOTOS["p0"]
    assert not open_pack(list(photos), photos.__getitem__, 16, "raw", tmp_path).find_problems()


@pytest.mark.parametrize("form", ["raw", "jpeg", "none"])
def test_photos_that_cannot_be_read_are_counted_and_named(tmp_path, form):
    photos = PHOTOS | {"cut": PHOTOS["p0"][:60], "empty": b"", "text": b"not a photo"}
    if form == "none":
        pack = UnpackedPhotos(list(photos), photos.__getitem__, 32)
        with pytest.raises(PhotoError):
            pack.squares(np.array([8]))
    else:
        pack = open_pack(list(photos), photos.__getitem__, 32, form, tmp_path)
        assert (pack.aspects[8:] == 0).all()
    problems = pack.find_problems()
    assert list(problems) == ["cut", "empty", "text"]
    assert "truncated" in problems["cut"] or "broken" in problems["cut"]


def test_a_disk_without_room_is_noticed_before_the_work(tmp_path, monkeypatch):
    class Full:
        free = 10

    monkeypatch.setattr(packs.shutil, "disk_usage", lambda path: Full)
    with pytest.raises(InputError, match=r"GB free.*FIELDMARK_CACHE"):
        open_pack(list(PHOTOS), PHOTOS.__getitem__, 32, "raw", tmp_path)
    assert not any(tmp_path.iterdir())


def test_a_large_photo_is_decoded_at_the_scale_that_is_needed():
    data = io.BytesIO()
    Image.effect_noise((1600, 1200), 60).convert("RGB").save(data, "JPEG")
    square, aspect = decode_squashed(data.getvalue(), 256)
    assert square.shape == (256, 256, 3) and aspect == pytest.approx(4 / 3)


@pytest.mark.parametrize("aspect", [0.4, 1.0, 1.5, 3.0])
def test_random_crops_follow_the_rule_of_torchvision(aspect):
    from torchvision.transforms.v2 import RandomResizedCrop

    boxes = random_boxes(np.full(4000, aspect, dtype=np.float32), 0.3, False, DRAWS)
    assert boxes.min() >= -1e-6 and boxes.max() <= 1 + 1e-6
    height = 1000
    torch.manual_seed(0)
    rule = RandomResizedCrop(8, scale=(0.3, 1.0))
    peers = [rule.make_params([torch.empty(3, height, int(height * aspect))]) for _ in range(3000)]
    ours = {
        "width": boxes[:, 2] - boxes[:, 0],
        "height": boxes[:, 3] - boxes[:, 1],
        "left": boxes[:, 0],
        "top": boxes[:, 1],
    }
    side = {"width": height * aspect, "height": height, "left": height * aspect, "top": height}
    for name, values in ours.items():
        theirs = np.array([peer[name] for peer in peers]) / side[name]
        for moment in (np.mean, np.std):
            assert moment(values) == pytest.approx(moment(theirs), abs=0.02), (name, moment)


def test_resampling_the_whole_square_changes_nothing_and_a_mirrored_box_mirrors():
    squares = torch.randint(0, 256, (2, 3, 16, 16), dtype=torch.uint8)
    whole = torch.tensor([[0.0, 0, 1, 1], [1.0, 0, 0, 1]])
    same, mirrored = resample(squares, whole, 16)
    torch.testing.assert_close(same, squares[0].float(), atol=1e-3, rtol=0)
    torch.testing.assert_close(mirrored, squares[1].flip(-1).float(), atol=1e-3, rtol=0)


def test_the_center_crop_is_a_square_of_the_photo_itself():
    boxes = Crops("center").boxes(np.array([2.0, 0.5, 1.0], dtype=np.float32), None)
    np.testing.assert_allclose(boxes, [[0.25, 0, 0.75, 1], [0, 0.25, 1, 0.75], [0, 0, 1, 1]])


def test_a_share_of_what_evaluation_shows_lies_in_its_middle_or_where_it_is_placed():
    aspects = np.array([2.0, 0.5], dtype=np.float32)
    boxes = Crops("center", eval_share=0.5).boxes(aspects, None)
    np.testing.assert_allclose(boxes, [[0.375, 0.25, 0.625, 0.75], [0.25, 0.375, 0.75, 0.625]])
    np.testing.assert_allclose(Crops("squash", eval_share=0.5).boxes(aspects, None), [[0.25, 0.25, 0.75, 0.75]] * 2)
    np.testing.assert_allclose(middle_boxes(aspects, "squash", 0.5, (1.0, 0.0)), [[0.5, 0, 1, 0.5]] * 2)


def test_a_square_cut_out_of_a_packed_photo_is_not_enlarged():
    for eval_crop, share, aspect in (("squash", 1.0, 3.0), ("center", 1.0, 4 / 3), ("center", 0.875, 4 / 3)):
        (left, top, right, bottom), *_ = Crops(eval_crop, eval_share=share).boxes(np.array([aspect], np.float32), None)
        side = pack_side(224, eval_crop, share)
        assert min(side * (right - left), side * (bottom - top)) >= 224 - 1


def test_evaluation_shows_the_same_pixels_each_time_and_training_does_not():
    photos = UnpackedPhotos(list(PHOTOS), PHOTOS.__getitem__, 40)
    source = PhotoSource(photos, np.arange(8), np.zeros(8, dtype=np.int32), None, Crops("squash", 0.5, True))
    transform = PhotoTransform(32, (0.5,) * 3, (0.5,) * 3, randaugment_ops=2, randaugment_magnitude=20)

    def inputs(draws):
        return transform([torch.from_numpy(array) for array in source.read(np.arange(8), draws)], draws)

    torch.testing.assert_close(inputs(None), inputs(None))
    first, second = (Draws(example_seeds(0, epoch, np.arange(8))) for epoch in (0, 1))
    torch.testing.assert_close(inputs(first), inputs(first))
    assert not torch.allclose(inputs(first), inputs(second))
    assert inputs(None).min() >= -1.01 and inputs(None).max() <= 1.01


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_operations_are_those_of_torchvision(name, sign):
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms.v2 import RandAugment

    peer = RandAugment(interpolation=InterpolationMode.NEAREST)
    theirs = {"identity": "Identity", "autocontrast": "AutoContrast", "color": "Color"}.get(
        name, "".join(part.capitalize() for part in name.split("-"))
    )
    magnitudes, _ = peer._AUGMENTATION_SPACE[theirs]
    strengths = magnitudes(31, 33, 33)
    magnitude = 0.0 if strengths is None else float(strengths[20])
    signed = sign if name in (*OPERATIONS[1:6], "brightness", "color", "contrast", "sharpness") else 1.0
    rng = np.random.default_rng(0)
    smooth = Image.fromarray(rng.integers(0, 256, (9, 9, 3), dtype=np.uint8)).resize((33, 33), Image.Resampling.BICUBIC)
    picture = torch.from_numpy(np.array(smooth)).permute(2, 0, 1)
    expected = peer._apply_image_or_video_transform(
        picture, theirs, signed * magnitude, interpolation=InterpolationMode.NEAREST, fill={}
    )
    number = np.array([OPERATIONS.index(name), 0])
    found = apply_operations(torch.stack([picture, picture]), number, np.array([sign, sign]), 20)
    assert (found[1] == picture).all()  # the neighbor is left alone
    # Where a pixel comes from is rounded: a few of them may come from the one beside.
    assert ((found[0].int() - expected.int()).abs() > 1).float().mean() < 0.06


def test_every_photo_of_a_batch_gets_its_own_operation():
    rng = np.random.default_rng(0)
    pixels = torch.from_numpy(rng.integers(0, 256, (60, 3, 12, 12), dtype=np.uint8))
    chosen, signs = rng.integers(0, len(OPERATIONS), 60), rng.choice([-1.0, 1.0], 60)
    alone = [apply_operations(pixels[i : i + 1], chosen[i : i + 1], signs[i : i + 1], 20) for i in range(60)]
    torch.testing.assert_close(apply_operations(pixels, chosen, signs, 20), torch.cat(alone))
