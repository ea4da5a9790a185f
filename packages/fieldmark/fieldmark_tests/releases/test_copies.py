from __future__ import annotations

import io
import json
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

from fieldmark.fitting import fit
from fieldmark.releases import duplicates
from fieldmark.releases.checks import CHECKS
from fieldmark.releases.duplicates import candidate_pairs, near_pairs
from fieldmark.releases.picture_alignment import GrayPicture, are_copies
from fieldmark.releases.picture_patches import hashes_of
from fieldmark.storage.release import Release

PHOTOS = 4


def scene(seed: int, moved: int = 0) -> Image.Image:
    """A picture with detail at all scales, and an animal that may have moved on."""
    rng = np.random.default_rng(seed)
    layers = [
        np.asarray(Image.fromarray(rng.normal(0, 1, (3 * size, 4 * size))).resize((240, 180), Image.Resampling.BICUBIC))
        / size**0.7
        for size in (1, 2, 4, 8, 16, 32)
    ]
    gray = 120 + 40 * sum(layers)
    gray[80:120, 40 + moved : 100 + moved] = 30
    return Image.fromarray(np.clip(gray, 0, 255).astype(np.uint8)).convert("RGB")


def encoded(picture: Image.Image, quality: int = 92) -> bytes:
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=quality)
    return file.getvalue()


def cut(picture: Image.Image) -> Image.Image:
    """Four fifths of each side, from the lower right corner."""
    return picture.crop((48, 36, 240, 180))


COPIES = {
    "re-encoded": lambda one: encoded(one, 70),
    "resized": lambda one: encoded(one.resize((192, 144)), 92),
    "resized and re-encoded": lambda one: encoded(one.resize((192, 144)), 70),
    "brighter": lambda one: encoded(ImageEnhance.Brightness(one).enhance(1.3)),
    "mirrored": lambda one: encoded(ImageOps.mirror(one)),
    "turned": lambda one: encoded(one.transpose(Image.Transpose.ROTATE_90)),
    "cut": lambda one: encoded(cut(one)),
    "cut, mirrored, turned and re-encoded": lambda one: encoded(
        ImageOps.mirror(cut(one)).transpose(Image.Transpose.ROTATE_270), 70
    ),
}


@pytest.mark.parametrize("kind", COPIES)
def test_copies_in_test_are_found_with_all_their_pairs_and_are_an_error(tmp_path, kind):
    for part in ("train", "test"):
        (tmp_path / part / "Alba").mkdir(parents=True)
    for seed in range(PHOTOS):
        (tmp_path / "train" / "Alba" / f"{seed}.jpg").write_bytes(encoded(scene(seed)))
        (tmp_path / "test" / "Alba" / f"{seed}.jpg").write_bytes(COPIES[kind](scene(seed)))
        (tmp_path / "test" / "Alba" / f"other-{seed}.jpg").write_bytes(encoded(scene(100 + seed)))
    report = CHECKS["folder"](Release(tmp_path), near_duplicates=True)
    (problem,) = (one for one in report.problems if one.what == "photos in two splits look the same")
    assert not report.sound
    assert set(problem.places) == {f"train/Alba/{seed}.jpg and test/Alba/{seed}.jpg" for seed in range(PHOTOS)}


def test_photos_of_one_scene_in_which_something_moved_are_no_copies():
    for seed in range(4):
        first, second = (GrayPicture.of(encoded(scene(seed, moved))) for moved in (0, 60))
        assert not are_copies(first, second) and are_copies(first, GrayPicture.of(encoded(scene(seed), 60)))


def test_plain_pictures_are_copies_only_where_they_are_the_same():
    plain = [GrayPicture.of(encoded(Image.new("RGB", (200, 150), color))) for color in ((90, 90, 90), (120, 110, 100))]
    assert are_copies(plain[0], plain[0]) and not are_copies(*plain)


def test_a_square_has_one_hash_in_all_its_orientations():
    square = np.random.default_rng(0).normal(100, 30, (16, 16)).astype(np.float32)
    turned = [np.rot90(one, quarters) for one in (square, square[:, ::-1]) for quarters in range(4)]
    rows, codes, hashes = hashes_of(np.stack(turned))
    assert sorted(rows) == list(range(8)) and len(set(codes)) == 8 and len(set(hashes)) == 1


@pytest.mark.parametrize("bands", [(4, 1), (6, 2), (5, 2)])
def test_near_pairs_are_those_that_agree_in_bands_and_differ_in_few_bits(bands):
    rng = np.random.default_rng(1)
    base = rng.integers(0, 2**64, 4, dtype=np.uint64)
    flips = [sum(1 << int(bit) for bit in rng.choice(64, n, replace=False)) for n in rng.integers(0, 8, 40)]
    hashes = base[rng.integers(0, 4, 40)] ^ np.array(flips, dtype=np.uint64)
    edges = np.round(64 * np.arange(bands[0] + 1) / bands[0]).astype(int)

    def near(one: int, other: int) -> bool:
        bits = f"{one ^ other:064b}"[::-1]
        same = sum("1" not in bits[start:end] for start, end in pairwise(edges))
        return same >= bands[1] and bits.count("1") <= duplicates.MOST_BITS

    naive = [(i, j) for i in range(40) for j in range(i + 1, 40) if near(int(hashes[i]), int(hashes[j]))]
    assert len(naive) > 50
    assert [tuple(pair) for pair in near_pairs(hashes, bands=bands).tolist()] == naive


