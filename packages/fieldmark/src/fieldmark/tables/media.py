"""Media: what the files of a release are, photos or recordings, and everything that depends on which.

Another medium is one more `Medium` in `MEDIA`, and the functions that it names.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

HEAD_BYTES = 16


@dataclass(frozen=True)
class Medium:
    """One kind of file that is identified.

    Functions of other rooms are named as "package.module:function" (`registry.imported`), and take what those of the
    other media take.

    Args:
        name: As tasks, runs and models write it; also the name of the input that it is.
        suffixes: What its files end in.
        heads: How its files begin, at the start or after four or eight bytes.
        columns: The columns of the items that stand for it.
        form: As methods read it that want no features (`methods.Need`).
        extractor: The backbone of its features where nobody asks for another.
        likeness: The backbone whose features are compared when one is sought that is like another.
        pretrained: The model that answers where none is named.
        visual: Whether it is looked at, so that it can be cropped, and several of one specimen are one question.
        block: How many are named before their answers are stored.
        dcmi_type: Its type in Darwin Core Archives.
        networks: What can be taken as a backbone, in words.
        network: Loads the backbone of some settings.
        features: Makes features of the media of a part.
        answer: Answers a question about one specimen.
        answer_block: Answers a block of many observations.
        thumbnail: Makes a small picture for reports.
    """

    name: str
    suffixes: tuple[str, ...]
    heads: tuple[bytes, ...]
    columns: tuple[str, ...]
    form: str
    extractor: str
    likeness: str
    pretrained: str
    visual: bool
    block: int
    dcmi_type: str
    networks: str
    network: str
    features: str
    answer: str
    answer_block: str
    thumbnail: str

    def __str__(self) -> str:
        return self.name

    @property
    def plural(self) -> str:
        """Several of it."""
        return f"{self.name}s"

    def owns(self, name: str | PurePath) -> bool:
        """Whether a file has one of its endings.

        >>> PHOTO.owns("IMG_1234.HEIC"), PHOTO.owns("IMG_1234.gif"), RECORDING.owns("XC1234.MP3")
        (True, False, True)
        >>> PHOTO.owns("folder/.jpg"), PHOTO.owns("folder.jpg/notes")
        (False, False)
        """
        # Asked for every file of a release: taking paths apart would be most of the time of opening it.
        text = str(name).lower()
        return text.endswith(self.suffixes) and text.rpartition("/")[2] not in self.suffixes  # ".jpg" is a hidden file

    def begins(self, head: bytes) -> bool:
        """Whether a file may be one by its first `HEAD_BYTES` bytes; one that begins otherwise may still be read.

        >>> PHOTO.begins(b"RIFF....WEBPVP8 "), PHOTO.begins(b"some text")
        (True, False)
        """
        return any(head.startswith(self.heads, start) for start in (0, 4, 8))


PHOTO = Medium(
    name="photo",
    suffixes=(".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".avif", ".heic", ".heif"),
    heads=(b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"II*\x00", b"MM\x00*", b"ftyp", b"WEBP"),
    columns=("media_ids",),
    form="pixels",
    extractor="efficientnet_lite0",
    likeness="efficientnet_lite0",
    pretrained="imagenet",
    visual=True,
    block=256,
    dcmi_type="StillImage",
    networks="a network for photos",
    network="fieldmark.models.supply.sources:load_backbone",
    features="fieldmark.models.supply.sources:FeatureSource.of_photos",
    answer="fieldmark.identification.identify:ask_about_photos",
    answer_block="fieldmark.identification.review.batch:AskedModel.of_photos",
    thumbnail="fieldmark.reports.pages.thumbnails:photo_thumbnail",
)
RECORDING = Medium(
    name="recording",
    suffixes=(".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".m4a", ".aac", ".mp4"),
    heads=(b"WAVE", b"fLaC", b"OggS", b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf1", b"ftyp"),
    columns=("media_ids", "recording"),
    form="audio",
    extractor="logmel",
    likeness="birdnet",
    pretrained="birdnet",
    visual=False,
    block=4,
    dcmi_type="Sound",
    networks="one of logmel, birdnet, or a run of cnn",
    network="fieldmark.features.embedders:load_embedder",
    features="fieldmark.models.supply.sources:FeatureSource.of_recordings",
    answer="fieldmark.identification.identify:ask_about_recording",
    answer_block="fieldmark.identification.review.batch:AskedModel.of_recordings",
    thumbnail="fieldmark.reports.pages.thumbnails:recording_thumbnail",
)
MEDIA = {medium.name: medium for medium in (PHOTO, RECORDING)}
EVERY_SUFFIX = tuple(suffix for medium in MEDIA.values() for suffix in medium.suffixes)
# What masks come as, besides photos.
PICTURE_SUFFIXES = (*PHOTO.suffixes, ".bmp")


def medium_of(name: str | PurePath) -> Medium | None:
    """The medium of a file by its ending; None for any other file."""
    return next((medium for medium in MEDIA.values() if medium.owns(name)), None)


# What operating systems and their tools leave beside photos, besides hidden files.
LEFTOVERS = ("__macosx", "thumbs.db", "ehthumbs.db", "desktop.ini", "@eadir", "$recycle.bin", "lost+found")


def is_leftover(name: str) -> bool:
    """Whether nobody has put a file or folder there: it is hidden, or an operating system left it behind.

    >>> is_leftover("Thumbs.db"), is_leftover("._photo.jpg"), is_leftover("photo.jpg")
    (True, True, False)
    """
    return name.startswith(".") or name.lower() in LEFTOVERS
