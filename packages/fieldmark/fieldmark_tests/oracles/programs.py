"""For each benchmark, from the tables of a case to the value of every metric, read again for each metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from fieldmark.benchmarks import BENCHMARKS
from fieldmark_tests.oracles import classification, retrieval
from fieldmark_tests.oracles.tables import UNKNOWN, Case, Table
from fieldmark_tests.places import declared_in_tests

Metrics = dict[str, float]
SEGMENT_S = 5
TRUE_FLAGS = ("true", "1", "yes")
VARIANTS = ("", "-day-batch", "-delayed-labels")
TEMPORAL = tuple(f"{name}/temporal{variant}" for name in ("fungitastic", "fungitastic-mini") for variant in VARIANTS)
TEMPORAL_CLOSED = tuple(f"fungitastic-mini/temporal-closed{variant}" for variant in VARIANTS)
# Where the metrics are shown for each value of a column of the truth, besides `split`.
SHOWN_BY = {
    **dict.fromkeys((*TEMPORAL, *TEMPORAL_CLOSED), ("month",)),
    "fgvcx-fungi-2018": ("usage",),
    "semi-inat-2021": ("phylum",),
    "semi-aves-2020": ("phylum",),
}
LABELS_BETWEEN_BARS = ("folder", "occurrences", "occurrences/places")
OBSERVATION = ("observationID", "observation_id", "observationId")


@dataclass(frozen=True)
class Expected:
    """What a scorecard must say.

    Args:
        items, units, classes: How many there are.
        metrics: The value of each metric.
        groups: The same for each value of each column the metrics are shown by.
    """

    items: int
    units: int
    classes: int
    metrics: Metrics
    groups: dict[str, dict[str, Metrics]] = field(default_factory=dict)


def expected(case: Case) -> Expected:
    """What the scorecard of a case must say."""
    items = segments(case) if case.media is not None else case.truth.column("id")
    program = partial(with_declared, PROGRAMS[case.benchmark])
    groups: dict[str, dict[str, Metrics]] = {}
    for column, value_of in grouping(case, items).items():
        for value in sorted(set(value_of.values())):
            inside = [item for item in items if value_of[item] == value]
            groups.setdefault(column, {})[value] = program(case, inside)
    return Expected(len(items), count_units(case), len(known_labels(case)), program(case, items), groups)


def with_declared(program: Callable[[Case, Sequence[str]], Metrics], case: Case, items: Sequence[str]) -> Metrics:
    """What a program computes, and those metrics whose naive program stands with their tests."""
    naive = declared_in_tests("NAIVE", "metrics")
    names = [metric.name for metric in BENCHMARKS[case.benchmark].task.metrics if metric.name in naive]
    return {**program(case, items), **{name: naive[name](case, items) for name in names}}


def grouping(case: Case, items: Sequence[str]) -> dict[str, dict[str, str]]:
    """The value of each item in the columns that metrics are shown by."""
    if case.media is not None:
        if "site" not in case.media.columns:
            return {}
        site_of = dict(zip(case.media.column("MediaId"), case.media.column("site"), strict=True))
        return {"site": {item: site_of[item.rpartition("/")[0]] for item in items}}
    columns = case.truth.by_column()
    if "month" in SHOWN_BY.get(case.benchmark, ()) and "date" in columns:
        columns["month"] = [date.split("-")[1] for date in columns["date"]]
    shown = [name for name in (*SHOWN_BY.get(case.benchmark, ()), "split") if name in columns]
    return {name: dict(zip(items, columns[name], strict=True)) for name in shown}


def count_units(case: Case) -> int:
    """How many independent units there are: of each item its own where nobody says otherwise."""
    if case.media is not None:
        return len(set(case.media.column("MediaId")))
    return len(set(case.truth.column("unit" if "unit" in case.truth.columns else "id")))


def known_labels(case: Case) -> list[str]:
    """The classes in the order of their codes: as listed, or all that truth and run name, by the alphabet."""
    if case.classes is not None:
        return [label for label in case.classes.column("label") if label != UNKNOWN]
    if case.media is not None:
        named = {label for _, label in true_pairs(case)} | {row[2] for row in case.run.rows}
    elif case.benchmark == "snakeclef-2020":
        named = {*case.truth.column("label"), *case.run.columns[1:]}
    elif is_long(case.run):
        named = {*case.truth.column("label"), *(row[1] for row in case.run.rows)}
    else:
        named = {*case.truth.column("label"), *(label for listed in lists(case).values() for label in listed)}
    return sorted(named - {UNKNOWN})


def flagged(case: Case, flag: str) -> set[str]:
    """The labels with a flag."""
    assert case.classes is not None
    pairs = zip(case.classes.column("label"), case.classes.column(flag), strict=True)
    return {label for label, value in pairs if value.lower() in TRUE_FLAGS}


def truth_of(case: Case, items: Sequence[str]) -> list[str]:
    """The true labels of the items."""
    label_of = dict(zip(case.truth.column("id"), case.truth.column("label"), strict=True))
    return [label_of[item] for item in items]


def lists(case: Case) -> dict[str, list[str]]:
    """The answers of each line of a ranked run, best first."""
    names = case.run.columns
    item_place = next((names.index(name) for name in OBSERVATION if name in names), 0)
    list_place = names.index("class_id") if "class_id" in names else 1
    separator = "|" if case.benchmark in LABELS_BETWEEN_BARS else None
    return {
        row[item_place]: [label.strip() for label in row[list_place].split(separator) if label.strip()]
        for row in case.run.rows
    }


def ranked(case: Case, items: Sequence[str]) -> list[list[str]]:
    """The answers to the items, best first."""
    answers = lists(case)
    return [answers[item] for item in items]


def closed(case: Case, items: Sequence[str]) -> Metrics:
    """A folder or occurrences of one's own, and the closed sets of FungiTastic."""
    truth, answers = truth_of(case, items), ranked(case, items)
    first = [listed[0] for listed in answers]
    return {
        "macro_f1_all": classification.macro_f1(truth, first, known_labels(case)),
        "macro_f1_present": classification.macro_f1(truth, first, set(truth)),
        "macro_f1_union": classification.macro_f1(truth, first, set(truth) | set(first)),
        "top_1": classification.top_k(truth, answers, 1),
        "top_3": classification.top_k(truth, answers, 3),
    }


