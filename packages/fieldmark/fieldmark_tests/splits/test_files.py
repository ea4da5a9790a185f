from __future__ import annotations

import polars as pl
import pytest

from fieldmark.errors import InputError
from fieldmark.splits.files import Split, read_split

ROWS = pl.DataFrame(
    {"media_id": ["a.jpg", "b.jpg", "c.jpg"], "observation_id": ["1", "1", "2"], "path": ["x", "y", "z"]}
)


def split(**pairs: str) -> Split:
    return Split(pl.DataFrame({"id": list(pairs), "part": list(pairs.values())}), {"seed": 3})


def test_a_split_is_read_as_it_was_written_and_its_digest_does_not_know_the_order_of_lines(tmp_path):
    written = split(a="train", b="test")
    written.write(tmp_path / "split.csv")
    again = read_split(tmp_path / "split.csv")
    assert again.table.equals(written.table) and again.digest == written.digest and again.about["seed"] == 3
    (tmp_path / "other.csv").write_text("part,id\ntest,b\ntrain,a\n")
    assert read_split(tmp_path / "other.csv").digest == written.digest
    assert split(a="test", b="train").digest != written.digest


def test_a_split_that_was_changed_since_it_was_drawn_is_refused(tmp_path):
    split(a="train", b="test").write(tmp_path / "split.csv")
    (tmp_path / "split.csv").write_text("id,part\na,train\nb,train\n")
    with pytest.raises(InputError, match="It was changed since"):
        read_split(tmp_path / "split.csv")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("id,part\na,trian\n", "line 2: found the part 'trian', .* Did you mean train"),
        ("id,part\na,fold-1\n", "Folds are no parts"),
        ("id,part\na,train\na,test\n", "line 3: found the id 'a' again"),
        ("id,part\na,\n", "line 2: found no part"),
        ("id,part\n", "a header and no row"),
        ("name,part\na,train\n", "expected a column 'id'"),
    ],
)
def test_a_split_that_cannot_be_is_refused_with_its_line(tmp_path, text, sentence):
    (tmp_path / "split.csv").write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_split(tmp_path / "split.csv")


@pytest.mark.parametrize(
    "ids", [("a.jpg", "b.jpg", "c.jpg"), ("x", "y", "z"), ("1", "2")], ids=["media", "paths", "observations"]
)
def test_rows_are_named_by_medium_path_or_observation(ids):
    table = pl.DataFrame({"id": ids, "part": ["train", "train", "test"][-len(ids) :]})
    members = Split(table).cut(ROWS).members
    assert members["train"].to_list() == [True, True, False] and members["test"].to_list() == [False, False, True]


def test_ids_that_do_not_exist_and_rows_that_are_missing_are_refused():
    with pytest.raises(InputError, match=r"line 3: found 'q.jpg', expected the media_id of a row of the release"):
        split(**{"a.jpg": "train", "q.jpg": "test"}).cut(ROWS)
    with pytest.raises(InputError, match=r"no line for 1 of 3 \(media_id 'c.jpg'\).*left out on purpose as unused"):
        split(**{"a.jpg": "train", "b.jpg": "test"}).cut(ROWS)
    members = split(**{"a.jpg": "train", "b.jpg": "test", "c.jpg": "unused"}).cut(ROWS).members
    assert not any(member[2] for member in members.values())
