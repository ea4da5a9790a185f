"""Recordings as examples, and what happens to them on the way into the network.

```
ROOT/<digest>/windows.bin   16-bit samples, one window after the other
              owners.npy    the number of the clip that each window was cut from; -1 for windows in which little sounds
              pack.json     the settings, the recordings that cannot be read or were cut, and a sample of contents;
                            written last
```

Windows are cut once and packed; spectrograms are made on the device, batch by batch, since what is mixed must be mixed
before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.audio.augmentations import band_masked, mixed, shifted, time_masked
from fieldmark.audio.clips import Padding
from fieldmark.audio.samples import Recording, Samples, SoundError
from fieldmark.audio.spectrograms import MelSettings, MelSpectrogram
from fieldmark.features.sounds import Clip, salient_windows, windows_of
from fieldmark.storage.files import appearing_folder, write_json
from fieldmark.training.draws import Draws
from fieldmark.work.parallel_reads import open_each
from fieldmark.work.progress import progress

Tensor = Any
Opener = Callable[[str], IO[bytes]]

PACK_VERSION = 2
LOUDEST = 32767
SAMPLED_RECORDINGS = 32
SAMPLED_BYTES = 1 << 16
# Windows in which little sounds serve as backgrounds; a recording gives one if it has at least so many windows.
BACKGROUNDS, FEWEST_WINDOWS = 256, 3


@dataclass(frozen=True)
class Windowed:
    """The windows that a kind of spectrogram is made of."""

    rate_hz: int
    window_s: float
    padding: Padding = "repeat"

    @classmethod
    def of(cls, settings: MelSettings) -> Windowed:
        """Those of given settings."""
        return cls(settings.rate_hz, settings.window_s)


@dataclass(frozen=True)
class Faults:
    """What is wrong with recordings, by their ids: those that cannot be read, and how much there is of cut ones."""

    problems: dict[str, str] = field(default_factory=dict)
    cut_short: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SoundPack:
    """An open pack."""

    windows: NDArray[np.int16]
    owners: NDArray[np.int32]
    problems: dict[str, str]
    cut_short: dict[str, str] = field(default_factory=dict)

    @cached_property
    def backgrounds(self) -> NDArray[np.int64]:
        """The windows in which little sounds."""
        return np.flatnonzero(self.owners < 0)

    @cached_property
    def first_and_number(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each clip its first window and how many there are."""
        clips = np.arange(int(self.owners.max(initial=-1)) + 1)
        own = np.flatnonzero(self.owners >= 0)
        owners = self.owners[own]
        first = np.searchsorted(owners, clips)
        return own[np.minimum(first, max(len(own) - 1, 0))], np.searchsorted(owners, clips, "right") - first


def open_sound_pack(
    clips: Sequence[Clip], open_medium: Opener, settings: MelSettings, at_most: int, root: Path
) -> SoundPack:
    """Opens the pack of a list of clips, and makes it where there is none or where recordings have changed since.

    Args:
        clips: The clips, those of a recording together and in the order of time.
        open_medium: Opens a recording.
        settings: What the windows are for.
        at_most: How many windows to keep of a whole recording.
        root: The folder of packs.
    """
    folder = root / _digest(clips, settings, at_most)
    sample = _sample(clips, open_medium)
    facts = folder / "pack.json"
    if not facts.exists() or json.loads(facts.read_text())["sample"] != sample:
        _write(folder, clips, open_medium, settings, at_most, sample)
    windows = np.memmap(folder / "windows.bin", dtype=np.int16, mode="r").reshape(-1, settings.samples)
    about = json.loads(facts.read_text())
    return SoundPack(windows, np.load(folder / "owners.npy"), about["problems"], about["cut_short"])


