"""A person going through answers: what is shown next, what was said, and whether the list is good enough.

`review.jsonl` in the folder of the answers holds one line for each look, only ever added to:

```
{"observation_id": "IMG_0012", "name": "Parus major", "machine": "Cyanistes caeruleus", "drawn": "uncertain", ...}
{"passed": "IMG_0400"}
```

A later line about the same observation replaces what was said, not how it came to be looked at. `name` is empty where
the person could not tell. `passed` notes that the order of certainty has gone past an observation that had been drawn
at random before (`identification.review.queue`).
"""

from __future__ import annotations

import datetime
import json
import os
import statistics
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.identification.review.answer_folders import AnsweredEntry, AnswerFolder, read_answers
from fieldmark.identification.review.queue import Audit, Drawn, ReviewQueue
from fieldmark.stats.audits import StoppingRule
from fieldmark.storage.files import appearing_file
from fieldmark.tables.schema import RANKS

LOG_FILE: Final = "review.jsonl"
CHECKED_FILE: Final = "checked.csv"
FINISHED_FILE: Final = "finished.csv"
SHARE, RISK, ONE_IN = 0.95, 0.05, 10


@dataclass(frozen=True)
class ReviewLook:
    """What a person said about one observation.

    Args:
        observation_id: Which.
        name: What it is; empty where the person could not tell.
        machine: What the machine had said.
        drawn: How it came to be looked at.
        when: When, in UTC.
        seconds: How long it took; None where that is not known.
    """

    observation_id: str
    name: str
    machine: str
    drawn: Drawn
    when: str
    seconds: float | None = None


@dataclass(frozen=True)
class Progress:
    """How far a review has come.

    Args:
        entries, looked, corrected, untold: How long the list is, how many were reviewed, how many of those got another
            name, and about how many the person could not tell.
        audit: What those drawn at random say; None for labels, where nothing is drawn.
        enough: Whether the list is good enough by the stopping rule.
        next_look: At how many drawn at random the bound is looked at next.
        typical_s: The median of seconds per look.
    """

    entries: int
    looked: int
    corrected: int
    untold: int
    audit: Audit | None
    enough: bool
    next_look: int | None
    typical_s: float | None


