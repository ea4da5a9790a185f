"""Where a run came from: everything needed to say what a number means, and to make it again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fieldmark.errors import InputError
from fieldmark.storage.files import write_json
from fieldmark.version import __version__

RUN_FILE, RUN_CSV, RUN_PARQUET = "run.json", "run.csv", "run.parquet"
# Beside the runs of an ablation: what each modality is worth.
ABLATION_FILE = "ablation.json"
# How a remark begins that tells of answers known beforehand.
LEAKAGE = "LEAKAGE: "
# How a remark begins that tells of other parts than those of the benchmark.
OTHER_SPLIT = "NOT THE OFFICIAL SPLIT."
# What nobody has said of a run: what it sees, which external data went into it.
UNKNOWN = "unknown"
# The option of a run that was made elsewhere: the file it came in.
MADE_ELSEWHERE = "file"
# How people say on the command line that there are no external data.
NO_EXTERNAL_DATA = "none"


def external_data_in_words(external_data: list[str] | None) -> str:
    """A declaration of external data as a reader would put it.

    >>> external_data_in_words(["ImageNet", "a list of synonyms"]), external_data_in_words([])
    ('ImageNet; a list of synonyms', 'none')
    >>> external_data_in_words(None)
    'unknown'
    """
    return UNKNOWN if external_data is None else "; ".join(external_data) or NO_EXTERNAL_DATA


def declared_external_data(said: Sequence[str]) -> list[str] | None:
    """What people declare of something that does not declare itself: None until they do, "none" for nothing.

    >>> declared_external_data([]), declared_external_data(["none"]), declared_external_data(["ImageNet"])
    (None, [], ['ImageNet'])
    """
    return [one for one in said if one.strip().lower() != NO_EXTERNAL_DATA] if said else None


def run_file(folder: Path) -> Path:
    """The run in the folder that `fit` wrote, in whichever format; `run.csv` where there is none."""
    return next((folder / name for name in (RUN_CSV, RUN_PARQUET) if (folder / name).exists()), folder / RUN_CSV)


def recorded_external(run: Path) -> str | None:
    """What `run.json` beside a run file records of external data, empty for none; None where nothing is recorded."""
    folder = run.parent
    if run != run_file(folder) or not (folder / RUN_FILE).is_file():
        return None
    recorded = Run.read(folder).external_data
    return None if recorded is None else "; ".join(recorded)


@dataclass(frozen=True)
class Run:
    """The provenance of one run.

    Args:
        benchmark, version: What was answered.
        method, options: What answered it, with every setting, chosen ones included.
        sees: What method and steps looked at to answer an item (the item, its unit, the past, the whole test set).
        features: The backbone behind the features and its digest, if features were used.
        steps: The fitted steps, as data.
        trained_on: The parts whose labels the final model saw, and those that its steps have learned from.
        seed: The random seed.
        data: Where the release lies on this machine.
        data_digest: A fingerprint of the release's tables.
        world: The mark of a simulated release, None for a real one.
        remarks: What a reader of the numbers should know.
        seconds: How long each phase took.
        external_data: What besides the release went into the answers, pre-trained weights included; empty for nothing,
            None where nobody has said (runs made before this was asked).
        learns_from: What the method learned from, as it declares it: labels of train, items without labels, coarse
            labels; empty for runs made before this was asked.
        step_lessons: For each step that took something from labels: `step`, `learned_from` (parts of whose labels it
            keeps something for each label) and `tuned_on` (those on which it chose a few numbers that hold for all);
            empty where none did, and for runs made before this was asked.
        split: Where the parts came from, if not from the benchmark: file, digest, rule and seed.
        search: How settings were chosen by cross-validation on train, where they were: space, folds, trials, choice.
        extra_annotations: What was annotated beyond the release, on its own photos or recordings (boxes, masks), one
            sentence each; empty for nothing, None where nobody has said.
        modalities: What of an item was read, by method and steps together: photo, date, habitat, ...; empty where
            nothing was, and for runs made before this was asked.
        pooling: How items of several photos were answered: from the mean of their features ("features"), or photo by
            photo and pooled by mean, max or attention; empty where every item has one.
        skipped: Files of the release that cannot be read and were left out, as asked (`fit --skip-broken`).
        code_version, created: Which Fieldmark made the run, and when (UTC).
    """

    benchmark: str
    version: str
    method: str
    options: dict[str, Any]
    sees: str
    features: dict[str, Any] | None
    steps: list[dict[str, Any]]
    trained_on: list[str]
    seed: int
    data: str
    data_digest: str
    world: dict[str, Any] | None
    remarks: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    external_data: list[str] | None = None
    learns_from: list[str] = field(default_factory=list)
    step_lessons: list[dict[str, Any]] = field(default_factory=list)
    split: dict[str, Any] | None = None
    search: dict[str, Any] | None = None
    extra_annotations: list[str] | None = None
    modalities: list[str] = field(default_factory=list)
    pooling: str = ""
    skipped: list[str] = field(default_factory=list)
    code_version: str = __version__
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def simulated(self) -> bool:
        return self.world is not None

    @property
    def made_elsewhere(self) -> bool:
        """Whether it is a file that was only scored here."""
        return MADE_ELSEWHERE in self.options

    @property
    def leaks(self) -> list[str]:
        """Why scores of this run are too high: what it knew beforehand of the items it answers."""
        return [remark.removeprefix(LEAKAGE) for remark in self.remarks if remark.startswith(LEAKAGE)]

    @property
    def external_data_in_words(self) -> str:
        """What besides the release was used, as a scorecard or a page says it."""
        return external_data_in_words(self.external_data)

    def write(self, folder: Path) -> None:
        """Writes `run.json` into a run's folder."""
        data = {**asdict(self), "simulated": self.simulated}
        # Said where there is something to say.
        lately = ("learns_from", "step_lessons", "split", "search", "extra_annotations", "modalities", "pooling")
        for name in (*lately, "skipped"):
            if not data[name]:
                del data[name]
        write_json(folder / RUN_FILE, data)

    @classmethod
    def read(cls, folder: Path) -> Run:
        """Reads `run.json` from a run's folder."""
        path = folder / RUN_FILE
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            data.pop("simulated")
            return cls(**data)
        except (FileNotFoundError, NotADirectoryError) as error:
            hint = "Make one with `fieldmark fit`."
            raise InputError(folder, found="no run.json", expected="the folder of a run", hint=hint) from error
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise InputError(path, found=f"something else ({error})", expected="the provenance of a run") from error