def test_what_is_compared_grows_no_faster_than_the_photos_even_where_all_share_a_patch(monkeypatch):
    compared = []
    count = np.bitwise_count
    monkeypatch.setattr(np, "bitwise_count", lambda bits: compared.append(len(bits)) or count(bits))
    for photos in (200, 800):
        compared.clear()
        hashes = np.zeros(photos, dtype=np.uint64)
        candidates = candidate_pairs(hashes, np.arange(photos), np.ones(photos, np.bool_), np.arange(photos))
        assert sum(compared) <= 4 * duplicates.MOST_COMPARED * photos
        assert len(candidates) <= 2 * duplicates.MOST_CANDIDATES * photos


@pytest.mark.parametrize(("hashes", "candidates"), [(1000, {2, 3, 4}), (duplicates.FEW_HASHES + 1, {3, 4})])
def test_among_many_hashes_photos_share_three_patches_or_the_whole_to_be_compared(hashes, candidates):
    drawn = np.random.default_rng(1).integers(0, 2**63, hashes).astype(np.uint64)
    photo, whole = np.arange(hashes) // 4, np.zeros(hashes, np.bool_)
    for number, shared in enumerate((1, 2, 3), start=1):  # photos 2, 4 and 6 share so many patches with the next
        first = 8 * number
        drawn[first + 4 : first + 4 + shared] = drawn[first : first + shared]
    drawn[36] = drawn[32]
    whole[[32, 36]] = True  # of photos 8 and 9
    found = candidate_pairs(drawn, photo, whole, np.arange(photo[-1] + 1))
    assert [(one, other) for one, other in found if one < 10] == [(2 * one, 2 * one + 1) for one in sorted(candidates)]


def test_the_plain_check_looks_at_how_every_file_begins_and_says_what_it_does_not_look_for(tmp_path, run_main):
    (tmp_path / "Alba").mkdir()
    for seed in range(3):
        (tmp_path / "Alba" / f"{seed}.jpg").write_bytes(encoded(scene(seed)))
    code, printed, _ = run_main("check", "folder", tmp_path)
    assert code == 0 and "no files missing or broken, no leaks" in printed
    assert "not checked: copies of photos that were scaled, cut, mirrored" in printed
    damaged = "not checked: photos that are damaged after their first bytes (--photos)"
    assert damaged not in printed and damaged in run_main("check", "folder", tmp_path, "--no-photos")[1]
    (tmp_path / "Alba" / "empty.jpg").touch()
    (tmp_path / "Alba" / "text.jpg").write_text("some text")
    code, printed, _ = run_main("check", "folder", tmp_path)
    assert code == 1
    assert "Alba/empty.jpg: an empty file" in printed and "Alba/text.jpg: 9 bytes that are not a photo" in printed


def test_many_pairs_are_all_in_the_json(tmp_path, run_main):
    for part in ("train", "test"):
        (tmp_path / part / "Alba").mkdir(parents=True)
    for number in range(22):
        color = Image.new("RGB", (32, 32), (10 * number, 99, 250 - 9 * number))
        for part, quality in (("train", 90), ("test", 90)):
            (tmp_path / part / "Alba" / f"{number}.jpg").write_bytes(encoded(color, quality))
    code, printed, _ = run_main("check", "folder", tmp_path)
    assert code == 1 and "the same photo is in two parts (22)" in printed
    assert "and 2 more; --json lists all of them" in printed
    code, printed, _ = run_main("check", "folder", tmp_path, "--json")
    problem = json.loads(printed)["problems"][0]
    assert code == 1 and problem["times"] == len(problem["places"]) == 22


def test_fit_says_that_photos_of_test_are_copies_and_how_to_list_them(tmp_path):
    data = tmp_path / "photos"
    for number, name in enumerate(("Alba", "Rubra")):
        for part, seeds in (("train", range(4)), ("val", range(10, 12)), ("test", range(20, 23))):
            (data / part / name).mkdir(parents=True)
            for seed in seeds:
                (data / part / name / f"{seed}.jpg").write_bytes(encoded(scene(50 * number + seed)))
        mirrored = encoded(ImageOps.mirror(scene(50 * number)).resize((192, 144)), 70)
        (data / "test" / name / "copy.jpg").write_bytes(mirrored)
    settings = {"size": 64}
    result = fit("folder", data, "centroid", tmp_path / "out", settings=settings, store=tmp_path / "store")
    (remark,) = (one for one in result.run.remarks if "look like" in one)
    assert "2 of 8 photos of test look like photos of parts before it" in remark
    assert f"fieldmark check folder {data} --near-duplicates" in remark
    again = fit("folder", data, "centroid", tmp_path / "again", settings=settings, store=tmp_path / "store")
    assert remark in again.run.remarks  # by what is stored
    for block in (tmp_path / "store").rglob("*.looks.npy"):
        block.unlink()  # as an earlier version stored them
    third = fit("folder", data, "centroid", tmp_path / "third", settings=settings, store=tmp_path / "store")
    assert any(one.startswith("Photos that look the same were not sought") for one in third.run.remarks)