class Review:
    """The review of a folder of answers. Its methods may be called from several threads.

    Args:
        folder: The folder.
        share: The share of the finished list that must be correct.
        risk: The chance that the list is called good enough and is not.
        one_in: Of so many looks one is at random.
        seed: The seed of those drawn at random.

    Raises:
        InputError: When there are no answers, or the log of an earlier review is damaged.
    """

    def __init__(
        self, folder: Path, *, share: float = SHARE, risk: float = RISK, one_in: int = ONE_IN, seed: int = 0
    ) -> None:
        self.folder = folder
        self.answers: AnswerFolder = read_answers(folder)
        self.looks: dict[str, ReviewLook] = {}
        # Doubted labels are a list of suspects, strongest first: nothing is drawn from it, and nothing audited.
        self.of_labels = self.answers.about.get("question") == "labels"
        # Clips were drawn at random by strata (`listening`): all of them are answered, and nothing is drawn again.
        self.of_clips = self.answers.about.get("question") == "listening"
        alone = self.of_labels or self.of_clips
        certainty = dict(zip(self.answers.table["observation_id"], self.answers.table["certainty"], strict=True))
        self._queue = ReviewQueue(certainty, seed=seed, one_in=len(certainty) + 2 if alone else one_in)
        self.rule = StoppingRule(share, risk, max(1, len(certainty)), one_in)
        self.enough = False
        self._listed = dict(zip(self.answers.table["observation_id"], self.answers.table["name"], strict=True))
        kept = self.answers.table["given" if self.of_labels else "name"]
        self._unless_corrected = dict(zip(self.answers.table["observation_id"], kept, strict=True))
        self._taxa = {str(taxon["label"]): taxon for taxon in self.answers.taxa}
        self._lock = threading.Lock()
        self._read_log()

    def next(self) -> tuple[AnsweredEntry, Drawn] | None:
        """The entry to look at next, and how it came up; None when all have been looked at."""
        with self._lock:
            reached = len(self._queue.reached)
            shown = self._queue.next()
            for passed in list(self._queue.reached)[reached:]:
                self._append({"passed": passed})
            return None if shown is None else (self.answers[shown[0]], shown[1])

    def decide(self, observation: str, name: str, *, seconds: float | None = None) -> ReviewLook:
        """Takes what a person says about an observation; said again, it replaces what was said before.

        Raises:
            MisuseError: When there is no such observation, or the name is too long to be one.
        """
        name = " ".join(name.split())
        if observation not in self.answers:
            raise MisuseError(f"There is no observation {observation!r} among these answers.")
        if len(name) > 200:
            raise MisuseError("A name has at most 200 characters.")
        shown = self.next()
        with self._lock:
            earlier = self.looks.get(observation)
            if earlier is not None:
                drawn = earlier.drawn
            elif shown is not None and shown[0].observation_id == observation:
                drawn = shown[1]
            else:  # found by search, or shown to two people at once: it is reached, and stands for nothing else
                drawn = Drawn.UNCERTAIN
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            machine = self.answers[observation].name
            look = ReviewLook(observation, name, machine, drawn, now, None if seconds is None else round(seconds, 1))
            self._append({**vars(look), "drawn": drawn.value})
            self._take(look)
            self._look_at_bound(drawn, new=earlier is None)
            self._write_checked()
            return look

    def last(self) -> ReviewLook | None:
        """What was said last."""
        return next(reversed(self.looks.values()), None)

    def is_right(self, observation: str) -> bool:
        """Whether what stands in the list agrees with what the person said: the name, or a group that it belongs to."""
        said, listed = self.looks[observation].name, self._listed[observation]
        if not listed:  # the machine gave no name: right for what it cannot know
            return bool(said) and said not in self._taxa
        if said == listed:
            return True
        return listed in {str(self._taxa.get(said, {}).get(rank)) for rank in (*RANKS, "common_name")} - {"None"}

    def progress(self) -> Progress:
        """How far it has come."""
        with self._lock:
            audit = None if self.of_labels or self.of_clips else self._queue.audit(self.rule, self.is_right)
            taken = [look.seconds for look in self.looks.values() if look.seconds is not None]
            return Progress(
                entries=len(self.answers),
                looked=len(self.looks),
                corrected=sum(look.name not in ("", self._unless_corrected[one]) for one, look in self.looks.items()),
                untold=sum(not look.name for look in self.looks.values()),
                audit=audit,
                enough=self.enough or len(self.looks) == len(self.answers),
                next_look=None if audit is None else self.rule.next_look(audit.drawn_in_all),
                typical_s=statistics.median(taken) if taken else None,
            )

    def finished(self) -> pl.DataFrame:
        """The list: what the person said where they looked, what the machine said elsewhere."""
        table = self.answers.table
        said = pl.DataFrame(
            {
                "observation_id": list(self.looks),
                "said": [look.name for look in self.looks.values()],
                "drawn": [look.drawn.value for look in self.looks.values()],
            },
            schema={"observation_id": pl.String, "said": pl.String, "drawn": pl.String},
        )
        rows = table.join(said, on="observation_id", how="left", maintain_order="left")
        machine = pl.coalesce("given", "name") if self.of_labels else pl.col("name")
        return rows.select(
            "observation_id",
            file=pl.col("files").list.join(";"),
            name=pl.coalesce("said", machine),
            by=pl.when(pl.col("said").is_null()).then(pl.lit("machine")).otherwise(pl.lit("person")),
            probability=pl.when(pl.col("said").is_null()).then("probability"),
            machine=pl.col("name"),
        )

    def checked(self) -> pl.DataFrame:
        """What was looked at and told, one row per file, as `fit --add` and `calibrate` read it."""
        rows: list[dict[str, Any]] = []
        for observation, look in self.looks.items():
            entry = self.answers[observation]
            if not look.name:
                continue
            for file in entry.files:
                rows.append(
                    {
                        "file": str(self.answers.path_of(file)),
                        "label": look.name,
                        "observation": observation,
                        "drawn": look.drawn.value,
                        "machine": look.machine,
                        "probability": entry.probability,
                        "when": look.when,
                        "date": entry.date,
                        "lat": entry.lat,
                        "lon": entry.lon,
                    }
                )
        texts = ("file", "label", "observation", "drawn", "machine", "when")
        schema = {**dict.fromkeys(texts, pl.String), "probability": pl.Float64, "date": pl.Date}
        columns = ("file", "label", "observation", "drawn", "machine", "probability", "when", "date", "lat", "lon")
        return pl.DataFrame(rows, schema={name: schema.get(name, pl.Float64) for name in columns})

    def _take(self, look: ReviewLook) -> None:
        self.looks.pop(look.observation_id, None)  # the last one said stands last
        self.looks[look.observation_id] = look
        self._queue.note(look.observation_id, look.drawn)

    def _look_at_bound(self, drawn: Drawn, *, new: bool) -> None:
        """Looks at the bound, when the draw has one of the sizes at which that is allowed."""
        if new and drawn is Drawn.RANDOM and len(self._queue.drawn) in self.rule.looks:
            audit = self._queue.audit(self.rule, self.is_right)
            self.enough = self.enough or audit.share_right >= self.rule.share

    def _append(self, line: Mapping[str, Any]) -> None:
        with (self.folder / LOG_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _read_log(self) -> None:
        path = self.folder / LOG_FILE
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for number, line in enumerate(lines, start=1):
            try:
                data = json.loads(line)
                if "passed" in data:
                    self._queue.reached.setdefault(data["passed"], None)
                    continue
                look = ReviewLook(**{**data, "drawn": Drawn(data["drawn"])})
            except (json.JSONDecodeError, TypeError, KeyError, ValueError) as error:
                if number == len(lines):  # cut off while it was written: that look is asked again
                    with appearing_file(path) as partial:
                        partial.write_text("".join(f"{one}\n" for one in lines[:-1]), encoding="utf-8")
                    continue
                raise InputError(
                    path,
                    line=number,
                    found="something else",
                    expected="a look of an earlier review",
                    hint="Remove the line; the observation is then shown again.",
                ) from error
            if look.observation_id not in self.answers:
                continue  # answered anew from fewer photos
            new = look.observation_id not in self.looks
            self._take(look)
            self._look_at_bound(look.drawn, new=new)

    def _write_checked(self) -> None:
        with appearing_file(self.folder / CHECKED_FILE) as partial:
            self.checked().write_csv(partial)

    def write_finished(self, path: Path | None = None) -> Path:
        """Writes the list as a CSV table."""
        target = path or self.folder / FINISHED_FILE
        with appearing_file(target) as partial:
            self.finished().write_csv(partial)
        return target
