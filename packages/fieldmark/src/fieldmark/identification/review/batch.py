"""Naming many observations: block by block at the speed of the backbone, going on where it stopped.

While it runs, `ANSWERS/.partial` holds one Parquet file for each block that is done, under the digest of the model and
of what it was asked with; the same command goes on from them. Observations that were answered before, by the same model
and from the same files with the same context, are not asked again.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import InputError, MisuseError
from fieldmark.identification.identify import BIRDNET, identify, named_model
from fieldmark.identification.label_facts import LabelFacts
from fieldmark.identification.name_lists import NameFinder, restriction_of
from fieldmark.identification.packaged.photo_groups import group_chances
from fieldmark.identification.photo_answers import PhotoAnswer
from fieldmark.identification.photos import PhotoQuestion, answer_photos
from fieldmark.identification.results import Circumstances, Timeline
from fieldmark.identification.review.answer_folders import (
    PARTIAL,
    SCHEMA,
    TABLE_FILE,
    AnsweredEntry,
    AnswerFolder,
    refuse_occupied,
    table_of,
)
from fieldmark.identification.review.observations import Asked, AskedMany, files_of, read_observations, seconds_of
from fieldmark.identification.specimens import SpecimenQuery
from fieldmark.identification.text import full_name
from fieldmark.models import Model
from fieldmark.models.guides.rollup import OF_LABEL
from fieldmark.questions.items import loose_items
from fieldmark.registry import imported
from fieldmark.storage.files import appearing_file, only_writer, sha256_of
from fieldmark.storage.parquet import read_frame
from fieldmark.tables.media import PHOTO, RECORDING, Medium
from fieldmark.tables.schema import RANKS
from fieldmark.views.parts import Part, loose_media
from fieldmark.work.blocks import blocks_of, map_blocks
from fieldmark.work.engines import cluster, working_on
from fieldmark.work.progress import no_progress, progress

NAMES_EACH: Final = 5
# How answers are recorded; raised where that changes, so that earlier ones are asked again.
RECORDED: Final = 3
NOTHING_HEARD: Final = "nothing heard"


@dataclass(frozen=True)
class BatchSettings:
    """How many observations are asked about.

    Args:
        only, exclude: Names, taxa or lists of names (`identification.name_lists`).
        at_least: From which score on a voice in a recording is an entry.
        pooling: How several photos of one observation are pooled.
        known: What is known about all of them, by the names of columns.
        exif: Whether dates and places are read from what cameras noted.
        thresholds: A table `name,at_least`: the lowest probability at which each species is named.
        synonyms: Other names, each with the model's name for it.
        each_window: Whether windows of a recording stay apart where a name is heard in several in a row.
    """

    only: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    at_least: float = 0.25
    pooling: str = "mean"
    known: Mapping[str, Any] = field(default_factory=dict)
    exif: bool = False
    thresholds: Path | None = None
    synonyms: Mapping[str, str] = field(default_factory=dict)
    each_window: bool = False


@dataclass(frozen=True)
class BatchDone:
    """What a batch made: the answers, how many were asked now, and how many had been answered before."""

    answers: AnswerFolder
    asked: int
    before: int


def identify_many(
    place: Path,
    model: str | Path,
    out: Path,
    settings: BatchSettings | None = None,
    *,
    engine: str | None = None,
    address: str | None = None,
) -> BatchDone:
    """Names all observations of a folder or a table, and writes the folder of answers.

    Args:
        place: A folder of photos or recordings, or a table of observations.
        model: The folder of a model or of the run that made it; or "birdnet".
        out: The folder of answers; what a person checked there stays.
        settings: How to ask.
        engine: What names them: "local", or "ray" for a cluster (`work.engines`), block by block.
        address: With "ray": the address of the cluster, "auto" for the one of this machine.

    Raises:
        InputError: When there is nothing to name, or the table or the model is at fault.
        MisuseError: When `out` holds something else.
    """
    settings = settings or BatchSettings()
    refuse_occupied(out)
    asking = _asking(str(model), settings)
    many = read_observations(place, asking.medium).with_known(settings.known)
    many = many.with_exif() if settings.exif else many
    out.mkdir(parents=True, exist_ok=True)
    with only_writer(out), working_on(engine, address):
        answered = out / PARTIAL / asking.digest
        done = _done_before(out, asking.digest, many)
        left = [one for one in many.observations if _key(one) not in done]
        tables = list(done.values())
        with progress(f"naming {asking.medium.plural}", len(left)) as tick:
            blocks = list(blocks_of(left, asking.medium.block))
            named = map_blocks(partial(asking.table, root=many.root), blocks, cluster())
            for block, table in zip(blocks, named, strict=True):
                with appearing_file(answered / f"{_key(block[0])}.parquet") as file:
                    table.write_parquet(file)
                tables.append(table)
                tick(len(block))
        answers = AnswerFolder(_ordered(tables, many), many.root.absolute(), asking.about(many), asking.taxa)
        answers.write(out)
        shutil.rmtree(out / PARTIAL, ignore_errors=True)
    return BatchDone(answers, len(left), len(many.observations) - len(left))


@dataclass(frozen=True)
class AskedModel:
    """A model with how it is asked."""

    name: str
    model: Model | None
    settings: BatchSettings
    digest: str

    @property
    def medium(self) -> Medium:
        return RECORDING if self.model is None else self.model.medium  # BirdNET hears

    @property
    def taxa(self) -> list[dict[str, Any]]:
        """The names that can be chosen from, with their ranks."""
        if self.model is None:
            from fieldmark.features.birdnet import BirdNet

            return [{"label": name, "species": name, "common_name": common} for name, common in BirdNet().species]
        known_of = ("label", *RANKS, "scientific_name", "common_name", "red_list")
        kept = [name for name in known_of if name in self.model.taxa.columns]
        known = {row["label"]: row for row in self.model.taxa.select(kept).iter_rows(named=True)}
        return [known.get(label, {"label": label}) for label in self.model.labels.names]

    def about(self, many: AskedMany) -> dict[str, Any]:
        """What the folder says about who answered."""
        model = self.model
        remarks = [f"{many.passed_over} files of the other kind were skipped."] if many.passed_over else []
        return {
            "question": "answers",
            "model": self.name,
            "method": BIRDNET if model is None else model.name,
            "digest": self.digest,
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "simulated": model is not None and model.simulated,
            "kind": self.medium.name,
            "remarks": remarks,
        }

    def table(self, block: Sequence[Asked], root: Path) -> pl.DataFrame:
        """The answers to a block, with the key of each observation."""
        entries: list[AnsweredEntry] = []
        keys: list[str] = []
        for asked, own in imported(self.medium.answer_block)(self, block, root):
            entries += own
            keys += [_key(asked)] * len(own)
        return table_of(entries).with_columns(key=pl.Series(keys, dtype=pl.String))

    def of_photos(self, block: Sequence[Asked], root: Path) -> Iterator[tuple[Asked, list[AnsweredEntry]]]:
        """The answers to a block of observations with photos."""
        model = self.model
        assert model is not None  # BirdNET hears
        settings = self.settings
        finder = NameFinder(model, settings.synonyms)
        held = restriction_of(finder, settings.only, settings.exclude, settings.thresholds)
        question = PhotoQuestion(NAMES_EACH, held, evidence=False, facts=LabelFacts.of(model))
        features, problems = _features(model, files_of(block), root)
        groups = _groups(model, [file for file in files_of(block) if file not in problems], root)
        for asked in block:
            bad = next((problems[file] for file in asked.files if file in problems), None)
            if bad is not None:
                yield asked, [_entry(asked, problem=bad)]
                continue
            rows = None if features is None else np.stack([features[file] for file in asked.files])
            paths = tuple(root / file for file in asked.files)
            context = _circumstances(asked).known
            seen = np.stack([groups[file] for file in asked.files]) if groups else None
            specimen = SpecimenQuery(model, paths, self.settings.pooling, context, rows, seen)
            yield asked, [_of_photos(asked, answer_photos(specimen, question))]

    def of_recordings(self, block: Sequence[Asked], root: Path) -> Iterator[tuple[Asked, list[AnsweredEntry]]]:
        """The answers to a block of observations with recordings."""
        for asked in block:
            entries: list[AnsweredEntry] = []
            for file in asked.files:
                try:
                    with no_progress():
                        answer = identify(
                            root / file,
                            self.model or BIRDNET,
                            at_least=self.settings.at_least,
                            context=_circumstances(asked),
                            only=self.settings.only if self.model else (),
                            exclude=self.settings.exclude if self.model else (),
                            thresholds=self.settings.thresholds,
                            synonyms=self.settings.synonyms,
                        )
                except InputError as error:
                    entries.append(_entry(asked, files=(file,), problem=str(error)))
                    continue
                assert isinstance(answer, Timeline)  # a recording was asked about
                entries += _of_recording(asked, file, answer, each_window=self.settings.each_window)
            yield asked, entries


def _asking(model: str, settings: BatchSettings) -> AskedModel:
    if model == BIRDNET and not Path(BIRDNET).exists():
        if settings.only or settings.exclude:
            raise MisuseError("--only and --exclude go with a model of your own; BirdNET goes by place and date.")
        return AskedModel(BIRDNET, None, settings, _digest(BIRDNET, settings))
    loaded = named_model(model)
    if loaded.fitted.method.targets == ("masks",):
        raise MisuseError(f"The model {loaded.name!r} draws masks and names nothing: `fieldmark predict` draws them.")
    folder = Path(model) / "model" if (Path(model) / "model" / "model.json").exists() else Path(model)
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".safetensors"))
    fingerprint = "".join(sha256_of(path) for path in files) or loaded.name
    return AskedModel(model, loaded, settings, _digest(fingerprint, settings))


def _digest(model: str, settings: BatchSettings) -> str:
    left_out = {"known", "exif"} if settings.each_window else {"known", "exif", "each_window"}
    asked = {key: value for key, value in asdict(settings).items() if key not in left_out}
    if settings.thresholds is not None:  # the lines count, not what the file is called
        asked["thresholds"] = settings.thresholds.read_text(encoding="utf-8") if settings.thresholds.is_file() else ""
    text = json.dumps([model, asked, RECORDED], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _key(asked: Asked) -> str:
    """A fingerprint of what is asked: the same files with the same context are the same question."""
    text = json.dumps([asked.observation_id, asked.files, sorted(asked.known.items())], default=str)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _done_before(out: Path, digest: str, many: AskedMany) -> dict[str, pl.DataFrame]:
    """The answers that are there already, by the keys of their questions."""
    tables = [read_frame(path, path) for path in sorted((out / PARTIAL / digest).glob("*.parquet"))]
    about = out / "answers.json"
    if about.exists() and json.loads(about.read_text(encoding="utf-8")).get("digest") == digest:
        earlier = read_frame(out / TABLE_FILE, out / TABLE_FILE)
        if "key" in earlier.columns:
            tables.append(earlier)
    wanted = {_key(one) for one in many.observations}
    done: dict[str, pl.DataFrame] = {}
    for table in tables:
        for (key,), rows in table.group_by("key", maintain_order=True):
            if key in wanted:
                done[str(key)] = rows
    return done


def _ordered(tables: Sequence[pl.DataFrame], many: AskedMany) -> pl.DataFrame:
    """All answers in the order of what was asked; the keys stay, for the next time."""
    whole = pl.concat([table.select(*SCHEMA, "key") for table in tables])
    place = pl.DataFrame({"key": [_key(one) for one in many.observations]}).with_row_index("place")
    return whole.join(place, on="key", how="left").sort("place", "start_s", maintain_order=True).drop("place")


def _features(
    model: Model, files: Sequence[str], root: Path
) -> tuple[dict[str, NDArray[np.float32]] | None, dict[str, str]]:
    """The features of photos, all at once, and what is wrong with those that cannot be read."""
    if model.supply.main is None:
        return None, {}
    try:
        rows = _supplied(model, files, root)
    except InputError:  # one by one, to tell which
        kept: dict[str, NDArray[np.float32]] = {}
        problems: dict[str, str] = {}
        for file in files:
            try:
                kept[file] = _supplied(model, [file], root)[0]
            except InputError as error:
                problems[file] = str(error)
        return kept, problems
    return dict(zip(files, rows, strict=True)), {}


def _groups(model: Model, files: Sequence[str], root: Path) -> dict[str, NDArray[np.float64]]:
    """What the packaged network takes each photo for (`packaged.photo_groups`); nothing where it is not asked."""
    if model.simulated:
        return {}
    chances = group_chances((root / file).read_bytes() for file in files)
    return {} if chances is None else dict(zip(files, chances, strict=True))


def _supplied(model: Model, files: Sequence[str], root: Path) -> NDArray[np.float32]:
    paths = [root / file for file in files]
    part = Part(loose_items(paths), media=loose_media(PHOTO, paths))
    assert model.supply.main is not None  # asked before
    return model.supply.main.supply(part, "", PHOTO.plural).features[PHOTO.name]


def _circumstances(asked: Asked) -> Circumstances:
    names = ("lat", "lon", "date", "site", "country", "habitat", "substrate")
    return Circumstances(**{name: asked.known[name] for name in names if name in asked.known})


def _entry(asked: Asked, **said: Any) -> AnsweredEntry:
    known = {name: asked.known.get(name) for name in ("date", "lat", "lon", "site")}
    both = {"files": asked.files, "time": seconds_of(asked.known.get("time")), **known, **said}
    return AnsweredEntry(**{"observation_id": asked.observation_id, **both})


def _of_photos(asked: Asked, answer: PhotoAnswer) -> AnsweredEntry:
    """An entry of the list: the claim, with what a person needs to check it."""
    claim, unknown = answer.claim, answer.verdict.known is False
    first = answer.names[0].probability if answer.names else 0.0
    danger = answer.danger
    return _entry(
        asked,
        name="" if claim is None else claim.label or claim.name,
        rank=None if claim is None or claim.rank == OF_LABEL else claim.rank,
        probability=None if claim is None else claim.probability,
        certainty=first - 1 if unknown else first,
        verdict="possibly unknown" if unknown else "known",
        danger=None if danger is None else " ".join(danger.because),
        dangerous=[] if danger is None else [full_name(one.name) for one in danger.look_alikes],
        threatened=answer.threatened,
        names=[one.label for one in answer.names],
        probabilities=[one.probability for one in answer.names],
    )


def _of_recording(asked: Asked, file: str, answer: Timeline, *, each_window: bool) -> list[AnsweredEntry]:
    """An entry for each detection; one that says so where nothing is heard."""
    heard = answer.windows if each_window else answer.detections
    if not heard:
        silent = _entry(asked, files=(file,), verdict=NOTHING_HEARD, certainty=1 - answer.at_least)
        return [silent]
    return [
        _entry(
            asked,
            observation_id=f"{asked.observation_id}#{voice.start_s:g}-{voice.end_s:g} {voice.label}",
            files=(file,),
            name=voice.label,
            rank="species" if voice.species else None,
            probability=voice.score,
            certainty=voice.score,
            names=[voice.label],
            probabilities=[voice.score],
            start_s=voice.start_s,
            end_s=voice.end_s,
        )
        for voice in heard
    ]
