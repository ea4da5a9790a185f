"""One label per item: what the papers define, item by item.

- F1, macro-F1, Recall@k, the cost of taking poisonous for edible: FungiTastic, appendix A, equations 1, 2, 6, 7, 8.
- The cost of missing an unknown species: FungiTastic, section on costs (W^{k/u}).
- ROC-AUC and TNR at 95 % TPR: FungiTastic, appendix A.3; the second threshold rule is the organizers' sweep.
- The four tracks of FungiCLEF 2023 and the two of SnakeCLEF 2023: the organizers' evaluators.
- Log loss: SnakeCLEF 2020, rows divided by their sum, then clipped at 1e-15.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from fieldmark_tests.oracles.tables import UNKNOWN

Labels = Sequence[str]
CLIPPED_AT = 1e-15


def f1(truth: Labels, answers: Labels, label: str) -> float:
    """F_c = 2 P R / (P + R); 0 without a true positive."""
    true_positives = false_positives = false_negatives = 0
    for true, answer in zip(truth, answers, strict=True):
        if true == label and answer == label:
            true_positives += 1
        elif answer == label:
            false_positives += 1
        elif true == label:
            false_negatives += 1
    if true_positives == 0:
        return 0.0
    precision = true_positives / (true_positives + false_positives)
    recall = true_positives / (true_positives + false_negatives)
    return 2 * precision * recall / (precision + recall)


def macro_f1(truth: Labels, answers: Labels, averaged: Collection[str]) -> float:
    """The mean of F_c over the classes that are averaged."""
    total = 0.0
    for label in averaged:
        total += f1(truth, answers, label)
    return total / len(averaged)


def balanced_accuracy(truth: Labels, answers: Labels) -> float:
    """The mean over the classes that occur of the share of their items that is answered right."""
    recalls = []
    for label in set(truth):
        recalls.append(share([answer == label for true, answer in zip(truth, answers, strict=True) if true == label]))
    return mean(recalls)


def share(hits: Sequence[bool]) -> float:
    """The share of items that are hit."""
    return sum(1 for hit in hits if hit) / len(hits)


def top_k(truth: Labels, ranked: Sequence[Labels], k: int) -> float:
    """Recall@k: the share of items whose label is among their first k answers."""
    return share([true in answers[:k] for true, answers in zip(truth, ranked, strict=True)])


def mean(values: Sequence[float]) -> float:
    """The mean, undefined for nothing."""
    return sum(values) / len(values) if values else math.nan


def roc_auc(unknown_scores: Sequence[float], is_known: Sequence[bool]) -> float:
    """The share of pairs of a known and an unknown item that the score puts in order; a tied pair counts one half."""
    won = 0.0
    pairs = 0
    for known_score, known in zip(unknown_scores, is_known, strict=True):
        for score, other_known in zip(unknown_scores, is_known, strict=True):
            if known and not other_known:
                pairs += 1
                won += 1.0 if known_score < score else 0.5 if known_score == score else 0.0
    return won / pairs if pairs else math.nan


def tnr_at_95_tpr(unknown_scores: Sequence[float], is_known: Sequence[bool]) -> float:
    """The share of unknown items below the highest threshold that at least 95 % of the known ones reach."""
    known = [-score for score, inside in zip(unknown_scores, is_known, strict=True) if inside]
    unknown = [-score for score, inside in zip(unknown_scores, is_known, strict=True) if not inside]
    if not known or not unknown:
        return math.nan
    for threshold in sorted(known + unknown, reverse=True):
        if sum(1 for score in known if score >= threshold) / len(known) >= 0.95:
            return sum(1 for score in unknown if score < threshold) / len(unknown)
    raise AssertionError("the lowest threshold accepts everything")


def tnr_nearest_to_95_tpr(unknown_scores: Sequence[float], is_known: Sequence[bool]) -> float:
    """The organizers' sweep: items are dropped from the least known up, known ones first among equals.

    Of all steps the one counts whose share of known items left is nearest to 95 %, the first of them where several are.
    """
    order = sorted(zip(unknown_scores, is_known, strict=True), key=lambda item: (-item[0], not item[1]))
    n_known = sum(is_known)
    n_unknown = len(is_known) - n_known
    if n_known == 0 or n_unknown == 0:
        return math.nan
    accepted, rejected = n_known, 0
    nearest, found = abs(1.0 - 0.95), 0
    for _, known in order:
        accepted, rejected = (accepted - 1, rejected) if known else (accepted, rejected + 1)
        distance = abs(accepted / n_known - 0.95)
        if distance < nearest:
            nearest, found = distance, rejected
    return found / n_unknown


def poison_costs(truth: Labels, answers: Labels, poisonous: Collection[str]) -> list[float]:
    """W^{p/e}: 100 for poisonous taken for harmless, 1 for harmless taken for poisonous; unknown is harmless."""
    costs = []
    for true, answer in zip(truth, answers, strict=True):
        if (true in poisonous) == (answer in poisonous):
            costs.append(0.0)
        else:
            costs.append(100.0 if true in poisonous else 1.0)
    return costs


def unknown_costs(truth: Labels, answers: Labels, *, known_as_unknown: float = 1.0) -> list[float]:
    """W^{k/u}: 10 for an unknown item that gets a class, 1 for any other mistake.

    The evaluator of FungiCLEF charges 0.1 for a known item called unknown.
    """
    costs = []
    for true, answer in zip(truth, answers, strict=True):
        if true == answer:
            costs.append(0.0)
        elif true == UNKNOWN:
            costs.append(10.0)
        else:
            costs.append(known_as_unknown if answer == UNKNOWN else 1.0)
    return costs


def log_loss(truth: Labels, probabilities: Sequence[Mapping[str, float]]) -> float:
    """The mean of -ln p of the true label."""
    losses = []
    for true, row in zip(truth, probabilities, strict=True):
        probability = row[true] / sum(row.values())
        losses.append(-math.log(min(max(probability, CLIPPED_AT), 1 - CLIPPED_AT)))
    return mean(losses)


VENOM_COSTS = {(False, False): 1.0, (False, True): 2.0, (True, False): 5.0, (True, True): 2.0}


def venom_cost(truth: Labels, answers: Labels, venomous: Collection[str]) -> float:
    """Track 2 of SnakeCLEF 2023: the sum of what mistakes cost."""
    total = 0.0
    for true, answer in zip(truth, answers, strict=True):
        if true != answer:
            total += VENOM_COSTS[true in venomous, answer in venomous]
    return total


def venom_score(truth: Labels, answers: Labels, venomous: Collection[str]) -> float:
    """Track 1 of SnakeCLEF 2023, from 0 to 100; undefined where the truth lacks venomous or harmless snakes."""
    weighted = 100 * macro_f1(truth, answers, set(truth) | set(answers))
    for kind in (False, True):
        of_kind = [pair for pair in zip(truth, answers, strict=True) if (pair[0] in venomous) == kind]
        if not of_kind:
            return math.nan
        for said in (False, True):
            wrong = sum(1 for true, answer in of_kind if true != answer and (answer in venomous) == said)
            weighted += VENOM_COSTS[kind, said] * (100 - 100 * wrong / len(of_kind))
    return weighted / 11