def closed_and_balanced(case: Case, items: Sequence[str]) -> Metrics:
    """Photos of one's own occurrences: as `closed`, and the mean recall."""
    first = [listed[0] for listed in ranked(case, items)]
    return {**closed(case, items), "balanced_accuracy": classification.balanced_accuracy(truth_of(case, items), first)}


def lived(case: Case, items: Sequence[str]) -> Metrics:
    """Which species lives at a place, by occurrences of one's own."""
    truth, answers = truth_of(case, items), ranked(case, items)
    places = [
        1 / (listed.index(true) + 1) if true in listed else 0.0 for true, listed in zip(truth, answers, strict=True)
    ]
    return {
        "mrr": classification.mean(places),
        "top_1": classification.top_k(truth, answers, 1),
        "top_3": classification.top_k(truth, answers, 3),
        "recall_at_30": classification.top_k(truth, answers, 30),
        "macro_f1_all": classification.macro_f1(truth, [listed[0] for listed in answers], known_labels(case)),
    }


def unknown_scores(case: Case, items: Sequence[str]) -> list[float]:
    """How strange each item looks."""
    score_of = {row[0]: float(row[2]) for row in case.run.rows}
    return [score_of[item] for item in items]


def opened(case: Case, items: Sequence[str]) -> Metrics:
    """The open sets of FungiTastic, and the same by month."""
    truth, answers = truth_of(case, items), ranked(case, items)
    first, known = [listed[0] for listed in answers], known_labels(case)
    scores, is_known = unknown_scores(case, items), [label != UNKNOWN for label in truth]
    return {
        "roc_auc": classification.roc_auc(scores, is_known),
        "macro_f1_all": classification.macro_f1(truth, first, [*known, UNKNOWN]),
        "tnr_at_95_tpr": classification.tnr_at_95_tpr(scores, is_known),
        "tnr_at_95_tpr_nearest": classification.tnr_nearest_to_95_tpr(scores, is_known),
        "f1_unknown": classification.f1(truth, first, UNKNOWN),
        "f1_known": classification.macro_f1(truth, first, known),
        "top_1": classification.top_k(truth, answers, 1),
        "top_3": classification.top_k(truth, answers, 3),
    }


def priced(case: Case, items: Sequence[str]) -> Metrics:
    """The two benchmarks of FungiTastic that price mistakes."""
    truth, answers = truth_of(case, items), ranked(case, items)
    first = [listed[0] for listed in answers]
    shared = {
        "top_1": classification.top_k(truth, answers, 1),
        "macro_f1_all": classification.macro_f1(truth, first, [*known_labels(case), UNKNOWN]),
    }
    if case.benchmark.endswith("/cost-poison"):
        costs = classification.poison_costs(truth, first, flagged(case, "poisonous"))
        return {"cost_poison": classification.mean(costs), **shared}
    costs = classification.unknown_costs(truth, first)
    return {
        "cost_unknown": classification.mean(costs),
        **shared,
        "f1_unknown": classification.f1(truth, first, UNKNOWN),
    }


