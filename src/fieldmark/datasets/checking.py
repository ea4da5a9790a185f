"""What a check of a release reports: counts beside the published ones, and what is missing, broken or leaking."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from fieldmark.foundation.addresses import is_address
from fieldmark.foundation.registry import Registry
from fieldmark.release import Release

Severity = Literal["error", "warning", "note"]
SHOWN_PLACES = 3
COPIES = "copies of photos that were scaled, cut, mirrored, turned, made brighter or compressed anew,"
# Measured in evidence/copies.py.
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


CHECKS: Registry[Checker] = Registry(
    "check",
    {
        "fgvcx-fungi-2018": (
            "fieldmark.datasets.fgvcx_fungi_check:check_fgvcx_fungi",
            "FGVCx Fungi 2018: counts of the draft and of the final release, ids, files",
        ),
        "folder": (
            "fieldmark.datasets.folder_check:check_folder",
            "your own photos or recordings: classes and files",
        ),
        "folder-masks": (
            "fieldmark.datasets.folder_masks_check:check_folder_masks",
            "your own photos with masks: photos without one, masks that cannot be read",
        ),
        "birdclef-2020": ("fieldmark.datasets.birdclef_check:check_birdclef", "BirdCLEF 2020: counts, labels, leaks"),
        **{
            f"birdclef-{year}": (
                f"fieldmark.datasets.later_editions_check:CHECK_{year}",
                f"BirdCLEF {year}: counts, files",
            )
            for year in range(2021, 2027)
        },
        **{
            f"animalclef-{year}": (
                f"fieldmark.datasets.later_editions_check:CHECK_ANIMALS_{year}",
                f"AnimalCLEF {year}: counts, files",
            )
            for year in (2025, 2026)
        },
        **{
            f"{challenge}-{year}": (
                f"fieldmark.datasets.later_editions_check:CHECK_{word}_{year}",
                f"{title} {year}: counts, files",
            )
            for challenge, word, title, years in (
                ("fungiclef", "FUNGI", "FungiCLEF", (2022, 2023)),
                ("snakeclef", "SNAKES", "SnakeCLEF", (2022, 2023, 2024)),
                ("plantclef", "PLANTS", "PlantCLEF", (2022, 2024)),
                ("geolifeclef", "SURVEYS", "GeoLifeCLEF", (2023, 2024, 2025)),
            )
            for year in years
        },
        "fathomnet-2025": (
            "fieldmark.datasets.later_editions_check:CHECK_FATHOMNET",
            "FathomNet 2025: counts, regions that are missing",
        ),
        "fungitastic": ("fieldmark.datasets.fungitastic_check:check_fungitastic", "FungiTastic: counts, files, leaks"),
        "snakeclef-2020": (
            "fieldmark.datasets.snakeclef.check:check_snakeclef_2020",
            "SnakeCLEF 2020: counts, classes, extremes, places, the table of presence",
        ),
        "snakeclef-2021": (
            "fieldmark.datasets.snakeclef.check:check_snakeclef_2021",
            "tables of SnakeCLEF 2021: counts, places, overlaps, the table of presence",
        ),
        "plantclef-2020": (
            "fieldmark.datasets.plantclef_check:check_plantclef",
            "PlantCLEF 2020: counts of the overview, XML files, pairs, leaks",
        ),
        "plantclef-2021": (
            "fieldmark.datasets.plantclef_check:check_plantclef_2021",
            "PlantCLEF 2021: the pictures of 2020",
        ),
        "semi-inat-2021": (
            "fieldmark.datasets.semi.check:check_semi_inat",
            "Semi-iNat 2021: species by phylum, photos by part, what the document says in two ways",
        ),
        "semi-aves-2020": (
            "fieldmark.datasets.semi.check:check_semi_aves",
            "Semi-Aves 2020: photos and classes by part, files",
        ),
        **{
            f"geolifeclef-{year}": (
                f"fieldmark.datasets.geolifeclef.check:check_geolifeclef_{year}",
                f"GeoLifeCLEF {year}: counts, ids, quadrats, points outside the rasters, patches",
            )
            for year in (2020, 2021, 2022)
        },
        "occurrences": (
            "fieldmark.datasets.occurrences.check:check_occurrences",
            "occurrences: coordinates, dates, ids and names that cannot be, photos that are missing",
        ),
    },
)


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

    def listed(self) -> tuple[Problem, ...]:
        """All problems, errors first."""
        order = {"error": 0, "warning": 1, "note": 2}
        problems = [
            Problem(severity, what, len(places), tuple(filter(None, places))[: self._shown.get(what, SHOWN_PLACES)])
            for (severity, what), places in self._found.items()
        ]
        return tuple(sorted(problems, key=lambda problem: order[problem.severity]))
