"""For each later edition, from the tables of a case to the value of every metric: sets and dictionaries, no arrays.

Definitions: the organizers' evaluators and pages that each declaration names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fieldmark_tests.oracles import classification, retrieval
from fieldmark_tests.oracles.classification import mean
from fieldmark_tests.oracles.programs import flagged, known_labels, ranked, truth_of
from fieldmark_tests.oracles.tables import UNKNOWN, Case

Metrics = dict[str, float]
RANKS = ("kingdom", "phylum", "class", "order", "family", "genus", "species")
NEW = "new_individual"
OUTSIDE = 12.0


def true_sets(case: Case) -> dict[str, set[str]]:
    """The labels of each item; a bird that is not there is silence."""
    found: dict[str, set[str]] = {}
    for item, label in zip(case.truth.column("id"), case.truth.column("label"), strict=True):
        found.setdefault(item, set())
        if label:
            found[item].add(label)
    silence = {"nocall"} if case.benchmark == "birdclef-2021" else set()
    return {item: labels or silence for item, labels in found.items()}


def unit_of(case: Case) -> dict[str, str]:
    """The independent unit of each item: as the truth names it, else the recording, else the item itself."""
    own = case.truth.column("id")
    if "unit" in case.truth.columns:
        units = dict(zip(own, case.truth.column("unit"), strict=True))
    elif case.benchmark.startswith("birdclef"):
        units = {item: item.rpartition("_")[0] for item in own}
    else:
        units = {item: item for item in own}
    if "dataset" not in case.truth.columns:
        return units
    # One name in two datasets is two individuals.
    dataset_of = dict(zip(own, case.truth.column("dataset"), strict=True))
    datasets_of: dict[str, set[str]] = {}
    for item, unit in units.items():
        datasets_of.setdefault(unit, set()).add(dataset_of[item])
    return {item: f"{dataset_of[item]}/{unit}" if len(datasets_of[unit]) > 1 else unit for item, unit in units.items()}


def list_f1(true: set[str], answered: set[str]) -> float:
    """2 P R / (P + R) of two sets; 0 where they share nothing."""
    both = len(true & answered)
    if not both:
        return 0.0
    precision, recall = both / len(answered), both / len(true)
    return 2 * precision * recall / (precision + recall)


def listed(case: Case, items: Sequence[str]) -> Metrics:
    """Lists of labels as they are written: plots, surveys, and segments of soundscapes in which nothing sings."""
    plots = case.benchmark.startswith("plantclef")
    true = {item: labels for item, labels in true_sets(case).items() if item in set(items)}
    answered: dict[str, set[str]] = {}
    for item, text in case.run.rows:
        names = text.strip("[]").split(",") if plots else text.split()
        answered[item] = {name.strip() for name in names if name.strip()}
    of_item = {item: list_f1(true[item], answered[item]) for item in items}
    metrics: Metrics = {"sample_f1": mean(list(of_item.values()))}
    if case.benchmark.startswith("birdclef"):
        return metrics
    hits = sum(len(true[item] & answered[item]) for item in items)
    named = sum(len(true[item]) + len(answered[item]) for item in items)
    metrics["pooled_f1"] = 2 * hits / named if named else math.nan
    present = set().union(*true.values())
    metrics["macro_f1_present"] = mean([_label_f1(one, true, answered) for one in sorted(present)])
    if plots and "unit" in case.truth.columns:
        units = unit_of(case)
        own: dict[str, list[float]] = {}
        for item in items:
            own.setdefault(units[item], []).append(of_item[item])
        metrics["unit_f1"] = mean([mean(values) for values in own.values()])
    return metrics


def _label_f1(label: str, true: dict[str, set[str]], answered: dict[str, set[str]]) -> float:
    hits = sum(1 for item in true if label in true[item] and label in answered[item])
    return 2 * hits / sum((label in true[item]) + (label in answered[item]) for item in true)


def decided(case: Case, items: Sequence[str]) -> Metrics:
    """Yes or no for pairs of a segment and a species, of which those count that the truth names."""
    said = {row_id: target == "True" for row_id, target in case.run.rows}
    right: dict[str, dict[bool, list[bool]]] = {}
    truth = case.truth.by_column()
    for item, label, present in zip(truth["id"], truth["label"], truth["present"], strict=True):
        if item in set(items):
            recording, _, end = item.rpartition("_")
            holds = present == "true"
            right.setdefault(label, {}).setdefault(holds, []).append(said[f"{recording}_{label}_{end}"] == holds)
    return {
        "balanced_decisions": mean([mean([classification.share(one) for one in by.values()]) for by in right.values()])
    }


def scored(case: Case, items: Sequence[str]) -> Metrics:
    """A score for every class in every segment."""
    true, labels = true_sets(case), known_labels(case)
    score = {row[0]: dict(zip(case.run.columns[1:], map(float, row[1:]), strict=True)) for row in case.run.rows}
    by_class = {label: [(score[item][label], label in true[item]) for item in items] for label in labels}
    precisions = [_grouped_precision(pairs) for pairs in by_class.values() if any(there for _, there in pairs)]
    areas = [_area(pairs) for pairs in by_class.values()]
    metrics = {"cmap_grouped": mean(precisions), "species_roc_auc": mean([one for one in areas if not math.isnan(one)])}
    if case.benchmark == "birdclef-2023":
        padded = [_grouped_precision([*pairs, *[(1.0, True)] * 5]) for pairs in by_class.values()]
        metrics["padded_cmap"] = mean(padded)
    return metrics


def _grouped_precision(pairs: Sequence[tuple[float, bool]]) -> float:
    """The sum over thresholds of the recall gained times the precision there."""
    total = sum(1 for _, true in pairs if true)
    value, before = 0.0, 0
    for threshold in sorted({score for score, _ in pairs}, reverse=True):
        admitted = [true for score, true in pairs if score >= threshold]
        value += (sum(admitted) - before) / total * sum(admitted) / len(admitted)
        before = sum(admitted)
    return value


def _area(pairs: Sequence[tuple[float, bool]]) -> float:
    """The share of pairs of a true and a false one in which the true one scores higher, equals one half."""
    true, false = ([score for score, there in pairs if there is wanted] for wanted in (True, False))
    if not true or not false:
        return math.nan
    won = sum(1.0 if one > other else 0.5 if one == other else 0.0 for one in true for other in false)
    return won / (len(true) * len(false))


def plants(case: Case, items: Sequence[str]) -> Metrics:
    """Ranked species of observations with probabilities, ties by the stated rank; no line is no rank."""
    answers: dict[str, list[tuple[float, int, str]]] = {item: [] for item in items}
    for item, label, score, rank in case.run.rows:
        if item in answers:
            answers[item].append((-float(score), int(rank), label))
    true = dict(zip(items, truth_of(case, items), strict=True))
    by_species: dict[str, list[float]] = {}
    for item in items:
        ordered = [label for _, _, label in sorted(answers[item])]
        by_species.setdefault(true[item], []).append(retrieval.reciprocal_rank(ordered, true[item]))
    metrics = {"mrr": mean([value for values in by_species.values() for value in values])}
    if case.benchmark != "plantclef-2021":
        metrics["species_mrr"] = mean([mean(values) for values in by_species.values()])
    return metrics


def first_answers(case: Case, items: Sequence[str]) -> Metrics:
    """One class for each photo or observation."""
    true, answer = truth_of(case, items), {row[0]: row[1] for row in case.run.rows}
    first = [answer[item] for item in items]
    metrics: Metrics = {"macro_f1_union": classification.macro_f1(true, first, set(true) | set(first))}
    right = classification.share([one == other for one, other in zip(true, first, strict=True)])
    if case.benchmark == "fungiclef-2024":
        poison = mean(classification.poison_costs(true, first, flagged(case, "poisonous")))
        metrics |= {"track_1": 1 - right, "track_2": poison, "track_3": 1 - right + poison}
        metrics["track_4"] = mean(classification.unknown_costs(true, first, known_as_unknown=0.1))
    if case.benchmark.startswith("snakeclef"):
        metrics["top_1"] = right
    if case.benchmark in ("snakeclef-2023", "snakeclef-2024"):
        metrics["venom_score"] = classification.venom_score(true, first, flagged(case, "poisonous"))
        metrics["venom_cost"] = classification.venom_cost(true, first, flagged(case, "poisonous"))
    if case.benchmark == "snakeclef-2021":
        country = dict(zip(case.truth.column("id"), case.truth.column("country"), strict=True))
        inside: dict[str, list[tuple[str, str]]] = {}
        for item, one, other in zip(items, true, first, strict=True):
            inside.setdefault(country[item], []).append((one, other))
        metrics["country_macro_f1"] = mean(
            [
                classification.macro_f1(
                    [t for t, _ in own], [f for _, f in own], {name for pair in own for name in pair}
                )
                for own in inside.values()
            ]
        )
    return metrics


def thirty(case: Case, items: Sequence[str]) -> Metrics:
    """Thirty species at most for each place."""
    recall = classification.top_k(truth_of(case, items), ranked(case, items), 30)
    return {"top_30_error": 1 - recall, "recall_at_30": recall}


def single_plants(case: Case, items: Sequence[str]) -> Metrics:
    """Ranked species of photos that show one plant."""
    true, lists = truth_of(case, items), ranked(case, items)
    metrics = {f"top_{k}": classification.top_k(true, lists, k) for k in (1, 5)}
    return metrics | {"macro_f1_all": classification.macro_f1(true, [own[0] for own in lists], known_labels(case))}


def animals(case: Case, items: Sequence[str]) -> Metrics:
    """Known individuals by name, new ones as new: within each dataset, then the mean over datasets."""
    answer, true = {row[0]: row[1] for row in case.run.rows}, dict(zip(items, truth_of(case, items), strict=True))
    dataset = dict(zip(case.truth.column("id"), case.truth.column("dataset"), strict=True))
    hits: dict[str, dict[bool, dict[str, list[bool]]]] = {}
    units = unit_of(case)
    for item in items:
        new = true[item] == UNKNOWN
        hit = answer[item] == (NEW if new else true[item])
        hits.setdefault(dataset[item], {}).setdefault(new, {}).setdefault(units[item], []).append(hit)
    values = []
    for kinds in hits.values():
        shares = [
            mean([classification.share(own) for own in kinds[new].values()]) if new in kinds else 0.0
            for new in (False, True)
        ]
        values.append(math.sqrt(shares[0] * shares[1]))
    every = [hit for kinds in hits.values() for by in kinds.values() for own in by.values() for hit in own]
    return {"known_and_new": mean(values), "top_1": classification.share(every)}


def clustered(case: Case, items: Sequence[str]) -> Metrics:
    """Photos sorted into clusters, counted pair by pair within each dataset."""
    cluster, true = {row[0]: row[1] for row in case.run.rows}, dict(zip(items, truth_of(case, items), strict=True))
    dataset = dict(zip(case.truth.column("id"), case.truth.column("dataset"), strict=True))
    photos: dict[str, list[tuple[str, str]]] = {}
    for item in items:
        photos.setdefault(dataset[item], []).append((true[item], cluster[item]))
    return {"adjusted_rand": mean([_rand_by_pairs(own) for own in photos.values()])}


def _rand_by_pairs(photos: Sequence[tuple[str, str]]) -> float:
    """The adjusted Rand index from every pair of photos: together in the truth, in the answer, in both."""
    together = true = answered = pairs = 0
    for place, (name, cluster) in enumerate(photos):
        for other_name, other_cluster in photos[:place]:
            pairs += 1
            true += name == other_name
            answered += cluster == other_cluster
            together += name == other_name and cluster == other_cluster
    by_chance = true * answered / pairs if pairs else 0.0
    most = (true + answered) / 2
    return 1.0 if most == by_chance else (together - by_chance) / (most - by_chance)


def named_in_the_tree(case: Case, items: Sequence[str]) -> Metrics:
    """Edges between two names in the tree; blank ranks are absent, and names without any rank are outside."""
    assert case.classes is not None
    paths: dict[str, list[tuple[str, str]]] = {}
    for row in case.classes.rows:
        fields = dict(zip(case.classes.columns, row, strict=True))
        paths[fields["label"]] = [(rank, fields[rank]) for rank in RANKS if fields[rank]]
    answer, distances, hits = {row[0]: row[1] for row in case.run.rows}, [], []
    for item, true in zip(items, truth_of(case, items), strict=True):
        one, other = paths[true], paths[answer[item]]
        hits.append(true == answer[item])
        if (not one or not other) and not hits[-1]:
            distances.append(OUTSIDE)
            continue
        shared = 0
        while shared < min(len(one), len(other)) and one[shared] == other[shared]:
            shared += 1
        distances.append(float(len(one) - shared + len(other) - shared))
    return {"tree_distance": mean(distances), "top_1": classification.share(hits)}


Program = Callable[[Case, Sequence[str]], Metrics]
PROGRAMS: dict[str, Program] = {
    **dict.fromkeys(("fungiclef-2022", "fungiclef-2024"), first_answers),
    **{f"snakeclef-{year}": first_answers for year in range(2021, 2025)},
    **{f"plantclef-{year}": plants for year in range(2021, 2024)},
    **{f"plantclef-{year}": listed for year in range(2024, 2027)},
    "plantclef-2024/single-plants": single_plants,
    "birdclef-2021": listed,
    "birdclef-2022": decided,
    **{f"birdclef-{year}": scored for year in range(2023, 2027)},
    **{f"geolifeclef-{year}": thirty for year in (2021, 2022)},
    **{f"geolifeclef-{year}": listed for year in range(2023, 2026)},
    "animalclef-2025": animals,
    "animalclef-2026": clustered,
    "fathomnet-2025": named_in_the_tree,
}