def _write(
    folder: Path, clips: Sequence[Clip], open_medium: Opener, settings: MelSettings, at_most: int, sample: list[str]
) -> None:
    owners: list[int] = []
    faults = Faults()
    backgrounds: list[Samples] = []
    with appearing_folder(folder, overwrite=True) as partial, (partial / "windows.bin").open("wb") as file:
        for number, windows, quiet in _cut_each(clips, open_medium, Windowed.of(settings), at_most, faults):
            file.write(b"".join(_as_16_bit(window) for window in windows))
            owners += [number] * len(windows)
            if quiet is not None and len(backgrounds) < BACKGROUNDS:
                backgrounds.append(quiet)
        file.write(b"".join(_as_16_bit(window) for window in backgrounds))
        np.save(partial / "owners.npy", np.array(owners + [-1] * len(backgrounds), dtype=np.int32))
        write_json(partial / "pack.json", {"settings": asdict(settings), **asdict(faults), "sample": sample})


def _cut_each(
    clips: Sequence[Clip], open_medium: Opener, how: Windowed, at_most: int, faults: Faults
) -> Iterator[tuple[int, list[Samples], Samples | None]]:
    """What `_cut` gives of one recording after the other; those that cannot be read or were cut are noted."""
    of_recordings = _by_recording(clips)
    opened = open_each(open_medium, of_recordings)
    with progress("packing recordings", len(clips)) as tick:
        for (media_id, numbers), recording in zip(of_recordings.items(), opened, strict=True):
            try:
                with closing(recording) as sound:
                    own = {number: clips[number] for number in numbers}
                    yield from _cut(sound, own, how, at_most, partial(faults.cut_short.__setitem__, media_id))
            except SoundError as error:
                faults.problems[media_id] = str(error)
                faults.cut_short.pop(media_id, None)
            tick(len(numbers))


def _cut(
    sound: IO[bytes], clips: dict[int, Clip], how: Windowed, at_most: int, note_cut: Callable[[str], None]
) -> Iterator[tuple[int, list[Samples], Samples | None]]:
    """The windows of each clip and, for a whole recording of some length, the one in which least sounds."""
    stretches = {n: c for n, c in clips.items() if c.start_s is not None}
    for number, windows in windows_of(sound, stretches, how, note_cut=note_cut):
        yield number, windows, None
    for number in (n for n, clip in clips.items() if clip.start_s is None):
        sound.seek(0)
        with Recording(sound) as recording:
            salient = salient_windows(recording, how, at_most)
            if recording.cut:
                note_cut(recording.cut)
        yield number, salient.windows, salient.quietest if salient.number >= FEWEST_WINDOWS else None


def _as_16_bit(window: Samples) -> bytes:
    return (np.clip(window, -1, 1) * LOUDEST).astype("<i2").tobytes()


def _by_recording(clips: Sequence[Clip]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for number, clip in enumerate(clips):
        numbers.setdefault(clip.media_id, []).append(number)
    return numbers


def _digest(clips: Sequence[Clip], settings: MelSettings, at_most: int) -> str:
    hasher = hashlib.blake2b(json.dumps([PACK_VERSION, asdict(settings), at_most]).encode(), digest_size=16)
    for clip in clips:
        hasher.update(repr(tuple(clip)).encode())
    return f"sounds-{hasher.hexdigest()}"


def _sample(clips: Sequence[Clip], open_medium: Opener) -> list[str]:
    """The beginnings of a few dozen recordings, spread over the list."""
    names = list(dict.fromkeys(clip.media_id for clip in clips))
    digests = []
    rows = np.unique(np.linspace(0, len(names) - 1, SAMPLED_RECORDINGS).astype(int))
    for opened in open_each(open_medium, [names[row] for row in rows]):
        with closing(opened) as file:
            digests.append(hashlib.blake2b(file.read(SAMPLED_BYTES), digest_size=16).hexdigest())
    return digests


@dataclass(frozen=True)
class SoundSource:
    """Recordings with their labels, and choirs of two of them.

    Args:
        pack: The windows.
        clips: The clips that are examples, as numbers in the pack.
        targets: The class of each (int32), or one row of 0/1 over the classes.
        partners: The second voice of each choir, as a place in `clips`; the first voice of choir i is clip i. Choirs
            are examples after all the others, and their targets are those of both voices.
    """

    pack: SoundPack
    clips: NDArray[np.int64]
    targets: NDArray[Any]
    partners: NDArray[np.int64]
    groups: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.clips) + len(self.partners)

    @cached_property
    def labels(self) -> NDArray[Any]:
        if not len(self.partners):
            return self.targets
        choirs = np.maximum(self.targets[: len(self.partners)], self.targets[self.partners])
        return np.concatenate([self.targets, choirs])

    def read(self, rows: NDArray[np.int64], draws: Draws | None) -> tuple[NDArray[Any], ...]:
        """Windows of the examples and, in training, second voices and backgrounds; silence where there is none."""
        choir = rows >= len(self.clips)
        first = np.where(choir, rows - len(self.clips), rows)
        sounds = self._windows(first, draws, "window")
        if draws is None:
            return (sounds,)
        seconds = np.zeros_like(sounds)
        if choir.any():
            second = np.zeros_like(first)
            second[choir] = self.partners[first[choir]]
            seconds[choir] = self._windows(second, draws, "second window")[choir]
        backgrounds = np.zeros_like(sounds)
        packed = self.pack.backgrounds
        if len(packed):
            backgrounds = np.asarray(self.pack.windows[packed[draws.integers("background", len(packed))]])
        return sounds, seconds, backgrounds

    def read_targets(self, rows: NDArray[np.int64], draws: Draws | None) -> NDArray[Any]:
        return np.asarray(self.labels[rows])

    def _windows(self, places: NDArray[np.int64], draws: Draws | None, what: str) -> NDArray[np.int16]:
        first, number = (values[self.clips[places]] for values in self.pack.first_and_number)
        step = np.zeros_like(first) if draws is None else np.floor(draws.uniform(what) * number).astype(np.int64)
        return np.asarray(self.pack.windows[first + step])


