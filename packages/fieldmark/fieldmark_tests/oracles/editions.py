"""Random cases of the later editions, with what files of people contain: blank ranks, silence beside birds, odd ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from fieldmark_tests.oracles.edition_programs import NEW, PROGRAMS, RANKS
from fieldmark_tests.oracles.tables import UNKNOWN, Case, Row, Table

NUMBERS = ("{}", "{:03d}", "{}.0", "photo {}.jpg", "ø-{}", "1e{}")
# Scores as far from 1 as doubles hold, and near it.
SCALES = (1.0, 1e300, 1e-300)


def odd_ids(rng: Random, n: int) -> list[str]:
    """Ids that are text, though some look like numbers: 007, 7.0, 1e3."""
    form = rng.choice(NUMBERS)
    return [form.format(number) for number in rng.sample(range(10 * n), n)]


def units_of(rng: Random, items: Sequence[str]) -> list[str]:
    """A unit for each of the items, several in one."""
    return [f"unit-{rng.randrange(max(len(items) // 2, 1))}" for _ in items]


def one_each(labels: Sequence[str]) -> Table:
    """The table of classes."""
    return Table(("label",), tuple((label,) for label in labels))


def draw_lists(benchmark: str, rng: Random) -> Case:
    """Lists of labels, some empty, some with `nocall` beside birds; plots of 2024 may come without transects."""
    birds, plots = benchmark.startswith("birdclef"), benchmark.startswith("plantclef")
    labels = [str(number) for number in rng.sample(range(100), rng.randint(3, 8))]
    units = odd_ids(rng, rng.randint(2, 5))
    items = [(f"{unit}_{5 * number}", unit) for unit in units for number in range(1, rng.randint(2, 6))]
    rows: list[Row] = []
    lines: list[Row] = []
    for item, unit in items:
        true = set(rng.sample(labels, rng.randint(0 if birds else 1, 3)))
        answered = set(rng.sample(sorted(true), rng.randint(0, len(true)))) | set(rng.sample(labels, rng.randint(0, 2)))
        if birds:
            true |= {"nocall"} if not true and rng.random() < 0.5 else set()
            answered |= {"nocall"} if rng.random() < 0.4 else set()
        rows += [(item, name, unit) for name in sorted(true) or [""]]
        names = sorted(answered, key=lambda _: rng.random())
        lines.append((item, f"[{', '.join(names)}]" if plots else " ".join(names)))
    rng.shuffle(lines)
    columns = {"birdclef": ("row_id", "birds"), "plantclef": ("quadrat_id", "species_ids")}
    header = columns.get(benchmark.partition("-")[0], ("surveyId", "predictions"))
    header = {"plantclef-2024": ("plot_id", "species_ids"), "geolifeclef-2023": ("Id", "Predicted")}.get(
        benchmark, header
    )
    truth = Table(("id", "label", "unit"), tuple(rows))
    if benchmark in ("plantclef-2024", "birdclef-2021") and rng.random() < 0.3:
        truth = truth.with_columns(("id", "label"))
    return Case(benchmark, Table(header, tuple(lines)), truth, one_each([*labels, *(["nocall"] if birds else [])]))


def draw_decisions(benchmark: str, rng: Random) -> Case:
    """Yes or no for pairs of a segment and a species, only some of which count."""
    labels = [f"bird{number}" for number in range(rng.randint(2, 4))]
    asked: list[Row] = []
    lines: list[Row] = []
    for recording in odd_ids(rng, 4):
        for end in (5, 10, 15):
            own = [label for label in labels if rng.random() < 0.7]
            asked += [(f"{recording}_{end}", label, recording, str(rng.random() < 0.4).lower()) for label in own]
            if own:  # nothing is answered about segments that nobody asks about
                lines += [(f"{recording}_{label}_{end}", str(rng.random() < 0.5)) for label in labels]
    rng.shuffle(lines)
    truth = Table(("id", "label", "unit", "present"), tuple(asked))
    return Case(benchmark, Table(("row_id", "target"), tuple(lines)), truth, one_each(labels))


def draw_columns(benchmark: str, rng: Random) -> Case:
    """A score for every class in every segment, with ties, from 1e-300 to 1e300."""
    labels = [f"class{number}" for number in range(rng.randint(2, 5))]
    rows = [(f"{one}_{end}", one) for one in odd_ids(rng, rng.randint(2, 4)) for end in (5, 10, 15)]
    holds = {(row, label): rng.random() < 0.3 for row, _ in rows for label in labels}
    holds[rows[0][0], labels[0]], holds[rows[-1][0], labels[0]] = True, False
    holds[rows[-2][0], labels[0]], holds[rows[1][0], labels[0]] = True, False  # in the first and the last recording
    steps, scale = rng.choice((4, 64)), rng.choice(SCALES)
    order = rng.sample(labels, len(labels))
    lines: list[Row] = [(row, *(repr(scale * rng.randint(0, steps) / steps) for _ in order)) for row, _ in rows]
    truth: list[Row] = [
        (row, label, unit) for row, unit in rows for label in [one for one in labels if holds[row, one]] or [""]
    ]
    rng.shuffle(lines)
    run = Table(("row_id", *order), tuple(lines))
    return Case(benchmark, run, Table(("id", "label", "unit"), tuple(truth)), one_each(labels))


def draw_plants(benchmark: str, rng: Random) -> Case:
    """Ranked species of observations with probabilities; some observations have no line."""
    labels = [str(number) for number in rng.sample(range(50), rng.randint(2, 9))]
    items = odd_ids(rng, rng.randint(4, 20))
    header = ("obsid", "classid", "probability", "rank")
    if benchmark == "plantclef-2021":
        header = ("ObservationId", "ClassId", "Probability", "Rank")
    silent, scale = rng.choice((0.0, 0.2)), 1.0 if benchmark == "plantclef-2021" else rng.choice(SCALES)
    lines: list[Row] = []
    for item in items:
        if lines and rng.random() < silent:
            continue
        own = rng.sample(labels, rng.randint(1, len(labels)))
        lines += [(item, label, repr(scale * rng.randint(0, 4) / 4), str(place)) for place, label in enumerate(own, 1)]
    rng.shuffle(lines)
    truth = Table(("id", "label"), tuple((item, rng.choice(labels)) for item in items))
    return Case(benchmark, Table(header, tuple(lines), ";"), truth, one_each(labels))


def draw_first_answers(benchmark: str, rng: Random) -> Case:
    """One class for each photo or observation."""
    labels = [str(number) for number in rng.sample(range(50), rng.randint(2, 8))]
    pool = [*labels, UNKNOWN] if benchmark.startswith("fungiclef") else labels
    items = odd_ids(rng, rng.randint(5, 25))
    true = [rng.choice(pool) for _ in items]
    first = [one if rng.random() < 0.5 else rng.choice(pool) for one in true]
    dangerous = {label: rng.random() < 0.5 for label in labels}
    dangerous[labels[0]], dangerous[labels[1]] = True, False
    true[0], true[1] = labels[0], labels[1]  # somebody venomous and somebody harmless, or shares are undefined
    header = {
        "fungiclef-2022": ("ObservationId", "ClassId"),
        "fungiclef-2024": ("observationID", "class_id"),
        "snakeclef-2021": ("UUID", "prediction"),
        "snakeclef-2022": ("ObservationId", "class_id"),
    }.get(benchmark, ("observation_id", "class_id"))
    columns: dict[str, Sequence[str]] = {"id": items, "label": true}
    if rng.random() < 0.5:
        columns["unit"] = units_of(rng, items)
    if benchmark == "snakeclef-2021":
        columns["country"] = [rng.choice(("Brazil", "Nepal", "Ghana")) for _ in items]
    classes = Table(("label", "poisonous"), tuple((label, str(dangerous[label]).lower()) for label in labels))
    truth = Table(tuple(columns), tuple(zip(*columns.values(), strict=True)))
    return Case(benchmark, Table(header, tuple(zip(items, first, strict=True))), truth, classes)


def draw_ranks(benchmark: str, rng: Random) -> Case:
    """Ranked species, thirty at most for a place and ten for a photo."""
    places = benchmark.startswith("geolifeclef")
    labels = [str(number) for number in range(40 if places else rng.randint(6, 12))]
    items = odd_ids(rng, rng.randint(4, 12))
    most = 30 if places else min(10, len(labels))
    lines = [(item, " ".join(rng.sample(labels, rng.randint(1, most)))) for item in items]
    columns: dict[str, Sequence[str]] = {"id": items, "label": [rng.choice(labels) for _ in items]}
    if rng.random() < 0.5:
        columns["unit"] = units_of(rng, items)
    truth = Table(tuple(columns), tuple(zip(*columns.values(), strict=True)))
    header = ("Id", "Predicted") if places else ("image_name", "species_id")
    return Case(benchmark, Table(header, tuple(lines)), truth, one_each(labels))


def draw_animals(benchmark: str, rng: Random) -> Case:
    """Photos of known and new individuals in three datasets, some of which share names."""
    rows: list[Row] = []
    lines: list[Row] = []
    shared = rng.random() < 0.5
    individuals = []
    for dataset in ("lynx", "newt", "turtle"):
        for number in range(rng.randint(2, 4)):
            name = f"{'animal' if shared else dataset}-{number}"
            individuals.append((dataset, name, number > 0 and rng.random() < 0.5, rng.randint(1, 4)))
    known = sorted({name for _, name, new, _ in individuals if not new})
    for dataset, name, new, photos in individuals:
        for photo in range(photos):
            item, true = f"{dataset}-{name}-{photo}", NEW if new else name
            rows.append((item, UNKNOWN if new else name, name, dataset))
            lines.append((item, true if rng.random() < 0.6 else rng.choice([*known, NEW])))
    rng.shuffle(lines)
    truth = Table(("id", "label", "unit", "dataset"), tuple(rows))
    return Case(benchmark, Table(("image_id", "identity"), tuple(lines)), truth, one_each(known))


def draw_clusters(benchmark: str, rng: Random) -> Case:
    """Photos sorted into clusters; two datasets may share names of individuals."""
    rows: list[Row] = []
    lines: list[Row] = []
    shared = rng.random() < 0.5
    for dataset in ("lynx", "newt"):
        for number in range(rng.randint(4, 9)):
            name = f"{'animal' if shared else dataset}-{rng.randint(0, 3)}"
            rows.append((f"{dataset}-{number}", name, name, dataset))
            lines.append((f"{dataset}-{number}", f"cluster_{dataset}_{rng.randint(0, 3)}"))
    rng.shuffle(lines)
    truth = Table(("id", "label", "unit", "dataset"), tuple(rows))
    return Case(benchmark, Table(("image_id", "cluster"), tuple(lines)), truth)


def draw_tree(benchmark: str, rng: Random) -> Case:
    """Names of any rank; ranks above are blank here and there, and some names have none at all."""
    classes: list[Row] = []
    blank = rng.choice((0.0, 0.2))
    for number in range(12):
        depth = rng.randint(1, 7)
        path = [f"{rank}{rng.randint(0, 1) if place else 0}" for place, rank in enumerate(RANKS[:depth])]
        path = ["" if rng.random() < blank and place < depth - 1 else name for place, name in enumerate(path)]
        path = [""] * depth if rng.random() < blank / 2 else path
        classes.append((f"name {number}", *path, *[""] * (len(RANKS) - depth)))
    names = [row[0] for row in classes]
    items = odd_ids(rng, rng.randint(4, 20))
    true = [rng.choice(names) for _ in items]
    lines = [(item, one if rng.random() < 0.3 else rng.choice(names)) for item, one in zip(items, true, strict=True)]
    rows = [(item, one, f"image{number % 5}") for number, (item, one) in enumerate(zip(items, true, strict=True))]
    run = Table(("annotation_id", "concept_name"), tuple(lines))
    return Case(benchmark, run, Table(("id", "label", "unit"), tuple(rows)), Table(("label", *RANKS), tuple(classes)))


DRAWS: dict[str, Callable[[str, Random], Case]] = {
    "listed": draw_lists,
    "decided": draw_decisions,
    "scored": draw_columns,
    "plants": draw_plants,
    "first_answers": draw_first_answers,
    "thirty": draw_ranks,
    "single_plants": draw_ranks,
    "animals": draw_animals,
    "clustered": draw_clusters,
    "named_in_the_tree": draw_tree,
}
EDITIONS = tuple(PROGRAMS)


def draw_edition(benchmark: str, seed: int) -> Case:
    """The random case of an edition with that seed."""
    return DRAWS[PROGRAMS[benchmark].__name__](benchmark, Random(f"{benchmark} {seed}"))
