"""What answers behind the identify page: a photo model and BirdNET, one question at a time, nothing kept unasked."""

from __future__ import annotations

import datetime
import io
import re
import shutil
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Final

from PIL import Image

from fieldmark.errors import FieldmarkError
from fieldmark.identification import Circumstances, Timeline, identify
from fieldmark.identification.identify import BIRDNET, IMAGENET, named_model
from fieldmark.identification.pages import page_values
from fieldmark.identification.photo_answers import PhotoAnswer
from fieldmark.models import Model
from fieldmark.storage.files import write_json
from fieldmark.storage.picture_files import PictureError, open_picture
from fieldmark.tables.media import MEDIA, Medium, medium_of
from fieldmark.web.pictures import as_jpeg
from fieldmark.web.rates import Rate
from fieldmark.web.refusals import RefusalError, TooOftenError

MOST_FILES, MOST_MB = 6, 40
QUESTIONS_PER_S = 600
KEPT_PX = 1600
# One question is worked on, so many wait; whoever comes then is asked to try again.
WAITING, LONGEST_WAIT_S = 4, 60.0
ENDINGS: Final = {"JPEG": ".jpg", "MPO": ".jpg", "PNG": ".png", "WEBP": ".webp", "TIFF": ".tif"} | {
    "AVIF": ".avif",
    "HEIF": ".heic",
}
SOUNDS: Final = {b"RIFF": ".wav", b"fLaC": ".flac", b"OggS": ".ogg", b"ID3": ".mp3"}
# What recordings of phones begin with, behind the word "ftyp".
MPEG_4: Final = (b"M4A ", b"M4B ", b"mp42", b"mp41", b"isom", b"iso2")
NAMES_SHOWN: Final = 5


@dataclass(frozen=True)
class Question:
    """What somebody asks.

    Args:
        files: Photos of one specimen, or one recording, each with the name it came with.
        context: Where and when, as the person says.
        read_notes: Whether date and place may be read from what the camera noted.
        keep: Whether the photos may be kept.
        overlay: Whether to show where the model looks.
    """

    files: Sequence[tuple[str, BinaryIO]]
    context: Circumstances
    read_notes: bool = False
    keep: bool = False
    overlay: bool = False


@dataclass(frozen=True)
class Reply:
    """An answer with what the page shows beside it.

    Args:
        answer: The answer.
        context: Where and when, as it was used.
        values: What the page shows of it (`identification.pages`), pictures without the notes of the camera.
        kept: What was done with the files, in a sentence.
    """

    answer: PhotoAnswer | Timeline
    context: Circumstances
    values: dict[str, Any]
    kept: str


@dataclass(frozen=True)
class PageLimits:
    """How much may be asked.

    Args:
        sound_s: Seconds of sound in one question.
        questions: Questions from one address in `QUESTIONS_PER_S` seconds.
    """

    sound_s: int = 600
    questions: int = 60

    @property
    def rate(self) -> Rate:
        """How often one address may ask."""
        return Rate("identify", self.questions, QUESTIONS_PER_S)


LIMITS = PageLimits()


