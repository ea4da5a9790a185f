from __future__ import annotations

import polars as pl

from fieldmark.releases import open_dataset
from fieldmark.releases.identical import identical_files, observations_together
from fieldmark.storage.release import Release


def test_only_whole_copies_count_and_files_that_are_not_there_are_passed_over(tmp_path):
    big = bytes(range(256)) * 64
    contents = {"a": big, "b": big, "c": b"x" + big[1:], "d": big[:-1] + b"x", "e": b"", "f": b"", "g": big[:-1]}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    paths = [*contents, "link", "missing", "no/folder"]
    assert identical_files(Release(tmp_path), paths) == [["a", "b", "link"]]


def test_groups_come_in_the_order_of_the_first_path_of_their_size_then_of_their_end_then_of_their_own(tmp_path):
    contents = [
        b"22",
        b"333",
        b"44" + bytes(5000),
        b"333",
        b"x2",
        b"22",
        b"55" + bytes(5000),
        b"x2",
        b"55" + bytes(5000),
    ]
    contents += [b"44" + bytes(5000), b"333", b"444", b"55" + bytes(4999) + b"1", b"444", b"x2"]
    paths = [f"folder {number % 4}/{number}" if number % 3 else str(number) for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    numbers = [[0, 5], [4, 7, 14], [1, 3, 10], [11, 13], [2, 9], [6, 8]]
    expected = [[paths[number] for number in group] for group in numbers]
    assert identical_files(Release(tmp_path), [*paths, paths[0], paths[12]]) == expected
    assert identical_files(Release(tmp_path), pl.Series(paths)) == expected
    assert identical_files(Release(tmp_path), []) == []


def test_observations_are_together_over_a_third_one(make_release):
    root = make_release(flat=True)
    folder = root / "Alba alba"
    one, two = (folder / "0-0.jpg").read_bytes(), (folder / "0-1.jpg").read_bytes()
    (folder / "0-5.jpg").write_bytes(one)
    (folder / "0-6.jpg").write_bytes(two)
    (folder / "0-7.jpg").write_bytes(two)
    rows = ["Alba alba/0-5.jpg,z", "Alba alba/0-6.jpg,z", "Alba alba/0-7.jpg,y"]
    (root / "observations.csv").write_text("\n".join(["file,observation", *rows, ""]))
    dataset = open_dataset("folder", root)
    found = observations_together(dataset, dataset.observations["observation_id"])
    assert found == dict.fromkeys(("0-0.jpg", "0-1.jpg", "y", "z"), "0-0.jpg")
    assert observations_together(dataset, ["0-2.jpg", "0-3.jpg"]) == {}
