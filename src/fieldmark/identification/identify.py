"""Asking a model: a fitted one from its folder, or BirdNET."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from fieldmark.audio.clips import all_windows, fill
from fieldmark.audio.reading import Recording, Samples, SoundError
from fieldmark.errors import InputError, MisuseError
from fieldmark.foundation.files import check_name
from fieldmark.foundation.media_files import PHOTO_SUFFIXES, SOUND_SUFFIXES
from fieldmark.foundation.progress import progress
from fieldmark.identification.results import Circumstances, Detection, Identified, Name, PhotoAnswer, Timeline
from fieldmark.models import Model, load_model
from fieldmark.questions.segments import Segments
from fieldmark.steps.pooling import pooling_of
from fieldmark.views import Part, loose_media

BIRDNET = "birdnet"
SEGMENT_S = 5
BATCH_WINDOWS = 16
# BirdNET's own filter: species less likely at a place and in a week are not considered.
EXPECTED = 0.03


def identify(
    file: str | Path | Sequence[str | Path],
    model: str | Path | Model,
    *,
    top: int = 3,
    at_least: float = 0.25,
    context: Circumstances | None = None,
    pooling: str = "mean",
) -> Identified:
    """Asks a model about one specimen, by one or several photos, or about one recording.

    Args:
        file: The photo or recording; several photos of one specimen are one question.
        model: A model, the folder of one or of the run that made it, or "birdnet" for BirdNET itself.
        top: How many names to give for a photo.
        at_least: From which score on a name stands in the timeline of a recording.
        context: Where and when, for models that ask.
        pooling: How several photos are pooled: mean, max or attention (`steps.pooling`).

    Raises:
        InputError: When the file is no photo or recording, or there is no model.
        MisuseError: When a model for photos is asked about a recording, or the other way around.
    """
    files = [Path(one) for one in ([file] if isinstance(file, str | Path) else file)]
    if not files:
        raise MisuseError("There is nothing to identify: give at least one photo or recording.")
    path, context, kind = files[0], context or Circumstances(), _kind(files[0])
    pooling_of(pooling)
    for one in files[1:]:
        if (kind, _kind(one)) != ("photo", "photo"):
            raise MisuseError(f"Several photos of one specimen are one question; {one} and {path} are not all photos.")
    if str(model) == BIRDNET and not Path(BIRDNET).exists():
        if kind != "recording":
            raise MisuseError(f"BirdNET hears recordings; {path} is a photo.")
        return _ask_birdnet(path, at_least, context)
    loaded = model if isinstance(model, Model) else _load(str(model))
    if kind != loaded.medium:
        raise MisuseError(f"The model {loaded.name!r} was fitted to {loaded.medium}s; {path} is a {kind}.")
    if loaded.fitted.method.targets == ("masks",):
        raise MisuseError(f"The model {loaded.name!r} draws masks and names nothing: `fieldmark predict` draws them.")
    if kind == "photo":
        return _ask_about_photos(loaded, files, top, pooling, context)
    return _ask_about_recording(loaded, path, at_least, context)


def _load(model: str) -> Model:
    if not Path(model).exists() and get_close_matches(model.lower(), [BIRDNET]):
        raise InputError(model, found="no such folder", expected="a model", hint=f"Did you mean {BIRDNET}?")
    return load_model(model)


def _kind(path: Path) -> str:
    expected = "a photo or a recording"
    if path.is_dir():
        hint = "For a folder of photos: fieldmark predict MODEL FOLDER."
        raise InputError(path, found="a folder", expected=expected, hint=hint)
    if not path.is_file():
        raise InputError(path, found="no such file", expected=expected, hint="Check the path.")
    check_name(path)
    suffix = path.suffix.lower()
    if suffix in PHOTO_SUFFIXES:
        return "photo"
    if suffix in SOUND_SUFFIXES:
        return "recording"
    endings = ", ".join((*PHOTO_SUFFIXES, *SOUND_SUFFIXES))
    hint = "Save it as JPEG, or as WAV if it is sound."
    raise InputError(path, found=f"a file ending in {suffix or 'nothing'}", expected=f"one of {endings}", hint=hint)


def _ask_about_photos(
    model: Model, photos: Sequence[Path], top: int, pooling: str, context: Circumstances
) -> PhotoAnswer:
    if len(photos) > 1:
        predictions = model.predict_specimen(photos, pooling, context.known)
    else:
        predictions = model.predict_photos(photos, context.known)
    chances = predictions.chances()[0]
    best = predictions.top(min(top, len(model.labels)))[0]
    taxa = _taxa(model)
    names = tuple(
        Name(taxon.label, taxon.species, taxon.common_name, round(float(chances[code]), 6), poisonous=taxon.poisonous)
        for code, taxon in ((code, taxa[code]) for code in best if code >= 0)
    )
    unknown = None if predictions.unknown is None else float(predictions.unknown[0])
    remarks = (*_remarks(model), *_cautions(model, unknown))
    return PhotoAnswer(photos[0], names, unknown, model.simulated, remarks, tuple(photos[1:]))


def _ask_about_recording(model: Model, path: Path, at_least: float, context: Circumstances) -> Timeline:
    seconds, remark = _measure(path)
    part = _segments(path, seconds, context)
    predictions = model.predict(part)
    chances = predictions.chances()
    taxa = _taxa(model)
    scores = []
    for row, (start, end) in enumerate(part.items.select("start_s", "end_s").iter_rows()):
        heard = np.flatnonzero((chances[row] >= at_least) & (chances[row] > 0))
        for code in heard[np.argsort(-chances[row][heard], kind="stable")]:
            score, taxon = round(float(chances[row][code]), 6), taxa[code]
            scores.append(Detection(taxon.label, taxon.species, taxon.common_name, score, start, min(end, seconds)))
    remarks = (*_remarks(model), *([remark] if remark else []))
    return Timeline(path, seconds, SEGMENT_S, tuple(scores), at_least, model.simulated, remarks)


def _ask_birdnet(path: Path, at_least: float, context: Circumstances) -> Timeline:
    from fieldmark.features.birdnet import LICENSE, BirdNet

    network = BirdNet()
    expected = np.ones(len(network.species), dtype=np.bool_)
    if context.lat is not None and context.lon is not None:
        expected = network.occurrence(context.lat, context.lon, context.date) >= EXPECTED
    seconds, remark = _measure(path)
    length = round(network.rate_hz * network.window_s)
    scores = []
    with _opened(path) as recording, progress("listening", math.ceil(seconds / network.window_s)) as tick:
        number = 0
        for batch in _batches(all_windows(recording.blocks(network.rate_hz), length, length)):
            logits = network(np.stack([fill(window, length, network.padding) for window in batch]))["logits"]
            for chances in np.where(expected, 1 / (1 + np.exp(-logits)), 0):
                start = number * network.window_s
                heard = int(((chances >= at_least) & (chances > 0)).sum())
                for place in np.argsort(-chances, kind="stable")[:heard]:
                    species, common = network.species[place]
                    end = min(start + network.window_s, seconds)
                    scores.append(Detection(species, species, common, round(float(chances[place]), 6), start, end))
                number += 1
            tick(len(batch))
    remarks = (LICENSE, *([remark] if remark else []))
    return Timeline(path, seconds, network.window_s, tuple(scores), at_least, simulated=False, remarks=remarks)


def _batches(windows: Iterator[Samples]) -> Iterator[list[Samples]]:
    batch: list[Samples] = []
    for window in windows:
        batch.append(window)
        if len(batch) == BATCH_WINDOWS:
            yield batch
            batch = []
    if batch:
        yield batch


def _opened(path: Path) -> Recording:
    try:
        return Recording(path)
    except SoundError as error:
        raise _unreadable(path, error) from error


def _measure(path: Path) -> tuple[float, str | None]:
    """How long a recording really is, whatever its header says, and the remark about one that was cut."""
    with _opened(path) as recording:
        try:
            samples = sum(len(block) for block in recording.blocks(recording.rate_hz))
        except SoundError as error:
            raise _unreadable(path, error) from error
        return samples / recording.rate_hz, recording.remark


def _unreadable(path: Path, error: SoundError) -> InputError:
    return InputError(path, found=str(error), expected="a WAV, FLAC, OGG or MP3 file that holds sound")


def _segments(path: Path, seconds: float, context: Circumstances) -> Part:
    """The segments of a recording as the items that a model was fitted to."""
    columns = {
        "seconds": {str(path): seconds},
        "lat": pl.lit(context.lat, pl.Float64),
        "lon": pl.lit(context.lon, pl.Float64),
        "date": pl.lit(context.date, pl.Date),
        "site": pl.lit(context.site, pl.String),
    }
    return Part(Segments(SEGMENT_S).loose([path], columns), media=loose_media("recording", [path]))


class _Taxon(NamedTuple):
    label: str
    species: str | None
    common_name: str | None
    poisonous: bool | None


def _taxa(model: Model) -> list[_Taxon]:
    """What is known about each label of a model, in the order of their codes."""
    row_of = {row["label"]: row for row in model.taxa.iter_rows(named=True)}
    rows = [row_of.get(label, {}) for label in model.labels.names]
    return [
        _Taxon(label, row.get("species"), row.get("common_name"), row.get("poisonous"))
        for label, row in zip(model.labels.names, rows, strict=True)
    ]


def _cautions(model: Model, unknown: float | None) -> Iterator[str]:
    """What a person in the field should know before acting on an answer."""
    if unknown is None:
        yield (
            f"The model knows {len(model.labels):,} names and gives one of them to whatever it is shown, "
            "however strange; a high probability does not mean that it is one of them."
        )
    if any(taxon.poisonous for taxon in _taxa(model)):
        yield "Never eat anything because a model named it: a name without a mark is no promise."


def _remarks(model: Model) -> tuple[str, ...]:
    return tuple(model.supply.remarks)
