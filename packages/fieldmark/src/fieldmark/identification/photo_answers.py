"""The answer to photos of one specimen: one object that text, JSON, pages and tables are made of.

`to_json` is the contract for programs: its keys are the fields below.
"""

from __future__ import annotations

import datetime
import html
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from fieldmark.identification.results import Circumstances
from fieldmark.notebooks import BLUE, DrawnPlot, draw_plot, html_note, html_page, html_table
from fieldmark.tables.media import PHOTO

ALARM = "#d55e00"


@dataclass(frozen=True)
class Name:
    """One name that an answer gives.

    Args:
        label: What the model calls it.
        species, common_name: The scientific and the common name, where they are known.
        probability: How sure, from 0 to 1.
        poisonous: Whether it is (venomous, for snakes), where that is known.
        common_names: Common names by language, where there is a table.
    """

    label: str
    species: str | None
    common_name: str | None
    probability: float
    poisonous: bool | None = None
    common_names: Mapping[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The name a person would use."""
        return self.common_name or self.species or self.label


@dataclass(frozen=True)
class RankedClaim:
    """What the model is sure enough of: a taxon of the lowest rank that it may be said at.

    Args:
        rank: species, genus, family, ...; "name" where the ranks of the labels are not known.
        name: The taxon.
        probability: How sure, and never surer than answers of this kind were right on val.
        labels: The labels of the model that belong to it.
        lineage: The taxa above it by rank, as far as they are known.
        right_on_val: How many answers at this rank were given on val, and how many of them were right.
        label: The label of the model where that itself is claimed, None for a taxon above the labels.
        common_name: What people call it, where that is known.
    """

    rank: str
    name: str
    probability: float
    labels: tuple[str, ...]
    lineage: Mapping[str, str] = field(default_factory=dict)
    right_on_val: tuple[int, int] | None = None
    label: str | None = None
    common_name: str | None = None


@dataclass(frozen=True)
class UnknownVerdict:
    """Whether the specimen is like anything that the model was shown.

    Args:
        known: False where it may be none of the names that the model knows; None where the model cannot tell.
        strangeness: From 0 to 1: the share of the photos of known species on val that looked less strange.
        line: From which strangeness on it may be unknown.
        because: Why, in a sentence; empty for known.
    """

    known: bool | None
    strangeness: float | None = None
    line: float | None = None
    because: str = ""


@dataclass(frozen=True)
class LookAlike:
    """A dangerous species that it could be, with training photos of it that look most alike, where there are any."""

    name: Name
    photos: tuple[Path, ...] = ()


@dataclass(frozen=True)
class DangerNotice:
    """Why to be careful.

    Args:
        group: fungi, snakes, ... (`models.guides.living_groups`).
        probability: How likely it is one of the poisonous or venomous species that the model knows.
        allowed: The highest probability that goes without a notice.
        because: The reasons, one sentence each.
        look_alikes: Dangerous species that it could be, the likeliest first.
        advice: What to do and not to do, one sentence each.
        brief: Whether one line says it all: no dangerous group is plausible.
    """

    group: str
    probability: float
    allowed: float
    because: tuple[str, ...]
    look_alikes: tuple[LookAlike, ...]
    advice: tuple[str, ...]
    brief: bool = False


@dataclass(frozen=True)
class ShortList:
    """The shortest list that holds the right name as often as promised (a conformal set).

    Args:
        names: The names, the likeliest first.
        coverage: What is promised, None where the promise is withdrawn.
        calibrated_on: How many observations of val it rests on.
        withdrawn: Why there is no promise; empty where there is one.
    """

    names: tuple[Name, ...]
    coverage: float | None
    calibrated_on: int = 0
    withdrawn: str = ""


@dataclass(frozen=True)
class Contribution:
    """How much one thing that was known moved the answer: the probability of the first name without it and with it."""

    name: str
    value: str
    without: float
    with_it: float


@dataclass(frozen=True)
class Neighbor:
    """A training photo that looks alike.

    Args:
        label, shown: What it shows.
        likeness: The cosine between its features and those of the photos asked about.
        photo: Where it lies, None where it is gone.
        path: Where it lay in the release.
    """

    label: str
    shown: str
    likeness: float
    photo: Path | None
    path: str


@dataclass(frozen=True)
class PhotoAnswer:
    """What a photo shows, or several of one specimen.

    Args:
        file: The photo.
        names: The likeliest names, best first.
        unknown: How strongly it looks like none of the labels by the model's own score, where it has one.
        simulated: Whether the model learned from simulated data.
        remarks: What a person should know about the answer.
        further: Further photos of the same specimen, which the answer rests on as well.
        claim: What the model is sure enough of; None where that is nothing.
        verdict: Whether it is like anything that the model knows.
        danger: Why to be careful; None where there is no reason.
        short_list: The shortest honest list; None for models that cannot give one.
        sources: How much photo, season, place and habitat moved the answer.
        ignored: What was given and not used, one sentence each.
        missing: What the model could use and was not given.
        nearest: Most similar training photos.
        next_photos: Photos that would help.
        microscopic: Which of the photos look like microscopy, by their place from 0 on.
        knows: How many names the model knows.
        group: What kind of living thing it most likely is: fungi, snakes, ... (`models.guides.living_groups`).
        groups: The probability of each such group by the packaged network, whatever model gives the names; empty where
            it is not installed, or the model is of simulated species.
        threatened: Whether a likely name is of a threatened species, so that its place is not to be told exactly.
        circumstances: What was known besides the photos.
        overlay: Where the model looks: a PNG to lay over the first photo, where it was asked for.
    """

    file: Path
    names: tuple[Name, ...]
    unknown: float | None
    simulated: bool
    remarks: tuple[str, ...] = ()
    further: tuple[Path, ...] = ()
    claim: RankedClaim | None = None
    verdict: UnknownVerdict = UnknownVerdict(None)
    danger: DangerNotice | None = None
    short_list: ShortList | None = None
    sources: tuple[Contribution, ...] = ()
    ignored: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    nearest: tuple[Neighbor, ...] = ()
    next_photos: tuple[str, ...] = ()
    microscopic: tuple[int, ...] = ()
    knows: int = 0
    group: str = ""
    groups: Mapping[str, float] = field(default_factory=dict)
    threatened: bool = False
    circumstances: Circumstances = field(default_factory=Circumstances)
    overlay: bytes | None = field(default=None, repr=False)

    @property
    def photos(self) -> tuple[Path, ...]:
        """All photos that the answer rests on."""
        return (self.file, *self.further)

    def to_frame(self) -> pl.DataFrame:
        """One row for each name, best first."""
        return pl.DataFrame(
            {
                "label": [name.label for name in self.names],
                "species": pl.Series([name.species for name in self.names], dtype=pl.String),
                "common_name": pl.Series([name.common_name for name in self.names], dtype=pl.String),
                "probability": [name.probability for name in self.names],
                "poisonous": pl.Series([name.poisonous for name in self.names], dtype=pl.Boolean),
            }
        )

    def plot(self) -> DrawnPlot:
        """The probability of each name."""

        def paint(axes: Any) -> None:
            colors = [ALARM if name.poisonous else BLUE for name in self.names]
            axes.barh([name.shown for name in self.names], [name.probability for name in self.names], color=colors)
            axes.invert_yaxis()
            axes.set_xlim(0, 1)
            danger = "; orange: poisonous or venomous" if any(name.poisonous for name in self.names) else ""
            axes.set_xlabel(f"probability{danger}" + ("\nmodel of simulated data" if self.simulated else ""))

        return draw_plot(paint, height=1.0 + 0.4 * len(self.names))

    def __repr__(self) -> str:
        from fieldmark.identification.text import headline

        return f"<PhotoAnswer about {self.file.name}: {headline(self)}>"

    def _repr_html_(self) -> str:
        from fieldmark.identification.text import danger_lines, headline, percent, sentences

        warned = ""
        if self.danger is not None:
            lines = "<br>".join(html.escape(line) for line in danger_lines(self.danger))
            warned = f"<p style='border-left:4px solid {ALARM};padding-left:.8em'>{lines}</p>"
        rows = [[name.shown, percent(name.probability), "poisonous" if name.poisonous else ""] for name in self.names]
        notes = [html_note(sentence) for sentence in (*sentences(self), *self.remarks)]
        table = html_table(["name", "probability", ""], rows)
        return html_page(headline(self), warned, table, *notes, simulated=self.simulated)

    def to_json(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "kind": PHOTO.name,
            **_plain({name: value for name, value in _fields(self).items() if name != "overlay"}),
        }


def _fields(answer: PhotoAnswer) -> dict[str, Any]:
    return {
        name: asdict(value) if hasattr(value, "__dataclass_fields__") else value for name, value in vars(answer).items()
    }


def _plain(value: Any) -> Any:
    """Paths as text, tuples as lists, numbers with six digits."""
    if isinstance(value, Path | datetime.date):
        return str(value)
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return _plain(asdict(value)) if hasattr(value, "__dataclass_fields__") else value
