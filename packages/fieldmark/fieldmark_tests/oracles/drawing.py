"""Random cases by benchmark and seed, and the pieces they are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from fieldmark_tests.oracles.tables import UNKNOWN, Row, Table

FLAGS = (("true", "false"), ("True", "False"), ("1", "0"), ("yes", "no"))
LONG_NAMES = ("Amanita muscaria", "Mycena sp. 1", "Boletus, edible", 'Russula "rosea"', "Agaricus ø", "Ring & cap")


def draw_labels(rng: Random, n: int, *, any_text: bool = False) -> list[str]:
    """Names of classes: numbers, words, or where the format allows them names with spaces and commas."""
    kind = rng.choice(("number", "word", "text" if any_text else "number"))
    if kind == "number":
        return [str(number) for number in rng.sample(range(3 * n), n)]
    if kind == "text":
        return [f"{rng.choice(LONG_NAMES)} {number}" for number in rng.sample(range(100), n)]
    return [f"{rng.choice(('agaricus', 'Boletus', 'crotalus', 'Zea'))}-{n}" for n in rng.sample(range(3 * n), n)]


def draw_items(rng: Random, n: int) -> list[str]:
    """Ids of items: numbers, file names, names with spaces."""
    numbers = rng.sample(range(10 * n), n)
    form = rng.choice(("{}", "0-{}.JPG", "photo {}.jpg", "a{}"))
    return [form.format(number) for number in numbers]


def draw_truth(rng: Random, items: Sequence[str], labels: Sequence[str], *, unknown: bool) -> list[str]:
    """True labels with a long tail; some classes are absent, and in open sets some items are of none."""
    present = rng.sample(labels, rng.randint(1, len(labels)))
    weights = [1 / (place + 1) for place in range(len(present))]
    true = rng.choices(present, weights, k=len(items))
    if unknown:
        rate = rng.choice((0.0, 0.1, 0.2, 0.3, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0))
        true = [UNKNOWN if rng.random() < rate else label for label in true]
    return true


def truth_table(rng: Random, items: Sequence[str], true: Sequence[str], *, by: Sequence[str] = ()) -> Table:
    """`id,label`, and sometimes several photos of a unit, parts, and the columns that metrics are shown by."""
    columns: dict[str, Sequence[str]] = {"id": items, "label": true}
    if rng.random() < 0.5:
        columns["unit"] = [f"observation {rng.randrange(max(len(items) // 2, 1))}" for _ in items]
    if "month" in by:
        months = rng.sample(("01", "05", "09", "10", "12"), rng.randint(1, 3))
        columns["date"] = [f"2023-{rng.choice(months)}-{rng.randint(1, 28):02d}" for _ in items]
    elif by and rng.random() < 0.5:
        columns[by[0]] = [rng.choice(("Public", "Private", "Chordata")) for _ in items]
    if "month" not in by and rng.random() < 0.1:
        columns["split"] = [rng.choice(("dna", "rest")) for _ in items]
    return Table(tuple(columns), tuple(zip(*columns.values(), strict=True)))


def classes_table(rng: Random, labels: Sequence[str], *, flag: str = "", unknown: bool = False) -> Table:
    """`label`, and the flag that a metric asks for; open sets may list -1 too."""
    listed = [*labels, UNKNOWN] if unknown and rng.random() < 0.3 else list(labels)
    if not flag:
        return Table(("label",), tuple((label,) for label in listed))
    yes, no = rng.choice(FLAGS)
    rate = rng.choice((0.3, 0.5, 0.7))
    rows: list[Row] = [(label, yes if label != UNKNOWN and rng.random() < rate else no) for label in listed]
    return Table(("label", flag), tuple(rows))


def draw_grid_score(rng: Random, steps: int) -> float:
    """A number from 0 to 1 in steps that single precision holds exactly; few steps make many ties."""
    return rng.randint(0, steps) / steps
