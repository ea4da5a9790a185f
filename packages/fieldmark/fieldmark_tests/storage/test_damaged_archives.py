"""Releases in archives that are damaged."""

from __future__ import annotations

import random
import zipfile
from collections import Counter

import pytest

from fieldmark.errors import InputError
from fieldmark.storage.release import Release
from fieldmark.storage.remote_files import PIECE_BYTES


def read_all(path) -> None:
    release = Release(path, single_file=True)
    for name in release.files():
        release.read(name)
        with release.open(name) as file:
            file.read()


def damaged(data: bytes, seed: int) -> bytes:
    """Bytes flipped, cut off or taken out."""
    rng, changed = random.Random(seed), bytearray(data)
    place = rng.randrange(len(changed))
    if seed % 3 == 0:
        for _ in range(rng.randint(1, 40)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    elif seed % 3 == 1:
        del changed[place:]
    else:
        del changed[place : place + rng.randint(1, 300)]
    return bytes(changed)


def test_a_damaged_zip_is_read_or_refused_in_a_sentence(tmp_path):
    rng = random.Random(0)
    with zipfile.ZipFile(tmp_path / "whole.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(20):
            text = "".join(f"{rng.random()},a\n" for _ in range(20))
            archive.writestr(f"table{number}.csv", text)
    whole, ends = (tmp_path / "whole.zip").read_bytes(), Counter()
    read_all(tmp_path / "whole.zip")
    for seed in range(150):
        path = tmp_path / f"{seed}.zip"
        path.write_bytes(damaged(whole, seed))
        try:
            read_all(path)
        except InputError as error:
            assert str(error).startswith(str(path)) and "cut short?" in str(error)
            ends["in a file" if "cannot be unpacked" in str(error) else "no zip"] += 1
    assert ends["in a file"] > 20 and ends["no zip"] > 20


def test_a_long_file_of_a_zip_is_refused_where_it_breaks_off(tmp_path):
    data = random.Random(0).randbytes(PIECE_BYTES + 100)
    with zipfile.ZipFile(tmp_path / "long.zip", "w") as archive:
        archive.writestr("long.bin", data)
    with Release(tmp_path / "long.zip", single_file=True).open("long.bin") as file:
        file.seek(PIECE_BYTES)
        assert file.read() == data[PIECE_BYTES:]
    changed = bytearray((tmp_path / "long.zip").read_bytes())
    changed[PIECE_BYTES // 2] ^= 255
    (tmp_path / "long.zip").write_bytes(changed)
    expected = r"long.zip/long.bin: found something that cannot be unpacked \(Bad CRC-32"
    file = Release(tmp_path / "long.zip", single_file=True).open("long.bin")
    with file, pytest.raises(InputError, match=expected):
        file.read()
