"""Grids of studies: what is done is kept whole, and read again."""

from __future__ import annotations

import numpy as np
import pytest

grids = pytest.importorskip("studies.evidence.grids")


def test_a_study_goes_on_where_it_was_interrupted(tmp_path, monkeypatch):
    monkeypatch.setattr(grids, "KEPT", tmp_path)
    made = []

    def make(number: int) -> dict[str, object]:
        if number == 2 and len(made) == 2:
            raise KeyboardInterrupt
        made.append(number)
        return {"rows": np.arange(number)}

    tasks = {f"fold, {number}": number for number in range(3)}
    with pytest.raises(KeyboardInterrupt):
        grids.kept_arrays("study", tasks, make)
    made.append(9)
    found = grids.kept_arrays("study", tasks, make)
    assert made == [0, 1, 9, 2] and [len(one["rows"]) for one in found.values()] == [0, 1, 2]
    assert sorted(path.name for path in (tmp_path / "study").iterdir()) == ["fold-0.npz", "fold-1.npz", "fold-2.npz"]
    assert grids.kept_data("plain", {"one": 1}, lambda one: {"twice": 2 * one}) == {"one": {"twice": 2}}
