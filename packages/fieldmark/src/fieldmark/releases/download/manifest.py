"""What a release consists of: its files, where they are published, and how to tell that they are the right ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fieldmark.errors import MisuseError, did_you_mean

Archive = Literal["zip", "tar.gz"]
EVERYTHING = "all"


@dataclass(frozen=True)
class Checksum:
    """A published digest of a file."""

    algorithm: Literal["md5", "sha256"]
    digest: str


@dataclass(frozen=True)
class ReleaseFile:
    """One published file of a release.

    Args:
        name: The name under which it is published.
        mirrors: Addresses, tried in this order. Without any, the file can only be found on disk.
        size: Its exact size in bytes, where that is published.
        about: Its rounded size in bytes as a source reports it; used to plan, never to judge.
        md5: Its MD5 digest, where that is published.
        sha256: Its SHA-256 digest, where that is published.
        unpack: The kind of archive it is, if it is one.
        into: The folder under the root that it is unpacked or put into.
        tags: What it holds, for choosing (`photos`, `mini`, `300p`).
        creates: Paths under the root; any one that exists says that the archive was unpacked before. Without `unpack`,
            what a person unpacks there.
        aliases: Other names under which it is known to circulate.
        by_hand: Where a person can get it, if that differs from the rest of the release.
    """

    name: str
    mirrors: tuple[str, ...] = ()
    size: int | None = None
    about: int | None = None
    md5: str | None = None
    sha256: str | None = None
    unpack: Archive | None = None
    into: str = "."
    tags: tuple[str, ...] = ()
    creates: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    by_hand: str | None = None

    @property
    def is_unpacked_by_hand(self) -> bool:
        """Whether it is known by what it unpacks to alone: neither its name nor its kind is documented."""
        return bool(self.creates) and self.unpack is None

    @property
    def checksum(self) -> Checksum | None:
        """The strongest published digest."""
        if self.sha256 is not None:
            return Checksum("sha256", self.sha256.lower())
        return None if self.md5 is None else Checksum("md5", self.md5.lower())

    @property
    def expected_size(self) -> int | None:
        """The exact size if it is known, else the rounded one."""
        return self.size if self.size is not None else self.about


@dataclass(frozen=True)
class Manifest:
    """The files of a release.

    Args:
        name: The name of the release, as `fieldmark get` knows it.
        files: What it consists of.
        by_hand: A sentence that says where a person can get files that no mirror gives.
        usual: What is fetched if nothing is chosen; everything if empty.
        layout: How it must lie on disk, where people put it there by hand.
        license: The terms under which it is published, from the record of the release.
        homepage: The page of its makers, from there too.
    """

    name: str
    files: tuple[ReleaseFile, ...]
    by_hand: str
    usual: tuple[str, ...] = ()
    layout: str = ""
    license: str = ""
    homepage: str = ""

    def __post_init__(self) -> None:
        twice = [name for name, times in Counter(file.name for file in self.files).items() if times > 1]
        if twice:
            raise ValueError(f"{self.name}: files declared twice: {', '.join(twice)}")

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags, in the order in which they first appear."""
        return tuple(dict.fromkeys(tag for file in self.files for tag in file.tags))

    def choose(self, wanted: Sequence[str] = ()) -> tuple[ReleaseFile, ...]:
        """Returns the files that were asked for.

        Args:
            wanted: Each is a tag, tags joined by commas (a file must have them all), the name of a file, or `all`.
                Without any, the usual ones.

        Returns:
            The files that meet at least one of them, in the order of the manifest.
        """
        choices = [_split(choice) for choice in wanted or self.usual or (EVERYTHING,)]
        for choice in choices:
            self._check(choice)
        return tuple(file for file in self.files if any(_meets(file, choice) for choice in choices))

    def _check(self, choice: frozenset[str]) -> None:
        choices = {EVERYTHING, *self.tags, *(file.name for file in self.files)}
        for word in sorted(choice - choices):
            hint = did_you_mean(word, {EVERYTHING, *self.tags})
            raise MisuseError(f"The release {self.name!r} has no part and no file called {word!r}. {hint}")
        if not any(_meets(file, choice) for file in self.files):
            raise MisuseError(
                f"No file of the release {self.name!r} is {' and '.join(sorted(choice))} at once. "
                f"`fieldmark get {self.name} ROOT --list` shows what there is."
            )


def _split(choice: str) -> frozenset[str]:
    return frozenset(word.strip() for word in choice.split(",") if word.strip())


def _meets(file: ReleaseFile, choice: frozenset[str]) -> bool:
    return choice <= {EVERYTHING, file.name, *file.tags}
