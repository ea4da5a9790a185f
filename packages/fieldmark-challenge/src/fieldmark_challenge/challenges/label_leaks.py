"""What participants are given must say nothing about the labels: a secret order, and a look for other leaks.

Lists of items come in an order that only the platform knows and that is the same on each download: by a keyed hash of
the id. What organizers bring along (ids, files, archives) cannot be reordered, but it can be tested. The test is the
runs test of Wald and Wolfowitz for any number of classes: how often do neighbors in an order have the same label, and
how often would they by chance? It is taken over independent units, since photos of one observation stand together
whatever their ids are.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import math
import re
import tarfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from scipy.special import bdtr, bdtrc, ndtr

from fieldmark.questions.truth import Truth
from fieldmark.scoring.receipts import new_key
from fieldmark_challenge.records.database import Database

ORDER_KEY = "order-key"
# Beyond chance, and by enough to help a cheater: neighbors agree in so much more (of what they could) or so much less.
LEAST_P, LEAST_EXCESS, MOST_DEFICIT = 1e-4, 0.1, 0.5
FEWEST_UNITS = 12
# A table or an archive is about the items when it names so many of them.
NAMED_SHARE = 0.5
MOST_ROWS = 5_000_000


def order_key(database: Database, challenge_id: int) -> bytes:
    """The secret by which the items of a challenge are ordered: its own, and the same as long as the platform lives."""
    secret = database.setting(ORDER_KEY, new_key)
    return hmac.new(secret, f"order of challenge {challenge_id}".encode(), hashlib.sha256).digest()


def secret_order(items: Iterable[str], key: bytes) -> tuple[str, ...]:
    """The items in an order that nobody can guess without the key, whatever order they come in.

    >>> secret_order(["a", "b", "c"], b"key") == secret_order(["c", "a", "b"], b"key")
    True
    """
    return tuple(sorted(items, key=lambda item: hmac.new(key, item.encode(), hashlib.sha256).digest()))


@dataclass(frozen=True)
class Association:
    """How much an order says about labels.

    Args:
        agreeing: The share of neighbors with the same label.
        by_chance: The share to expect if the order told nothing.
        p_value: The probability of a share so far from that by chance, from both sides.
    """

    agreeing: float
    by_chance: float
    p_value: float

    @property
    def leaks(self) -> bool:
        """Whether it is far beyond chance, and strong enough to be of use."""
        more = self.agreeing - self.by_chance >= LEAST_EXCESS * (1 - self.by_chance)
        fewer = self.agreeing <= MOST_DEFICIT * self.by_chance
        return self.p_value < LEAST_P and (more or fewer)


def runs_test(labels: Sequence[str]) -> Association:
    """The runs test for any number of classes, over all orders of the same labels.

    The p-value is the larger of two approximations: by the normal distribution with the exact mean and variance, and
    by the binomial distribution, which has the longer tail where few neighbors agree by chance.

    >>> found = runs_test(["a"] * 50 + ["b"] * 50)
    >>> round(found.agreeing, 2), round(found.by_chance, 2), found.leaks
    (0.99, 0.49, True)
    >>> runs_test(["a"] * 100).leaks
    False
    """
    codes = np.unique(np.array(labels, dtype=str), return_inverse=True)[1]
    n = len(codes)
    if n < FEWEST_UNITS:
        return Association(0.0, 0.0, 1.0)
    sizes = np.bincount(codes).astype(np.float64)
    same = int((codes[1:] == codes[:-1]).sum())
    pairs, triples = float((sizes * (sizes - 1)).sum()), float((sizes * (sizes - 1) * (sizes - 2)).sum())
    # Two pairs of neighbors share an item, or are four items; both are counted over all orders.
    apart = pairs**2 - 4 * triples - 2 * pairs
    mean = pairs / n
    second = mean + 2 * (n - 2) * triples / (n * (n - 1) * (n - 2))
    second += (n - 2) * (n - 3) * apart / (n * (n - 1) * (n - 2) * (n - 3))
    deviation = math.sqrt(max(second - mean**2, 0.0))
    share = mean / (n - 1)
    normal = 1.0 if deviation == 0 else float(2 * ndtr(-abs(same - mean) / deviation))
    above = float(bdtrc(same - 1, n - 1, share)) if same else 1.0
    p_value = min(max(normal, 2 * min(above, float(bdtr(same, n - 1, share)))), 1.0)
    return Association(same / (n - 1), share, p_value)


def leaks_of(truth: Truth, files: Iterable[Path] = ()) -> list[str]:
    """Sentences about what gives labels away: the order of the ids, and of what is offered for download.

    Args:
        truth: The truth of a challenge.
        files: What participants are given: tables with ids, archives with files called after them.
    """
    label_of = _labels(truth)
    unit_of = dict(zip(truth.items, truth.units, strict=True))

    def tells(order: Iterable[str], what: str, advice: str) -> list[str]:
        first = dict.fromkeys(unit_of[item] for item in order)
        test = runs_test([label_of[unit] for unit in first])
        if not test.leaks:
            return []
        figures = f"{test.agreeing:.0%} of neighbors have the same label, {test.by_chance:.0%} by chance"
        return [f"{what} tells labels ({figures}; runs test of Wald and Wolfowitz, p < {LEAST_P:g}). {advice}"]

    sentences = tells(sorted(truth.items, key=natural), "The order of the ids", "Give the items ids drawn at random.")
    for path in files:
        for what, key, entries in _orders(path, unit_of):
            order = [entry for entry, _ in sorted(entries, key=lambda one: (one[1], _neutral(one[0])))]
            sentences += tells(order, f"{path.name}: {what}", key)
        inside = _labels_in_names(path, unit_of, label_of)
        if inside:
            sentences.append(f"{path.name}: {inside} names its label. Rename what is inside.")
    return sentences


def natural(item: str) -> list[tuple[int, int, str]]:
    """A key that sorts numbers in names by their size, as people do.

    >>> sorted(["x10", "x9", "x"], key=natural)
    ['x', 'x9', 'x10']
    """
    pieces = re.findall(r"[0-9]+|[^0-9]+", item)
    return [(0, int(piece), "") if piece.isascii() and piece.isdigit() else (1, 0, piece) for piece in pieces]


def _labels(truth: Truth) -> dict[str, str]:
    """What is true of each unit, in one text: the label of its first item, or all of them."""
    by_item: dict[str, list[str]] = {}
    for item, label in truth.rows.select("item_id", "label").iter_rows():
        by_item.setdefault(item, []).append(str(label))
    label_of: dict[str, str] = {}
    for item, unit in zip(truth.items, truth.units, strict=True):
        label_of.setdefault(unit, "|".join(sorted(by_item.get(item, []))))
    return label_of


def _neutral(item: str) -> bytes:
    """Decides between equals without a look at their names."""
    return hashlib.blake2b(item.encode(), digest_size=8).digest()


Entries = list[tuple[str, Any]]


def _orders(path: Path, items: Mapping[str, str]) -> list[tuple[str, str, Entries]]:
    """The orders in which a file shows items: what it is, what to do about it, and each item with its place."""
    if path.suffix.lower() in (".csv", ".tsv", ".txt"):
        rows = _rows(path, items)
        return [("the order of its lines", "Sort it by id.", rows)] if rows else []
    inside = [
        (item, (place, size, time))
        for place, (name, size, time) in enumerate(_members(path))
        if (item := _item_of(name, items)) is not None
    ]
    if len(inside) < NAMED_SHARE * len(items):
        return []
    picks = (
        ("the order of its files", "Pack them sorted by name."),
        ("the size of its files", "Write all files again in the same way."),
        ("the time of its files", "Give all files one time."),
    )
    orders: list[tuple[str, str, Entries]] = [
        (what, advice, [(item, about[column]) for item, about in inside]) for column, (what, advice) in enumerate(picks)
    ]
    return [one for one in orders if len({place for _, place in one[2]}) > 1]


def _rows(path: Path, items: Mapping[str, str]) -> Entries:
    """The items that a table names, in its order; none for a table about something else."""
    best: Entries = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            columns: dict[int, dict[str, int]] = {}
            for number, row in enumerate(csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")):
                if number > MOST_ROWS:
                    break
                for column, cell in enumerate(row[:20]):
                    if cell in items:
                        columns.setdefault(column, {}).setdefault(cell, number)
    except (OSError, UnicodeDecodeError, csv.Error):
        return []
    for places in columns.values():
        if len(places) >= NAMED_SHARE * len(items) and len(places) > len(best):
            best = list(places.items())
    return best


def _members(path: Path) -> list[tuple[str, int, object]]:
    """Name, size and time of the files in an archive; none for anything else."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                return [(one.filename, one.file_size, one.date_time) for one in packed.infolist() if not one.is_dir()]
        if tarfile.is_tarfile(path):
            with tarfile.open(path) as tape:
                return [(one.name, one.size, one.mtime) for one in tape if one.isfile()]
    except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError):
        return []
    return []


def _item_of(name: str, items: Mapping[str, str]) -> str | None:
    """The item that a file in an archive is called after: by its name, or its name without the ending."""
    inside = PurePosixPath(name)
    return next((one for one in (inside.name, inside.stem) if one in items), None)


def _labels_in_names(path: Path, items: Mapping[str, str], label_of: Mapping[str, str]) -> str:
    """The first file of an archive that lies in a folder called after its label."""
    for name, _, _ in _members(path):
        item = _item_of(name, items)
        if item is not None and label_of[items[item]] in PurePosixPath(name).parts[:-1]:
            return name
    return ""