def tracks(case: Case, items: Sequence[str]) -> Metrics:
    """FungiCLEF 2023."""
    truth = truth_of(case, items)
    first = [listed[0] for listed in ranked(case, items)]
    wrong = classification.share([true != answer for true, answer in zip(truth, first, strict=True)])
    poison = classification.mean(classification.poison_costs(truth, first, flagged(case, "poisonous")))
    return {
        "macro_f1_union": classification.macro_f1(truth, first, set(truth) | set(first)),
        "track_1": wrong,
        "track_2": poison,
        "track_3": wrong + poison,
        "track_4": classification.mean(classification.unknown_costs(truth, first, known_as_unknown=0.1)),
    }


def within(**depths: int) -> Callable[[Case, Sequence[str]], Metrics]:
    """Shares of items whose label is among the first answers, by the name of the metric."""

    def program(case: Case, items: Sequence[str]) -> Metrics:
        truth, answers = truth_of(case, items), ranked(case, items)
        return {name: classification.top_k(truth, answers, k) for name, k in depths.items()}

    return program


def missed(case: Case, items: Sequence[str]) -> Metrics:
    """FGVCx Fungi 2018: the mean over photos of the least distance of an answer to the label, 0 or 1."""
    errors: Metrics = {}
    for k in (5, 3):
        distances = []
        for true, listed in zip(truth_of(case, items), ranked(case, items), strict=True):
            distances.append(min(0.0 if label == true else 1.0 for label in listed[:k]))
        errors[f"top_{k}_error"] = classification.mean(distances)
    return errors


def is_long(run: Table) -> bool:
    """Whether a run has one line per item and label."""
    return run.separator == ";"


def sorted_lists(case: Case, items: Sequence[str]) -> list[list[str]]:
    """The labels of each item by falling score, equal ones by the stated rank, or else by line."""
    answers: dict[str, list[tuple[float, float, str]]] = {item: [] for item in items}
    for line, (item, label, score, *rank) in enumerate(case.run.rows):
        if item in answers:
            answers[item].append((-float(score), float(rank[0]) if rank else line, label))
    return [[label for _, _, label in sorted(answers[item])] for item in items]


def plants(case: Case, items: Sequence[str]) -> Metrics:
    """PlantCLEF 2020."""
    truth, answers = truth_of(case, items), sorted_lists(case, items)
    values = [retrieval.reciprocal_rank(listed, true) for true, listed in zip(truth, answers, strict=True)]
    metrics = {"mrr": classification.mean(values)}
    if case.classes is not None and "rare" in case.classes.columns:
        rare = flagged(case, "rare")
        metrics["mrr_rare"] = classification.mean([v for v, true in zip(values, truth, strict=True) if true in rare])
    return metrics


def scores_of_places(case: Case, items: Sequence[str]) -> dict[str, dict[str, float]]:
    """The scores of the listed labels of each item; ranks are scores as well."""
    if not is_long(case.run):
        return {item: {label: -float(place) for place, label in enumerate(lists(case)[item])} for item in items}
    scores: dict[str, dict[str, float]] = {item: {} for item in items}
    for item, label, score in case.run.rows:
        if item in scores:
            scores[item][label] = float(score)
    return scores


def places(case: Case, items: Sequence[str]) -> Metrics:
    """GeoLifeCLEF 2020, in either of its formats."""
    truth, scores = truth_of(case, items), scores_of_places(case, items)
    answers = sorted_lists(case, items) if is_long(case.run) else ranked(case, items)
    sets, strict = (retrieval.adaptive_sets(scores, strict=strict) for strict in (False, True))
    pairs = list(zip(items, truth, strict=True))
    return {
        "adaptive_top_30": classification.share([true in sets[item] for item, true in pairs]),
        "recall_at_30": classification.top_k(truth, answers, 30),
        "adaptive_top_30_strict": classification.share([true in strict[item] for item, true in pairs]),
        "mean_set_size": classification.mean([float(len(sets[item])) for item in items]),
    }


