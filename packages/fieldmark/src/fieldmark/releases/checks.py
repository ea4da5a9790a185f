"""What a check of a release reports: counts beside the published ones, and what is missing, broken or leaking."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from fieldmark.registry import require
from fieldmark.releases.record import OfRecords, ReleaseRecord
from fieldmark.storage.addresses import is_address
from fieldmark.storage.release import Release
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.media import PHOTO, Medium
from fieldmark.tables.row_problems import Severity

if TYPE_CHECKING:
    from fieldmark.releases.photo_checks import FileWords

SHOWN_PLACES = 3
# Who publishes a count.
COMPETITION_PAGE = "the competition's page"
ORGANIZERS_CODE = "the organizers' code"
CHALLENGE_PAGE = "the challenge's page"
COPIES = "copies of photos that were scaled, cut, mirrored, turned, made brighter or compressed anew,"
# Measured in studies/evidence/copies.py.
OTHER_COPIES = (
    "copies of which less than half is left, that were turned by other angles than quarters, or drawn over; "
    "other photos of the same scene"
)


@dataclass(frozen=True)
class Count:
    """How much one part holds. None: not known (labels are not published)."""

    observations: int | None = None
    photos: int | None = None
    classes: int | None = None
    unknown_classes: int | None = None
    recordings: int | None = None
    hours: float | None = None
    sites: int | None = None
    quadrats: int | None = None
    countries: int | None = None


@dataclass(frozen=True)
class PartCount:
    """The count of one part, beside what is published about it, by source."""

    part: str
    found: Count
    published: dict[str, Count] = field(default_factory=dict)


@dataclass(frozen=True)
class Problem:
    """One kind of problem: how often it occurs, and the first places (file and line, where there is one).

    Copies in two parts are all there.
    """

    severity: Severity
    what: str
    times: int
    places: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckReport:
    """The outcome of a check.

    Args:
        dataset, root, simulated: What was checked.
        counts: What each part holds.
        problems: What is missing, broken or leaking, with the first places of each kind, and with all of copies.
        lists: Where a reader needs every place and not the first ones: all of them, by what they are.
    """

    dataset: str
    root: str
    simulated: bool
    counts: tuple[PartCount, ...]
    problems: tuple[Problem, ...]
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        return not any(problem.severity == "error" for problem in self.problems)

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return {**asdict(self), "sound": self.sound}


def not_looked_for(report: CheckReport, *, media: bool, near_duplicates: bool) -> tuple[str, ...]:
    """What a check says nothing about, with the option that would look for it where there is one.

    Args:
        report: What was checked.
        media: Whether photos and recordings were opened.
        near_duplicates: Whether photos that look the same were sought.
    """
    found = [asdict(part.found) for part in report.counts]
    sentences = []
    if any(count["photos"] for count in found):
        if not near_duplicates:
            sentences.append(f"{COPIES} in two parts (--near-duplicates)")
            if not media:
                far = ", and in files far away not even their beginning" if is_address(report.root) else ""
                sentences.append(f"photos that are damaged after their first bytes{far} (--photos)")
        else:
            sentences.append(OTHER_COPIES)
    if any(count["recordings"] for count in found):
        if not media:
            sentences.append("recordings that are damaged after their first bytes (--media)")
        sentences.append("recordings that sound the same: their bytes alone are compared")
    return tuple(sentences)


class Checker(Protocol):
    """Checks a release.

    `media` also opens every photo or recording, `near_duplicates` also compares them across parts.
    """

    def __call__(self, release: Release, *, media: bool = False, near_duplicates: bool = False) -> CheckReport: ...


class Problems:
    """Problems as they are met, by kind."""

    def __init__(self) -> None:
        self._found: dict[tuple[Severity, str], list[str]] = {}
        self._shown: dict[str, int | None] = {}

    def add(
        self,
        severity: Severity,
        what: str,
        places: Sequence[str] | Callable[[], Sequence[str]] = (),
        *,
        every: bool = False,
    ) -> None:
        """Notes a kind of problem with all its places; without any, it is a problem of the release as a whole.

        Args:
            severity: How bad it is.
            what: What it is.
            places: Where.
            every: Whether the report holds every place, and not the first ones.
        """
        listed = list(places() if callable(places) else places)
        if every:
            self._shown[what] = None
        self._found.setdefault((severity, what), []).extend(listed or [""])

    def at(self, severity: Severity, what: str, places: Sequence[str], *, every: bool = False) -> None:
        """Adds a kind of problem with its places; nothing where there are none."""
        if places:
            self.add(severity, what, places, every=every)

    def places(self) -> list[str]:
        """Every place of every problem."""
        return [place for places in self._found.values() for place in places if place]

    def listed(self) -> tuple[Problem, ...]:
        """All problems, errors first."""
        order = {"error": 0, "warning": 1, "note": 2}
        problems = [
            Problem(severity, what, len(places), tuple(filter(None, places))[: self._shown.get(what, SHOWN_PLACES)])
            for (severity, what), places in self._found.items()
        ]
        return tuple(sorted(problems, key=lambda problem: order[problem.severity]))


@dataclass(frozen=True)
class ReleaseCheck:
    """What the generic check knows about a release besides what its reader says.

    Args:
        published: What is published about a part, by source. Parts joined by " and " are counted together as well.
        note: What is published in rounded figures alone, or not at all.
    """

    published: Mapping[str, Mapping[str, Count]] = field(default_factory=dict)
    note: str = ""


@dataclass
class CheckRun:
    """A check as it goes on, for what is particular to a release whose reader passes over what a check must see.

    Args:
        name: Of the dataset: editions share what is particular to them.
        release: Its root.
        media: Whether each photo or recording is opened; otherwise only its presence is checked.
        near_duplicates: Whether photos that look the same are sought across parts.
        problems: What was met so far.
        lists: As in the report.
    """

    name: str
    release: Release
    media: bool
    near_duplicates: bool
    problems: Problems = field(default_factory=Problems)
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def real(self) -> bool:
        """Whether the release is no simulated one."""
        return self.release.world is None

    def check_files(self, listed: pl.DataFrame, words: FileWords, medium: Medium = PHOTO) -> None:
        """Looks at the files that tables name (`photo_checks.check_listed_files`)."""
        from fieldmark.releases.photo_checks import check_listed_files

        options = {"media": self.media, "near_duplicates": self.near_duplicates}
        check_listed_files(self.release, listed, self.problems, words, medium=medium, **options)

    def check_photos(self, split_of: Mapping[str, str]) -> None:
        """Looks at photos that are there, by the split of each (`photo_checks.check_split_photos`)."""
        from fieldmark.releases.photo_checks import check_split_photos

        options = {"media": self.media, "near_duplicates": self.near_duplicates}
        check_split_photos(self.release, split_of, self.problems, **options)

    def report(self, counts: Sequence[PartCount]) -> CheckReport:
        """The outcome."""
        return CheckReport(
            self.name, str(self.release.root), not self.real, tuple(counts), self.problems.listed(), self.lists
        )


def check_release(
    record: ReleaseRecord, release: Release, *, media: bool = False, near_duplicates: bool = False
) -> CheckReport:
    """Checks a release by what its reader says of it: counts, files that are missing or broken, overlaps, leaks.

    Args:
        record: The release.
        release: Its root.
        media: Whether each photo or recording is opened; otherwise only its presence is checked.
        near_duplicates: Whether photos that look the same are sought across parts.
    """
    from fieldmark.releases.photo_checks import FileWords

    run = CheckRun(record.name, release, media, near_duplicates)
    if isinstance(record.check, str):
        module, _, particular = record.check.partition(":")
        return run.report(getattr(require(module, f"The check {record.name!r}"), particular)(run))
    known, dataset = record.check or ReleaseCheck(), record.open(release, "all")
    _check_overlaps(dataset, run.problems)
    for remark in dataset.remarks:
        run.problems.add("note", remark.rstrip("."))
    if run.real and known.note:
        run.problems.add("note", known.note)
    run.check_files(dataset.media, FileWords(f"a {dataset.medium} that a table names is missing"), dataset.medium)
    return run.report(_counts(known, dataset))


def _counts(known: ReleaseCheck, dataset: Dataset) -> list[PartCount]:
    """Every part, and those that are published together."""
    listed = _listed(dataset)
    parts = listed["parts"].explode().drop_nulls().unique().sort().to_list()
    together = [part for part in known.published if " and " in part]
    return [
        PartCount(part, _count(dataset, listed, part.split(" and ")), dict(known.published.get(part, {})))
        for part in (*together, *parts)
    ]


def _listed(dataset: Dataset) -> pl.DataFrame:
    """What the parts list: media with the labels of their observations, or places."""
    if "parts" in dataset.observations.columns:
        return dataset.observations
    labels = dataset.observations.drop([one for one in dataset.media.columns if one != "observation_id"], strict=False)
    return dataset.media.join(labels, on="observation_id", how="left", maintain_order="left")


def _count(dataset: Dataset, listed: pl.DataFrame, parts: list[str]) -> Count:
    rows = listed.filter(listed["parts"].list.set_intersection(parts).list.len() > 0)
    labels = rows["labels"].explode() if "labels" in rows.columns else rows["label"]
    classes = labels.drop_nulls().n_unique() or None
    if dataset.media.is_empty():
        return Count(observations=len(rows), classes=classes)
    observations = rows["observation_id"].n_unique() if dataset.medium.visual else None
    return Count(observations=observations, classes=classes, **{dataset.medium.plural: len(rows)})


def _check_overlaps(dataset: Dataset, problems: Problems) -> None:
    """Observations with photos in train and in a part that is asked about give answers away."""
    parts = dataset.media.explode("parts").group_by("observation_id").agg(pl.col("parts").unique().sort())
    both = parts.filter((pl.col("parts").list.len() > 1) & pl.col("parts").list.contains("train")).sort(
        "observation_id"
    )
    places = [f"{name}: {' and '.join(one)}" for name, one in both.head(100).iter_rows()]
    problems.at("warning", f"{len(both):,} observation(s) have photos in train and in another part", places)


class Checks(OfRecords[Checker]):
    """The check of each release."""

    def of(self, record: ReleaseRecord) -> Checker:
        return partial(check_release, record)


CHECKS = Checks("check", "check")
