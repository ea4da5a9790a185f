from __future__ import annotations

import pickle

import polars as pl

from fieldmark.tables.text_columns import NameColumn, column_of, fixed

NAMES = ("b", "a", "b")


def held() -> NameColumn:
    return NameColumn(pl.Series("unit", NAMES))


def test_names_in_a_column_are_the_tuple_of_them():
    names = held()
    assert names == NAMES and tuple(NAMES) == names
    assert names == held() and names != NameColumn(pl.Series(["b", "a"])) and names != NAMES[:2]
    assert len({names, NAMES, held()}) == 1 and pickle.loads(pickle.dumps(names)) == NAMES
    assert (len(names), list(names), names[-1], names[1:], "c" in names) == (3, list(NAMES), "b", ("a", "b"), False)
    assert repr(names) == repr(NAMES)


def test_no_string_is_made_as_long_as_none_is_looked_at():
    names = held()
    assert len(names) == 3 and names == held() and fixed(names) is names
    assert column_of(names, "id").to_list() == [*NAMES] and column_of(names, "id").name == "id"
    assert "_strings" not in vars(names)
    assert names[0] == "b" and "_strings" in vars(names)


def test_other_names_become_a_tuple_or_a_column_of_text():
    assert fixed(iter(NAMES)) == NAMES
    assert column_of((), "id").dtype == pl.String and column_of(NAMES).to_list() == [*NAMES]
