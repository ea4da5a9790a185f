"""The picture of few photos per class."""

from __future__ import annotations

import numpy as np
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from fieldmark.reports.charts.shots import plot_shots


def test_intervals_of_methods_stand_side_by_side_and_every_line_is_named(tmp_path, monkeypatch):
    kept: list[Figure] = []
    save = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda self, *args, **kwargs: (kept.append(self), save(self, *args, **kwargs))
    )
    spread = {"top_1": {"mean": 0.5, "draws": (0.4, 0.6)}}
    rows = [{"name": name, "sees": "item", "shots": {"1": spread, "2": spread}} for name in ("knn", "ridge", "lda")]
    plot_shots({"benchmark": "b", "draws": 3, "shots": [1, 2], "rows": rows}, tmp_path / "shots.png")
    axes = kept[0].axes[0]
    bars = [one for one in axes.containers if isinstance(one, ErrorbarContainer)]
    places = np.array([one.lines[0].get_xdata() for one in bars], dtype=float)
    assert len(bars) == 3 and (np.diff(places, axis=0) > 0).all()
    assert np.allclose(places[1], [1, 2]) and (np.abs(np.log2(places / [1, 2])) < 0.25).all()
    assert [one.get_text() for one in axes.texts] == ["knn", "lda", "ridge"]