def seconds_of(text: str) -> tuple[int, int]:
    """Start and end of `hh:mm:ss-hh:mm:ss` in seconds."""
    start, end = (text.split("-")[side].split(":") for side in (0, 1))
    return tuple(3600 * int(clock[0]) + 60 * int(clock[1]) + int(clock[2]) for clock in (start, end))  # type: ignore[return-value]


def segments(case: Case) -> list[str]:
    """Every five seconds of every recording; the last may reach beyond its end."""
    assert case.media is not None
    found = []
    for name, seconds in zip(case.media.column("MediaId"), case.media.column("seconds"), strict=True):
        found += [f"{name}/{number * SEGMENT_S}" for number in range(math.ceil(float(seconds) / SEGMENT_S))]
    return found


def true_pairs(case: Case) -> set[tuple[str, str]]:
    """Segment and class wherever an event overlaps a segment; birds that nobody could name are silence."""
    pairs: set[tuple[str, str]] = set()
    for name, label, interval, *_ in case.truth.rows:
        start, end = seconds_of(interval)
        for second in range(start, end):
            if label.strip("?"):
                pairs.add((f"{name}/{second // SEGMENT_S * SEGMENT_S}", label))
    return pairs


def birds(case: Case, items: Sequence[str]) -> Metrics:
    """BirdCLEF 2020."""
    inside = set(items)
    by_class: tuple[dict[str, dict[str, float]], dict[str, set[str]]] = ({}, {})
    by_segment: tuple[dict[str, dict[str, float]], dict[str, set[str]]] = ({}, {})
    for name, interval, label, score in case.run.rows:
        segment = f"{name}/{seconds_of(interval)[0]}"
        if segment in inside:
            by_class[0].setdefault(label, {})[segment] = float(score)
            by_segment[0].setdefault(segment, {})[label] = float(score)
    for segment, label in true_pairs(case):
        if segment in inside:
            by_class[1].setdefault(label, set()).add(segment)
            by_segment[1].setdefault(segment, set()).add(label)
    precision = {"": retrieval.optimistic_precision, "_expected": retrieval.expected_precision}
    return {
        f"{name}{ties}": retrieval.mean_average_precision(*queries, precision[ties])
        for ties in precision
        for name, queries in (("cmap", by_class), ("rmap", by_segment))
    }


def snakes(case: Case, items: Sequence[str]) -> Metrics:
    """SnakeCLEF 2020; among equal probabilities the class that is listed first is the answer."""
    truth, known = truth_of(case, items), known_labels(case)
    row_of = {row[0]: dict(zip(case.run.columns[1:], map(float, row[1:]), strict=True)) for row in case.run.rows}
    rows = [row_of[item] for item in items]
    first = []
    for row in rows:
        best = known[0]
        for label in known:
            best = label if row[label] > row[best] else best
        first.append(best)
    metrics = {
        "macro_f1_union": classification.macro_f1(truth, first, set(truth) | set(first)),
        "log_loss": classification.log_loss(truth, rows),
        "top_1": classification.share([true == answer for true, answer in zip(truth, first, strict=True)]),
    }
    if case.classes is not None and "poisonous" in case.classes.columns:
        venomous = flagged(case, "poisonous")
        metrics["venom_score"] = classification.venom_score(truth, first, venomous)
        metrics["venom_cost"] = classification.venom_cost(truth, first, venomous)
    return metrics


CLOSED = (
    "folder",
    "occurrences",
    "fungitastic/closed",
    "fungitastic/dna",
    "fungitastic-fewshot",
    "fungitastic-mini/closed",
    "fungitastic-mini/dna",
)
OPEN = ("fungitastic/open", "fungitastic-mini/open", *TEMPORAL)
PRICED = tuple(f"{name}/cost-{what}" for name in ("fungitastic", "fungitastic-mini") for what in ("poison", "unknown"))
PROGRAMS: dict[str, Callable[[Case, Sequence[str]], Metrics]] = {
    **dict.fromkeys((*CLOSED, *TEMPORAL_CLOSED), closed),
    "occurrences": closed_and_balanced,
    **dict.fromkeys(OPEN, opened),
    **dict.fromkeys(PRICED, priced),
    "fungiclef-2023": tracks,
    "fungiclef-2025": within(recall_at_5=5, top_1=1),
    "fgvcx-fungi-2018": missed,
    "semi-inat-2021": within(top_1=1, top_5=5),
    "semi-aves-2020": within(top_1=1, top_5=5),
    "plantclef-2020": plants,
    "geolifeclef-2020": places,
    "occurrences/places": lived,
    "birdclef-2020": birds,
    "snakeclef-2020": snakes,
}
