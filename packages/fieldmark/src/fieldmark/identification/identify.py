"""Asking a model: a fitted one from its folder, or a pretrained one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import polars as pl

from fieldmark.audio.clips import all_windows, fill
from fieldmark.audio.samples import Recording, Samples, SoundError
from fieldmark.errors import InputError, MisuseError
from fieldmark.features.named_backbones import NAMED
from fieldmark.identification.attention import look_overlay
from fieldmark.identification.label_facts import taxa_of
from fieldmark.identification.name_lists import KnownNames, NameFinder, Restriction, restriction_of
from fieldmark.identification.photo_answers import PhotoAnswer
from fieldmark.identification.photos import PhotoQuestion, answer_photos, ignored
from fieldmark.identification.results import Circumstances, Detection, Timeline, with_camera_notes
from fieldmark.identification.sound_calibration import NOT_PROBABILITIES, read_calibration, with_probabilities
from fieldmark.identification.specimens import SpecimenQuery
from fieldmark.identification.zero_shot import is_zero_shot
from fieldmark.models import Model, load_model
from fieldmark.questions.segments import Segments
from fieldmark.registry import imported
from fieldmark.scoring.sound_thresholds import Calibration
from fieldmark.steps.pooling import pooling_of
from fieldmark.storage.files import check_name
from fieldmark.tables.labels import Labels
from fieldmark.tables.media import EVERY_SUFFIX, MEDIA, PHOTO, RECORDING, Medium, medium_of
from fieldmark.views.parts import Part, loose_media
from fieldmark.work.progress import progress

BIRDNET, IMAGENET = RECORDING.pretrained, PHOTO.pretrained
SEGMENT_S = 5
BATCH_WINDOWS = 16
# BirdNET's own filter: species less likely at a place and in a week are not considered.
EXPECTED = 0.03
# What headers say beyond a month is no length: some programs write the largest number for one that they do not know.
LONGEST_TOLD_S = 30 * 86_400

# Seconds of a recording as they could be read, and the remark about one that was cut.
Length = tuple[float, str | None]


@dataclass(frozen=True)
class AskedQuestion:
    """What is asked about one specimen; arguments as in `identify`, and which labels may be given."""

    files: tuple[Path, ...]
    context: Circumstances
    held: Restriction
    top: int
    at_least: float
    pooling: str
    common_names: Mapping[str, Mapping[str, str]]
    exif: bool
    overlay: bool
    longest_s: float
    ask_groups: bool


def identify(
    file: str | Path | Sequence[str | Path],
    model: str | Path | Model | None = None,
    *,
    top: int = 3,
    at_least: float = 0.25,
    context: Circumstances | None = None,
    pooling: str = "mean",
    only: Sequence[str] = (),
    exclude: Sequence[str] = (),
    thresholds: str | Path | None = None,
    calibration: str | Path | None = None,
    synonyms: Mapping[str, str] | None = None,
    common_names: Mapping[str, Mapping[str, str]] | None = None,
    exif: bool = False,
    overlay: bool = False,
    checklist: str | Path | None = None,
    longest_s: float = math.inf,
    ask_groups: bool = True,
) -> PhotoAnswer | Timeline:
    """Identifies one specimen from one or several photos, or the species in one recording.

    Args:
        file: The photo or recording; several photos must show the same specimen.
        model: A model, the folder of one or of the run that made it, "birdnet" for BirdNET itself, or "imagenet" for
            the packaged photo model, which knows few species. Without any: birdnet or imagenet, by the file. "bioclip",
            "bioclip-2" and networks of open_clip (`local-dir:FOLDER`) name photos by a checklist.
        top: The number of names for a photo.
        at_least: The lowest score in the timeline of a recording.
        context: Place, date and habitat, for models that use them.
        pooling: How several photos are pooled: mean, max or attention (`steps.pooling`).
        only: Names, taxa or lists of names to choose from.
        exclude: Names, taxa or lists of names to exclude.
        thresholds: A table `name,at_least`: the lowest probability at which each species is named.
        calibration: A table `name,slope,offset` by which scores of a recording become probabilities.
        synonyms: Other names, each with the model's name for it.
        common_names: Common names by species (in small letters) and language.
        exif: Whether date and place may be read from EXIF data.
        overlay: Whether to draw where the model looks, which takes fifty more looks at the first photo.
        checklist: For networks that name by a list: a table of species or a Darwin Core Archive; of it the species of
            the country, where one is given and the list tells countries.
        longest_s: Recordings of more seconds are refused, and not decoded beyond that.
        ask_groups: Whether the packaged network is asked if a photo may show a fungus or a snake. Without it the
            probabilities of the model alone decide about danger notices, as in a field guide.

    Raises:
        InputError: When the file is not a photo or recording, is too long, or there is no model.
        MisuseError: When a model for photos is asked about a recording, or the other way around.
    """
    files = [Path(one) for one in ([file] if isinstance(file, str | Path) else file)]
    if not files:
        raise MisuseError("Nothing to identify: give at least one photo or recording.")
    path, context, medium = files[0], context or Circumstances(), _medium(files[0])
    limits, listed = (None if table is None else Path(table) for table in (thresholds, checklist))
    pooling_of(pooling)
    curves = None if calibration is None else read_calibration(Path(calibration))
    if curves is not None and medium.visual:
        raise MisuseError("--calibration is for recordings; models of photos are calibrated by `fieldmark calibrate`.")
    for one in files[1:]:
        if not medium.visual or _medium(one) != medium:
            raise MisuseError(f"Several photos of one specimen are one question; {one} and {path} are not all photos.")
    # A folder of that name is meant only by those who say so: many keep tables of BirdNET in one.
    of_itself = model is None or not Path(BIRDNET).exists()
    model = medium.pretrained if model is None else model
    if not isinstance(model, Model) and str(model) == BIRDNET and of_itself:
        if medium.pretrained != BIRDNET:
            raise MisuseError(f"BirdNET is for recordings; {path} is a {medium}.")
        length = _measure(path, longest_s)
        timeline = _ask_birdnet(path, length, at_least, context, (only, exclude, limits, synonyms or {}))
        return _calibrated(timeline, curves, NameFinder(_names_of_birdnet(), synonyms or {}) if curves else None)
    if listed is not None and (isinstance(model, Model) or not is_zero_shot(str(model))):
        raise MisuseError("--checklist is for networks that name by a list: bioclip, bioclip-2, local-dir:FOLDER.")
    loaded = model if isinstance(model, Model) else named_model(str(model), listed, context.country)
    if medium != loaded.medium:
        raise MisuseError(f"The model {loaded.name!r} was fitted to {loaded.medium.plural}; {path} is a {medium}.")
    if loaded.fitted.method.targets == ("masks",):
        raise MisuseError(f"The model {loaded.name!r} draws masks and names nothing: `fieldmark predict` draws them.")
    finder = NameFinder(loaded, synonyms or {})
    held = restriction_of(finder, only, exclude, limits)
    question = AskedQuestion(
        tuple(files), context, held, top, at_least, pooling, common_names or {}, exif, overlay, longest_s, ask_groups
    )
    answer: PhotoAnswer | Timeline = imported(medium.answer)(loaded, question)
    return _calibrated(answer, curves, finder) if isinstance(answer, Timeline) else answer


def _calibrated(timeline: Timeline, curves: Mapping[str, Calibration] | None, finder: NameFinder | None) -> Timeline:
    """The timeline with probabilities, or with the sentence that its scores are none."""
    if curves is None or finder is None:
        return replace(timeline, remarks=(*timeline.remarks, NOT_PROBABILITIES))
    return with_probabilities(timeline, curves, finder)


def named_model(model: str, checklist: Path | None = None, country: str | None = None) -> Model:
    """A model by its folder, a pretrained one by its name, or one that names by a checklist.

    Raises:
        InputError: When there is none.
    """
    if Path(model).exists():
        return load_model(model)
    if is_zero_shot(model):
        from fieldmark.identification.zero_shot import zero_shot_model

        return zero_shot_model(model, checklist, country)
    if model == IMAGENET:
        from fieldmark.identification.packaged.imagenet_model import imagenet_model

        return imagenet_model()
    near = get_close_matches(model.lower(), [*(medium.pretrained for medium in MEDIA.values()), *NAMED], n=1)
    if near:
        raise InputError(model, found="no such folder", expected="a model", hint=f"Did you mean {near[0]}?")
    return load_model(model)


def _medium(path: Path) -> Medium:
    expected = "a photo or a recording"
    if path.is_dir():
        hint = "For a folder of photos: fieldmark predict MODEL FOLDER."
        raise InputError(path, found="a folder", expected=expected, hint=hint)
    if not path.is_file():
        raise InputError(path, found="no such file", expected=expected, hint="Check the path.")
    check_name(path)
    medium = medium_of(path)
    if medium is not None:
        return medium
    found, hint = f"a file ending in {path.suffix.lower() or 'nothing'}", "Save it as JPEG, or as WAV if it is sound."
    raise InputError(path, found=found, expected=f"one of {', '.join(EVERY_SUFFIX)}", hint=hint)


def ask_about_photos(model: Model, question: AskedQuestion) -> PhotoAnswer:
    """Asks a model about the photos of one specimen."""
    context, notes = with_camera_notes(question.context, question.files) if question.exif else (question.context, ())
    asked = SpecimenQuery(model, question.files, question.pooling, context.known, ask_groups=question.ask_groups)
    how = PhotoQuestion(question.top, question.held, question.common_names, circumstances=context)
    answer = answer_photos(asked, how)
    drawn = look_overlay(asked) if question.overlay else None
    return replace(answer, remarks=(*notes, *answer.remarks), overlay=drawn)


def ask_about_recording(model: Model, question: AskedQuestion) -> Timeline:
    """Asks a model about a recording."""
    path, context, held, at_least = question.files[0], question.context, question.held, question.at_least
    seconds, remark = _measure(path, question.longest_s)
    part = _segments(path, seconds, context)
    chances = model.predict(part).chances()
    taxa = taxa_of(model)
    asked = SpecimenQuery(model, (path,), "mean", context.known)
    before = chances
    if asked.used:  # what priors of place and date took away is said
        bare = _segments(path, seconds, Circumstances())
        before = np.asarray(model.predict(bare).chances())
    heard: list[Detection] = []
    removed: list[Detection] = []
    for row, (start, end) in enumerate(part.items.select("start_s", "end_s").iter_rows()):
        for code in np.argsort(-np.maximum(chances[row], before[row]), kind="stable"):
            if held.allowed is not None and not held.allowed[code]:
                continue
            line, taxon = max(at_least, held.thresholds.get(int(code), 0.0)), taxa[code]
            for scores, found in ((chances, heard), (before, removed)):
                score = float(scores[row][code])
                if score >= line and score > 0:
                    end_s = min(end, seconds)
                    found.append(
                        Detection(taxon.label, taxon.species, taxon.common_name, round(score, 6), start, end_s)
                    )
                    break
    heard.sort(key=lambda one: (one.start_s, -one.score))
    remarks = (*model.supply.remarks, *held.remarks, *([remark] if remark else []))
    return Timeline(
        path, seconds, SEGMENT_S, tuple(heard), at_least, model.simulated, remarks, tuple(removed), ignored(asked)
    )


def _ask_birdnet(
    path: Path,
    length: Length,
    at_least: float,
    context: Circumstances,
    asked: tuple[Sequence[str], Sequence[str], Path | None, Mapping[str, str]],
) -> Timeline:
    from fieldmark.features.birdnet import LICENSE, BirdNet

    network = BirdNet()
    held = _held_to(network.species, *asked)
    line = np.full(len(network.species), at_least)
    for code, least in held.thresholds.items():
        line[code] = max(at_least, least)
    if held.allowed is not None:
        line[~held.allowed] = np.inf
    expected = np.ones(len(network.species), dtype=np.bool_)
    if context.lat is not None and context.lon is not None:
        expected = network.occurrence(context.lat, context.lon, context.date) >= EXPECTED
    seconds, remark = length
    samples = round(network.rate_hz * network.window_s)
    scores: list[Detection] = []
    removed: list[Detection] = []
    with _opened(path) as recording, progress("listening", math.ceil(seconds / network.window_s)) as tick:
        number = 0
        for batch in _batches(all_windows(recording.blocks(network.rate_hz), samples, samples)):
            logits = network(np.stack([fill(window, samples, network.padding) for window in batch]))["logits"]
            for chances in 1 / (1 + np.exp(-logits)):
                start = number * network.window_s
                heard = np.flatnonzero((chances >= line) & (chances > 0))
                for place in heard[np.argsort(-chances[heard], kind="stable")]:
                    species, common = network.species[place]
                    end = min(start + network.window_s, seconds)
                    score = round(float(chances[place]), 6)
                    found = Detection(species, species, common, score, start, end)
                    (scores if expected[place] else removed).append(found)
                number += 1
            tick(len(batch))
    remarks = (LICENSE, *held.remarks, *([remark] if remark else []))
    return Timeline(
        path,
        seconds,
        network.window_s,
        tuple(scores),
        at_least,
        simulated=False,
        remarks=remarks,
        removed=tuple(removed),
        ignored=_unused_by_birdnet(context),
    )


def _held_to(
    species: Sequence[tuple[str, str]],
    only: Sequence[str],
    exclude: Sequence[str],
    thresholds: Path | None,
    synonyms: Mapping[str, str],
) -> Restriction:
    """Which of its species BirdNET may name."""
    if not (only or exclude or thresholds):
        return Restriction()
    return restriction_of(NameFinder(_known_names(species), synonyms), only, exclude, thresholds)


def _known_names(species: Sequence[tuple[str, str]]) -> KnownNames:
    names = [scientific for scientific, _ in species]
    columns = {"label": names, "common_name": [common for _, common in species]}
    genera = [name.partition(" ")[0] for name in names]
    return KnownNames(Labels(tuple(names)), pl.DataFrame({**columns, "genus": genera}))


def _names_of_birdnet() -> KnownNames:
    from fieldmark.features.birdnet import BirdNet

    return _known_names(BirdNet().species)


def _unused_by_birdnet(context: Circumstances) -> tuple[str, ...]:
    """What BirdNET was told and does not use: anything but the place, and the date where there is a place."""
    used = {"lat", "lon", "date"} if context.lat is not None else set()
    unused = [name for name in context.known if name not in used]
    return tuple(f"The {name} was given, but BirdNET does not use it." for name in unused)


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


def _measure(path: Path, longest_s: float) -> Length:
    """How long a recording really is, whatever its header says.

    Raises:
        InputError: When it cannot be read, or is too long.
    """
    with _opened(path) as recording:
        samples = 0
        try:
            for block in recording.blocks(recording.rate_hz):
                samples += len(block)
                if samples / recording.rate_hz > longest_s:
                    raise _too_long(path, recording.seconds, longest_s)
        except SoundError as error:
            raise _unreadable(path, error) from error
        return samples / recording.rate_hz, recording.remark


def _too_long(path: Path, header_s: float, longest_s: float) -> InputError:
    """The sentence about a recording that is too long; some headers tell less than there is, or nothing."""
    told = longest_s + 6 < header_s < LONGEST_TOLD_S  # a tenth of a minute more, which the sentence can show
    return InputError(
        path,
        found=f"{_minutes(header_s)} of sound" if told else f"more than {_minutes(longest_s)} of sound",
        expected=f"at most {_minutes(longest_s)}",
        hint="Cut the recording, and ask about one piece at a time.",
    )


def _minutes(seconds: float) -> str:
    """Seconds in minutes, for people.

    >>> _minutes(600), _minutes(3665)
    ('10 minutes', '61.1 minutes')
    """
    return f"{seconds / 60:,.1f}".removesuffix(".0") + " minutes"


def _unreadable(path: Path, error: SoundError) -> InputError:
    return InputError(path, found=str(error), expected="a WAV, FLAC, OGG, MP3 or M4A file that holds sound")


def _segments(path: Path, seconds: float, context: Circumstances) -> Part:
    """The segments of a recording as the items that a model was fitted to."""
    columns = {
        "seconds": {str(path): seconds},
        "lat": pl.lit(context.lat, pl.Float64),
        "lon": pl.lit(context.lon, pl.Float64),
        "date": pl.lit(context.date, pl.Date),
        "site": pl.lit(context.site, pl.String),
    }
    return Part(Segments(SEGMENT_S).loose([path], columns), media=loose_media(RECORDING, [path]))