class PageAnswers:
    """Answers questions of the page.

    Args:
        model: The folder of a model or of the run that made it, or the name of a pretrained model; None for the
            pretrained models.
        keep_in: A folder for photos that people let us keep; None offers no such thing.
        limits: How much may be asked.
    """

    def __init__(self, model: str | None = None, keep_in: Path | None = None, limits: PageLimits = LIMITS) -> None:
        self.model_name, self.keep_in, self.limits = model, keep_in, limits
        self._working = threading.Lock()
        self.room = WAITING + 1
        self._counting = threading.Lock()
        # Features of photos are kept in the cache as a rule; here they are gone with the question.
        self._scratch = tempfile.TemporaryDirectory(prefix="fieldmark-features-")

    @cached_property
    def loaded(self) -> Model | None:
        """The model, read once; None where recordings alone are answered, by BirdNET."""
        if self.model_name == BIRDNET and not Path(BIRDNET).exists():
            return None
        return replace(named_model(self.model_name or IMAGENET), store=Path(self._scratch.name))

    @property
    def simulated(self) -> bool:
        return self.loaded is not None and self.loaded.simulated

    @property
    def knows(self) -> str:
        """What the model knows, in words."""
        if self.loaded is None:
            return "BirdNET is for recordings; it knows 6,522 names, most of them of birds."
        names = f"{len(self.loaded.labels):,} names"
        if self.loaded.name == IMAGENET:
            return f"Photos are identified by a pretrained model with few species, {names}; recordings by BirdNET."
        return f"The model was fitted to {self.loaded.medium.plural} and knows {names}."

    def warm(self) -> None:
        """Answers a gray picture in the background, so that the first person need not wait for the network."""
        if self.loaded is not None and self.loaded.medium.visual:
            gray = io.BytesIO()
            Image.new("RGB", (64, 64), (128, 128, 128)).save(gray, "PNG")
            gray.seek(0)
            question = Question([("gray.png", gray)], Circumstances())
            threading.Thread(target=self.ask, args=(question,), daemon=True).start()

    def ask(self, question: Question) -> Reply:
        """Answers a question, one at a time.

        Raises:
            RefusalError: When files cannot be read, with a sentence about them.
            TooOftenError: When too many wait already.
        """
        self._come_in()
        try:
            if not self._working.acquire(timeout=LONGEST_WAIT_S):
                raise TooOftenError("The server is busy. Try again in a minute.")
            try:
                return self._ask(question)
            except FieldmarkError as error:
                if isinstance(error, RefusalError):
                    raise
                raise RefusalError(_as_sent(str(error), question)) from error
            finally:
                for left in Path(self._scratch.name).iterdir():
                    shutil.rmtree(left, ignore_errors=True)
                self._working.release()
        finally:
            with self._counting:
                self.room += 1

    def _come_in(self) -> None:
        with self._counting:
            if not self.room:
                raise TooOftenError("Too many questions at once. Try again in a minute.")
            self.room -= 1

    def _ask(self, question: Question) -> Reply:
        files = [(name, file) for name, file in question.files if name]
        if not files:
            raise RefusalError("Choose at least one photo, or a recording.")
        if len(files) > MOST_FILES:
            raise RefusalError(f"At most {MOST_FILES} photos of one specimen: found {len(files)}.")
        with tempfile.TemporaryDirectory(prefix="fieldmark-") as folder:
            paths = [_stored(Path(folder), number, name, file) for number, (name, file) in enumerate(files, start=1)]
            medium, *others = dict.fromkeys(one for path in paths if (one := medium_of(path)) is not None)
            if others:
                raise RefusalError("Send either photos or a recording, not both.")
            if len(paths) > 1 and not medium.visual:
                raise RefusalError(f"One {medium} at a time.")
            answer = identify(
                paths,
                self._model_for(medium),
                top=NAMES_SHOWN,
                context=question.context,
                exif=question.read_notes and medium.visual,
                overlay=question.overlay and medium.visual,
                longest_s=self.limits.sound_s,
            )
            kept = f"The {f'{medium.plural} were' if medium.visual else f'{medium} was'} not kept."
            if question.keep and self.keep_in is not None and medium.visual:
                kept = self._keep(paths, answer)
            context = answer.circumstances if isinstance(answer, PhotoAnswer) else question.context
            return Reply(answer, context, page_values(answer), kept)

    def _model_for(self, medium: Medium) -> Model | str:
        if self.loaded is not None and self.loaded.medium == medium:
            return self.loaded
        if not medium.visual:
            return medium.pretrained
        raise RefusalError("The model on this page is for recordings: send a recording.")

    def _keep(self, photos: Sequence[Path], answer: PhotoAnswer | Timeline) -> str:
        """Keeps photos, re-encoded without the notes of the camera, and the names that were given; never a place."""
        assert self.keep_in is not None  # asked before
        stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S%fZ")
        folder = self.keep_in / stamp
        folder.mkdir(parents=True)
        for number, photo in enumerate(photos, start=1):
            (folder / f"photo-{number}.jpg").write_bytes(as_jpeg(photo.read_bytes(), KEPT_PX))
        names = [{"label": one.label, "probability": one.probability} for one in getattr(answer, "names", ())]
        write_json(folder / "answer.json", {"names": names, "simulated": answer.simulated})
        return "The photos are kept without EXIF data: no place, no date, no device."


def _as_sent(sentence: str, question: Question) -> str:
    """A sentence about an uploaded file, with the name that it was sent under and not the place it lay for a moment."""
    names = [name for name, _ in question.files if name]
    stored = re.compile(rf"\S*/?(?:{'|'.join(MEDIA)})-(\d+)\.\w+")
    return stored.sub(lambda found: names[int(found[1]) - 1][-60:], sentence)


def _stored(folder: Path, number: int, name: str, file: BinaryIO) -> Path:
    """An uploaded file under a name of ours, its ending by what is inside it."""
    start = file.read(16)
    file.seek(0)
    shown = f"{name[-60:]!r}"
    if not start:
        raise RefusalError(f"{shown} is empty.")
    ending = next((ending for magic, ending in SOUNDS.items() if start.startswith(magic)), None)
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        ending = None
    elif start[4:8] == b"ftyp" and start[8:12] in MPEG_4:
        ending = ".m4a"
    elif len(start) > 1 and start[0] == 0xFF and start[1] & 0xE0 == 0xE0 and start[1] != 0xD8:
        ending = ".mp3"
    ending = ending or _photo_ending(file, shown)
    path = folder / f"{medium_of(f'1{ending}')}-{number}{ending}"
    with path.open("wb") as target:
        while chunk := file.read(1 << 20):
            target.write(chunk)
    return path


def _photo_ending(file: BinaryIO, shown: str) -> str:
    hint = "Send JPEG, PNG, WebP, HEIC, AVIF or TIFF, or a recording as WAV, FLAC, OGG, MP3 or M4A."
    try:
        with open_picture(file.read()) as photo:
            kind = photo.format or "something"
    except PictureError as error:
        raise RefusalError(f"{shown} is {error}, neither a photo nor a recording that can be read. {hint}") from error
    finally:
        file.seek(0)
    if kind not in ENDINGS:
        raise RefusalError(f"{shown} is a {kind} file. {hint}")
    return ENDINGS[kind]
