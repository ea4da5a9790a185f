"""Tables of suites with many models, for what depends on their size."""

from __future__ import annotations

import numpy as np

from fieldmark.scoring import Score
from fieldmark.suites.ranking import ModelRow, ModelStanding, SuiteTable

KINGDOMS = ("Animalia", "Fungi", "Plantae")
HEADS = 5


def large_table(models: int, cells: int) -> SuiteTable:
    """A table of drawn scores, all models complete, five heads on each backbone."""
    generator = np.random.default_rng(0)
    names = tuple(f"cell-{number}" for number in range(cells))
    values = generator.uniform(0.2, 0.9, (models, cells))
    speeds = generator.uniform(0.05, 2, models)
    rows = []
    for place, number in enumerate(np.argsort(-values.mean(axis=1))):
        mean = float(values[number].mean())
        ranks = max(1, place - 20), min(models, place + 20)
        rows.append(
            ModelRow(
                model=f"network_of_many_layers_{number // HEADS} head_{number % HEADS}",
                scores={name: _around(float(value), 0.03) for name, value in zip(names, values[number], strict=True)},
                standing=ModelStanding(_around(mean, 0.01), place + 1.0, (1, models), ranks, 1 + place // 40),
                cost={"parameters": 5e6, "features": 1280.0, "relative_speed": float(speeds[number]),
                      "photos_per_second": 50 * float(speeds[number]), "memory_mib": 100.0, "seconds": 200.0},
                external_data=("ImageNet, by the weights",),
                license="Apache-2.0",
                seen=frozenset(names[:5]),
            )
        )  # fmt: skip
    return SuiteTable(
        suite="photos",
        version="1",
        cells=names,
        ranked=names,
        kingdoms={name: KINGDOMS[number % 3] for number, name in enumerate(names)},
        questions=dict.fromkeys(names, "photos, one label"),
        titles=dict.fromkeys(names, "Macro-F1, all"),
        units=dict.fromkeys(names, 500),
        rows=tuple(rows),
        independent=500 * cells,
        simulated=True,
    )


def _around(value: float, half: float) -> Score:
    return Score(value, value - half, value + half, "t over units")
