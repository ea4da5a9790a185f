"""Random cases of the benchmarks in which a line answers one label of an item: plants, places and birds."""

from __future__ import annotations

from random import Random

from fieldmark_tests.oracles.drawing import (
    classes_table,
    draw_grid_score,
    draw_items,
    draw_labels,
    draw_truth,
    truth_table,
)
from fieldmark_tests.oracles.tables import Case, Row, Table

PLANTS = ("ObservationId", "ClassId", "Probability", "Rank")
PLACES = ("observation_id", "species_id", "score")
BIRDS = ("MediaId", "TC1-TC2", "ClassId", "Probability")


def draw_plants(rng: Random) -> Case:
    """A case of PlantCLEF: equal probabilities that the ranks decide, short lists, observations without a line."""
    labels = draw_labels(rng, rng.randint(2, 12))
    items = draw_items(rng, rng.randint(5, 40))
    true = draw_truth(rng, items, labels, unknown=False)
    silent, steps = rng.choice((0.0, 0.2)), rng.choice((2, 10, 1000))
    rows: list[Row] = []
    for item in items:
        if rows and rng.random() < silent:
            continue
        listed = rng.sample(labels, rng.randint(1, len(labels)))
        scores = [rng.randint(0, steps) / steps for _ in listed]
        ranks = list(range(1, len(listed) + 1))
        if rng.random() < 0.7:
            scores.sort(reverse=True)
        else:
            rng.shuffle(ranks)
        rows += [(item, *fields) for fields in zip(listed, map(repr, scores), map(str, ranks), strict=True)]
    rng.shuffle(rows)
    classes = classes_table(rng, labels, flag=rng.choice(("", "rare"))) if rng.random() < 0.8 else None
    return Case("plantclef-2020", Table(PLANTS, tuple(rows), ";"), truth_table(rng, items, true), classes)


def draw_places(rng: Random, *, ties: bool = True) -> Case:
    """A case of GeoLifeCLEF in either format; lists around 30 labels, so that the threshold cuts some of them.

    Args:
        rng: What it is drawn with.
        ties: Whether two labels may have the same score.
    """
    labels = draw_labels(rng, rng.choice((12, 35, 50)))
    items = draw_items(rng, rng.randint(3, 8))
    true = draw_truth(rng, items, labels, unknown=False)
    classes = classes_table(rng, labels) if rng.random() < 0.8 else None
    truth = truth_table(rng, items, true)
    if rng.random() < 0.2:
        at_most = min(30, len(labels))
        lists = [(item, " ".join(rng.sample(labels, rng.randint(1, at_most)))) for item in items]
        return Case("geolifeclef-2020", Table(("Id", "Predicted"), tuple(lists)), truth, classes)
    steps = rng.choice((4, 64, 1024)) if ties else 1 << 22
    rows: list[Row] = []
    for item in items:
        n_listed = rng.choice((0, 5, len(labels) * 3 // 4, len(labels), len(labels), len(labels)))
        listed = rng.sample(labels, n_listed if rows else max(n_listed, 1))
        rows += [(item, label, repr(8 * draw_grid_score(rng, steps) - 4)) for label in listed]
    rng.shuffle(rows)
    return Case("geolifeclef-2020", Table(PLACES, tuple(rows), ";"), truth, classes)


def clock(seconds: int) -> str:
    """Seconds as `hh:mm:ss`."""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def draw_birds(rng: Random, *, scores: tuple[float, ...] = ()) -> Case:
    """A case of BirdCLEF: events across boundaries, silent recordings, segments without a line, many equal scores.

    Args:
        rng: What it is drawn with.
        scores: The scores to draw from; by default fractions.
    """
    labels = draw_labels(rng, rng.randint(3, 10))
    heard = rng.sample(labels, rng.randint(1, len(labels)))
    seconds = {f"PER{number}_20190116": rng.randint(3, 40) for number in range(rng.randint(1, 4))}
    steps = rng.choice((8, 64, 1024))
    truth: list[Row] = []
    run: list[Row] = []
    for name, length in seconds.items():
        for _ in range(rng.choice((0, 2, 6)) if truth else 3):
            start = rng.randrange(length)
            end = rng.randint(start + 1, min(length, start + 12))
            label = rng.choice(heard) if not truth or rng.random() < 0.9 else "????"
            truth.append((name, label, f"{clock(start)}-{clock(end)}"))
        for start in range(0, length, 5):
            listed = rng.sample(labels, rng.randint(0 if run else 1, min(len(labels), 10)))
            values = [rng.choice(scores) if scores else draw_grid_score(rng, steps) for _ in listed]
            interval = f"{clock(start)}-{clock(start + 5)}"
            run += [(name, interval, label, repr(value)) for label, value in zip(listed, values, strict=True)]
    rng.shuffle(run)
    columns: dict[str, list[str]] = {"MediaId": list(seconds), "seconds": [str(length) for length in seconds.values()]}
    if rng.random() < 0.7:
        columns["site"] = [rng.choice(("PER", "HSN")) for _ in seconds]
    return Case(
        "birdclef-2020",
        Table(BIRDS, tuple(run), ";", header=False),
        Table(("MediaId", "ClassId", "interval"), tuple(truth), ";", header=False),
        classes_table(rng, labels) if rng.random() < 0.8 else None,
        Table(tuple(columns), tuple(zip(*columns.values(), strict=True))),
    )
