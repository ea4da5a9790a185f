"""Random cases of the later editions, each with the values that a naive program computes from it.

Unlike in `programs`, a case is drawn and judged in one place: sets and dictionaries, no arrays. Definitions: the
organizers' evaluators and pages that each declaration names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from tests.oracles import classification, retrieval
from tests.oracles.tables import UNKNOWN, Case, Row, Table

Metrics = dict[str, float]
RANKS = ("kingdom", "phylum", "class", "order", "family", "genus", "species")
NEW = "new_individual"


@dataclass(frozen=True)
class Judged:
    """A case and what its scorecard must say."""

    case: Case
    metrics: Metrics


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def list_f1(true: set[str], answered: set[str]) -> float:
    """2 P R / (P + R) of two sets; 0 where they share nothing."""
    both = len(true & answered)
    if not both:
        return 0.0
    precision, recall = both / len(answered), both / len(true)
    return 2 * precision * recall / (precision + recall)


def draw_lists(benchmark: str, rng: Random) -> Judged:
    """Lists of labels: plots, surveys, and segments of soundscapes in which nothing sings."""
    birds, plots = benchmark.startswith("birdclef"), benchmark.startswith("plantclef")
    labels = [str(number) for number in rng.sample(range(100), rng.randint(3, 8))]
    units = [f"unit-{number}" for number in range(rng.randint(2, 5))]
    items = [(f"{unit}_{5 * number}", unit) for unit in units for number in range(1, rng.randint(2, 6))]
    true: dict[str, set[str]] = {}
    answered: dict[str, set[str]] = {}
    for item, _ in items:
        true[item] = set(rng.sample(labels, rng.randint(0 if birds else 1, 3)))
        answered[item] = set(rng.sample(sorted(true[item]), rng.randint(0, len(true[item]))))
        answered[item] |= set(rng.sample(labels, rng.randint(0, 2)))
    if birds:
        labels.append("nocall")
        true = {item: names or {"nocall"} for item, names in true.items()}
        answered = {item: names or {"nocall"} for item, names in answered.items()}
    rows: list[Row] = [(item, name, unit) for item, unit in items for name in sorted(true[item] - {"nocall"}) or [""]]
    columns = {"birdclef": ("row_id", "birds"), "plantclef": ("quadrat_id", "species_ids")}
    header = columns.get(benchmark.partition("-")[0], ("surveyId", "predictions"))
    header = {"plantclef-2024": ("plot_id", "species_ids"), "geolifeclef-2023": ("Id", "Predicted")}.get(
        benchmark, header
    )
    lines: list[Row] = []
    for item, names in answered.items():
        listed = sorted(names, key=lambda _: rng.random())
        lines.append((item, f"[{', '.join(listed)}]" if plots else " ".join(listed)))
    rng.shuffle(lines)
    of_item = {item: list_f1(true[item], answered[item]) for item in true}
    by_unit = [mean([of_item[item] for item, own in items if own == unit]) for unit in {unit for _, unit in items}]
    hits = sum(len(true[item] & answered[item]) for item in true)
    named = sum(len(true[item]) + len(answered[item]) for item in true)
    metrics: Metrics = {"sample_f1": mean(list(of_item.values()))}
    if not birds:
        metrics["pooled_f1"] = 2 * hits / named
        metrics["macro_f1_present"] = mean([_label_f1(one, true, answered) for one in set().union(*true.values())])
    if plots:
        metrics["unit_f1"] = mean(by_unit)
    classes = Table(("label",), tuple((label,) for label in labels))
    truth = Table(("id", "label", "unit"), tuple(rows))
    return Judged(Case(benchmark, Table(header, tuple(lines)), truth, classes), metrics)


def _label_f1(label: str, true: dict[str, set[str]], answered: dict[str, set[str]]) -> float:
    there = [label in true[item] for item in true]
    said = [label in answered[item] for item in true]
    hits = sum(1 for one, other in zip(there, said, strict=True) if one and other)
    return 2 * hits / (sum(there) + sum(said))


def draw_decisions(benchmark: str, rng: Random) -> Judged:
    """Yes or no for pairs of a segment and a species, only some of which count."""
    labels = [f"bird{number}" for number in range(rng.randint(2, 4))]
    segments = [(f"soundscape_{one}_{end}", f"soundscape_{one}") for one in range(4) for end in (5, 10, 15)]
    truth: list[Row] = []
    lines: list[Row] = []
    tallies: dict[str, dict[bool, list[bool]]] = {label: {True: [], False: []} for label in labels}
    for segment, recording in segments:
        for label in labels:
            holds, said = rng.random() < 0.4, rng.random() < 0.5
            end = segment.rpartition("_")[2]
            lines.append((f"{recording}_{label}_{end}", str(said)))
            if rng.random() < 0.7 or not truth:
                truth.append((segment, label, recording, str(holds).lower()))
                tallies[label][holds].append(said == holds)
    rng.shuffle(lines)
    values = []
    for kinds in tallies.values():
        shares = [classification.share(right) for right in kinds.values() if right]
        if shares:
            values.append(mean(shares))
    classes = Table(("label",), tuple((label,) for label in labels))
    given = Table(("id", "label", "unit", "present"), tuple(truth))
    case = Case(benchmark, Table(("row_id", "target"), tuple(lines)), given, classes)
    return Judged(_only_asked(case), {"balanced_decisions": mean(values)})


def _only_asked(case: Case) -> Case:
    """A run that answers no segment about which nothing was asked."""
    asked = {row[0] for row in case.truth.rows}
    kept = [row for row in case.run.rows if _segment(row[0]) in asked]
    return Case(case.benchmark, case.run.with_rows(kept), case.truth, case.classes)


def _segment(row_id: str) -> str:
    recording, _, rest = row_id.partition("_bird")
    return f"{recording}_{rest.rpartition('_')[2]}"


def draw_columns(benchmark: str, rng: Random) -> Judged:
    """A score for every class in every segment, with ties."""
    labels = [f"class{number}" for number in range(rng.randint(2, 5))]
    rows = [(f"rec{one}_{end}", f"rec{one}") for one in range(rng.randint(2, 4)) for end in (5, 10, 15)]
    holds = {(row, label): rng.random() < 0.3 for row, _ in rows for label in labels}
    holds[rows[0][0], labels[0]], holds[rows[1][0], labels[0]] = True, False
    steps = rng.choice((4, 64))
    score = {pair: rng.randint(0, steps) / steps for pair in holds}
    truth: list[Row] = [
        (row, label, unit) for row, unit in rows for label in [one for one in labels if holds[row, one]] or [""]
    ]
    order = rng.sample(labels, len(labels))
    lines: list[Row] = [(row, *(repr(score[row, label]) for label in order)) for row, _ in rows]
    rng.shuffle(lines)
    present = [label for label in labels if any(holds[row, label] for row, _ in rows)]
    precisions = {
        label: _grouped_precision([(score[row, label], holds[row, label]) for row, _ in rows]) for label in present
    }
    metrics: Metrics = {"cmap_grouped": mean(list(precisions.values()))}
    padding = [(1.0, True)] * 5
    if benchmark == "birdclef-2023":
        padded = [
            _grouped_precision([*((score[row, label], holds[row, label]) for row, _ in rows), *padding])
            for label in labels
        ]
        metrics["padded_cmap"] = mean(padded)
    areas = [_area([(score[row, label], holds[row, label]) for row, _ in rows]) for label in labels]
    metrics["species_roc_auc"] = mean([area for area in areas if not math.isnan(area)])
    classes = Table(("label",), tuple((label,) for label in labels))
    run = Table(("row_id", *order), tuple(lines))
    return Judged(Case(benchmark, run, Table(("id", "label", "unit"), tuple(truth)), classes), metrics)


def _grouped_precision(scored: Sequence[tuple[float, bool]]) -> float:
    """The sum over thresholds of the recall gained times the precision there."""
    total = sum(1 for _, true in scored if true)
    value, before = 0.0, 0
    for threshold in sorted({score for score, _ in scored}, reverse=True):
        admitted = [true for score, true in scored if score >= threshold]
        value += (sum(admitted) - before) / total * sum(admitted) / len(admitted)
        before = sum(admitted)
    return value


def _area(scored: Sequence[tuple[float, bool]]) -> float:
    """The share of pairs of a true and a false one in which the true one scores higher, equals one half."""
    true, false = ([score for score, there in scored if there is wanted] for wanted in (True, False))
    if not true or not false:
        return math.nan
    won = sum(1.0 if one > other else 0.5 if one == other else 0.0 for one in true for other in false)
    return won / (len(true) * len(false))


def draw_plants(benchmark: str, rng: Random) -> Judged:
    """Ranked species of observations with probabilities, ties by the stated rank."""
    labels = [str(number) for number in rng.sample(range(50), rng.randint(2, 9))]
    items = [f"{number}" for number in rng.sample(range(200), rng.randint(4, 20))]
    truth, lines, reciprocal = [], [], {}
    header = ("obsid", "classid", "probability", "rank")
    if benchmark == "plantclef-2021":
        header = ("ObservationId", "ClassId", "Probability", "Rank")
    for item in items:
        true = rng.choice(labels)
        truth.append((item, true))
        listed = rng.sample(labels, rng.randint(1, len(labels)))
        scores = [rng.randint(0, 4) / 4 for _ in listed]
        order = sorted(range(len(listed)), key=lambda place, scores=scores: (-scores[place], place))  # type: ignore[misc]
        ranked = [listed[place] for place in order]
        reciprocal[item] = retrieval.reciprocal_rank(ranked, true)
        lines += [(item, label, repr(scores[place]), str(place + 1)) for place, label in enumerate(listed)]
    rng.shuffle(lines)
    by_species: dict[str, list[float]] = {}
    for item, true in truth:
        by_species.setdefault(true, []).append(reciprocal[item])
    metrics = {"mrr": mean(list(reciprocal.values()))}
    if benchmark != "plantclef-2021":
        metrics["species_mrr"] = mean([mean(values) for values in by_species.values()])
    classes = Table(("label",), tuple((label,) for label in labels))
    case = Case(benchmark, Table(header, tuple(lines), ";"), Table(("id", "label"), tuple(truth)), classes)
    return Judged(case, metrics)


def draw_first_answers(benchmark: str, rng: Random) -> Judged:
    """One class for each photo or observation."""
    opened = benchmark.startswith("fungiclef")
    labels = [str(number) for number in rng.sample(range(50), rng.randint(2, 8))]
    pool = [*labels, UNKNOWN] if opened else labels
    items = [f"i{number}" for number in range(rng.randint(5, 25))]
    true = [rng.choice(pool) for _ in items]
    first = [one if rng.random() < 0.5 else rng.choice(pool) for one in true]
    country = [rng.choice(("Brazil", "Nepal", "Ghana")) for _ in items]
    flagged = {label: rng.random() < 0.5 for label in labels}
    flagged[labels[0]], flagged[labels[1]] = True, False
    true[0], true[1] = labels[0], labels[1]  # somebody venomous and somebody harmless, or shares are undefined
    dangerous = {label for label in labels if flagged[label]}
    union = set(true) | set(first)
    metrics: Metrics = {"macro_f1_union": classification.macro_f1(true, first, union)}
    right = classification.share([one == other for one, other in zip(true, first, strict=True)])
    header = {
        "fungiclef-2022": ("ObservationId", "ClassId"),
        "fungiclef-2024": ("observationID", "class_id"),
        "snakeclef-2021": ("UUID", "prediction"),
        "snakeclef-2022": ("ObservationId", "class_id"),
    }.get(benchmark, ("observation_id", "class_id"))
    if benchmark == "fungiclef-2024":
        poison = mean(classification.poison_costs(true, first, dangerous))
        metrics |= {"track_1": 1 - right, "track_2": poison, "track_3": 1 - right + poison}
        metrics["track_4"] = mean(classification.unknown_costs(true, first, known_as_unknown=0.1))
    if not opened:
        metrics["top_1"] = right
    if benchmark in ("snakeclef-2023", "snakeclef-2024"):
        metrics["venom_score"] = classification.venom_score(true, first, dangerous)
        metrics["venom_cost"] = classification.venom_cost(true, first, dangerous)
    columns: Row = ("id", "label")
    rows: list[Row] = list(zip(items, true, strict=True))
    if benchmark == "snakeclef-2021":
        columns, rows = (*columns, "country"), list(zip(items, true, country, strict=True))
        values = []
        for one in set(country):
            own = [(t, f) for t, f, c in zip(true, first, country, strict=True) if c == one]
            inside = [t for t, _ in own], [f for _, f in own]
            values.append(classification.macro_f1(*inside, set(inside[0]) | set(inside[1])))
        metrics["country_macro_f1"] = mean(values)
    classes = Table(("label", "poisonous"), tuple((label, str(flagged[label]).lower()) for label in labels))
    run = Table(header, tuple(zip(items, first, strict=True)))
    return Judged(Case(benchmark, run, Table(columns, tuple(rows)), classes), metrics)


def draw_thirty(benchmark: str, rng: Random) -> Judged:
    """Thirty species at most for each place."""
    labels = [str(number) for number in range(40)]
    items = [f"{number}" for number in range(rng.randint(4, 10))]
    true = [rng.choice(labels) for _ in items]
    lists = [rng.sample(labels, rng.randint(1, 30)) for _ in items]
    recall = classification.top_k(true, lists, 30)
    run = Table(("Id", "Predicted"), tuple((item, " ".join(own)) for item, own in zip(items, lists, strict=True)))
    classes = Table(("label",), tuple((label,) for label in labels))
    truth = Table(("id", "label"), tuple(zip(items, true, strict=True)))
    return Judged(Case(benchmark, run, truth, classes), {"top_30_error": 1 - recall, "recall_at_30": recall})


def draw_single_plants(benchmark: str, rng: Random) -> Judged:
    """Ranked species of photos that show one plant."""
    labels = [str(number) for number in range(rng.randint(6, 12))]
    items = [f"{number}.jpg" for number in range(rng.randint(4, 12))]
    true = [rng.choice(labels) for _ in items]
    lists = [rng.sample(labels, rng.randint(1, min(10, len(labels)))) for _ in items]
    metrics = {f"top_{k}": classification.top_k(true, lists, k) for k in (1, 5)}
    metrics["macro_f1_all"] = classification.macro_f1(true, [own[0] for own in lists], labels)
    answers = tuple((item, " ".join(own)) for item, own in zip(items, lists, strict=True))
    run = Table(("image_name", "species_id"), answers)
    classes = Table(("label",), tuple((label,) for label in labels))
    truth = Table(("id", "label"), tuple(zip(items, true, strict=True)))
    return Judged(Case(benchmark, run, truth, classes), metrics)


def draw_animals(benchmark: str, rng: Random) -> Judged:
    """Photos of known and new individuals in three datasets."""
    datasets, known, rows, lines = ("lynx", "newt", "turtle"), [], [], []
    right: dict[tuple[str, bool], list[list[bool]]] = {}
    answers = []
    for dataset in datasets:
        for number in range(rng.randint(2, 4)):
            name, new = f"{dataset}-{number}", number > 0 and rng.random() < 0.5
            known += [] if new else [name]
            answers.append((dataset, name, new, rng.randint(1, 4)))
    for dataset, name, new, photos in answers:
        hits = []
        for photo in range(photos):
            item, true = f"{name}-{photo}", NEW if new else name
            given = true if rng.random() < 0.6 else rng.choice([*known, NEW])
            hits.append(given == true)
            rows.append((item, UNKNOWN if new else name, name, dataset))
            lines.append((item, given))
        right.setdefault((dataset, new), []).append(hits)
    values = []
    for dataset in datasets:
        shares = [
            mean([classification.share(hits) for hits in right[dataset, new]]) if (dataset, new) in right else 0.0
            for new in (False, True)
        ]
        values.append(math.sqrt(shares[0] * shares[1]))
    metrics = {
        "known_and_new": mean(values),
        "top_1": classification.share([hit for own in right.values() for hits in own for hit in hits]),
    }
    rng.shuffle(lines)
    truth = Table(("id", "label", "unit", "dataset"), tuple(rows))
    classes = Table(("label",), tuple((label,) for label in known))
    return Judged(Case(benchmark, Table(("image_id", "identity"), tuple(lines)), truth, classes), metrics)


def draw_clusters(benchmark: str, rng: Random) -> Judged:
    """Photos sorted into clusters, counted pair by pair."""
    rows, lines, values = [], [], []
    for dataset in ("lynx", "newt"):
        photos = [
            (f"{dataset}-{n}", f"{dataset}-{rng.randint(0, 3)}", rng.randint(0, 3)) for n in range(rng.randint(4, 9))
        ]
        rows += [(item, name, name, dataset) for item, name, _ in photos]
        lines += [(item, f"cluster_{dataset}_{own}") for item, _, own in photos]
        values.append(_rand_by_pairs([(name, own) for _, name, own in photos]))
    rng.shuffle(lines)
    truth = Table(("id", "label", "unit", "dataset"), tuple(rows))
    return Judged(Case(benchmark, Table(("image_id", "cluster"), tuple(lines)), truth), {"adjusted_rand": mean(values)})


def _rand_by_pairs(photos: Sequence[tuple[str, int]]) -> float:
    """The adjusted Rand index from every pair of photos: together in the truth, in the answer, in both."""
    together = true = answered = pairs = 0
    for place, (name, cluster) in enumerate(photos):
        for other_name, other_cluster in photos[:place]:
            pairs += 1
            true += name == other_name
            answered += cluster == other_cluster
            together += name == other_name and cluster == other_cluster
    by_chance = true * answered / pairs
    most = (true + answered) / 2
    return 1.0 if most == by_chance else (together - by_chance) / (most - by_chance)


def draw_tree(benchmark: str, rng: Random) -> Judged:
    """Names of any rank."""
    paths: dict[str, tuple[str, ...]] = {}
    for number in range(12):
        path = tuple(f"{rank}{rng.randint(0, 1) if place else 0}" for place, rank in enumerate(RANKS))
        depth = rng.randint(1, 7)
        paths[f"{'.'.join(path[:depth])}#{number}"] = path[:depth]
    names = list(paths)
    rows, lines, distances, hits = [], [], [], []
    for number in range(rng.randint(4, 20)):
        true = rng.choice(names)
        answer = true if rng.random() < 0.3 else rng.choice(names)
        rows.append((f"a{number}", true, f"image{number % 5}"))
        lines.append((f"a{number}", answer))
        shared = 0
        for one, other in zip(paths[true], paths[answer], strict=False):
            if one != other:
                break
            shared += 1
        distances.append(float(len(paths[true]) + len(paths[answer]) - 2 * shared))
        hits.append(true == answer)
    blank = ("",) * len(RANKS)
    classes = Table(("label", *RANKS), tuple((name, *(*path, *blank)[: len(RANKS)]) for name, path in paths.items()))
    metrics = {"tree_distance": mean(distances), "top_1": classification.share(hits)}
    truth = Table(("id", "label", "unit"), tuple(rows))
    return Judged(Case(benchmark, Table(("annotation_id", "concept_name"), tuple(lines)), truth, classes), metrics)


Draw = Callable[[str, Random], Judged]
EDITIONS: dict[str, Draw] = {
    **dict.fromkeys(("fungiclef-2022", "fungiclef-2024"), draw_first_answers),
    **{f"snakeclef-{year}": draw_first_answers for year in range(2021, 2025)},
    **{f"plantclef-{year}": draw_plants for year in range(2021, 2024)},
    **{f"plantclef-{year}": draw_lists for year in range(2024, 2027)},
    "plantclef-2024/single-plants": draw_single_plants,
    "birdclef-2021": draw_lists,
    "birdclef-2022": draw_decisions,
    **{f"birdclef-{year}": draw_columns for year in range(2023, 2027)},
    **{f"geolifeclef-{year}": draw_thirty for year in (2021, 2022)},
    **{f"geolifeclef-{year}": draw_lists for year in range(2023, 2026)},
    "animalclef-2025": draw_animals,
    "animalclef-2026": draw_clusters,
    "fathomnet-2025": draw_tree,
}


def draw_edition(benchmark: str, seed: int) -> Judged:
    """The random case of an edition with that seed."""
    return EDITIONS[benchmark](benchmark, Random(f"{benchmark} {seed}"))