def choirs(n_clips: int, number: int, seed: int) -> NDArray[np.int64]:
    """Second voices for the first `number` clips: a partner for each, never itself."""
    rng = np.random.default_rng(seed)
    own = np.arange(min(number, n_clips) if n_clips > 1 else 0)
    return (own + rng.integers(1, max(n_clips, 2), len(own))) % n_clips


@dataclass(frozen=True)
class SoundTransform:
    """Mixes, shifts and pictures sounds on the device.

    Gain is drawn for second voices and backgrounds, beside the first voice. One gain for all of a window would change
    nothing: every picture is scaled to 0..1.

    Args:
        settings: The spectrogram.
        device: Where.
        second_db: How loud a second voice is beside the first, from and to.
        background_db: How loud the background is beside the voices.
        mask_time, mask_bands: The largest share of a picture that is blanked.
        pictures: Whether pictures are made; a network with a front end of its own takes the sounds.
    """

    settings: MelSettings
    device: str
    second_db: tuple[float, float] = (-10.0, 5.0)
    background_db: tuple[float, float] = (-30.0, 5.0)
    mask_time: float = 0.15
    mask_bands: float = 0.1
    pictures: bool = True

    @cached_property
    def _picture(self) -> MelSpectrogram:
        return MelSpectrogram(self.settings, self.device)

    def __call__(self, raw: Sequence[Tensor], draws: Draws | None) -> Tensor:
        sounds = _as_float(raw[0])
        if draws is None:
            return self._picture(sounds)[:, None] if self.pictures else sounds  # one channel
        sounds = shifted(sounds, draws.uniform("shift"))
        sounds = mixed(sounds, _as_float(raw[1]), draws.uniform("second", *self.second_db))
        backgrounds = shifted(_as_float(raw[2]), draws.uniform("background shift"))
        sounds = mixed(sounds, backgrounds, draws.uniform("loudness of background", *self.background_db))
        if not self.pictures:
            return sounds
        pictures = self._picture(sounds)
        pictures = time_masked(pictures, draws.uniform("time", 0, self.mask_time), draws.uniform("when"))
        return band_masked(pictures, draws.uniform("bands", 0, self.mask_bands), draws.uniform("which"))[:, None]


def _as_float(sounds: Tensor) -> Tensor:
    """Samples from -1 to 1, from the 16 bits of a pack or as they are."""
    return sounds if sounds.is_floating_point() else sounds.to(torch.float32) / LOUDEST
