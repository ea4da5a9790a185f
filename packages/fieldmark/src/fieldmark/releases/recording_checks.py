"""Opening the recordings of a release: which cannot be read to their end, and why."""

from __future__ import annotations

from collections.abc import Sequence

from fieldmark.audio.samples import Recording, SoundError
from fieldmark.errors import InputError
from fieldmark.releases.checks import Problems
from fieldmark.storage.release import Release
from fieldmark.work.blocks import all_cores, blocks_of, map_blocks
from fieldmark.work.progress import progress

BLOCK_RECORDINGS = 16


def check_recordings(release: Release, paths: Sequence[str], problems: Problems) -> None:
    """Decodes every recording to its end, and notes those that are none or were cut short, each with the reason.

    Args:
        release: The root.
        paths: The recordings, all of which are there.
        problems: Where what is found is noted.
    """

    def open_block(block: Sequence[str]) -> tuple[int, list[str]]:
        faults = [(path, _fault(release, path)) for path in block]
        return len(block), [f"{path}: {fault}" for path, fault in faults if fault]

    with progress("opening recordings", len(paths)) as tick:
        for opened, broken in map_blocks(open_block, blocks_of(paths, BLOCK_RECORDINGS), all_cores("thread")):
            problems.at("error", "a recording cannot be read", broken)
            tick(opened)


def _fault(release: Release, path: str) -> str | None:
    """What is wrong with a recording; None for a sound one."""
    try:
        with release.open(path) as file, Recording(file) as recording:
            for _ in recording.blocks(recording.rate_hz):
                pass  # only one block is held at a time
            return recording.remark
    except SoundError as error:
        return str(error)
    except InputError as error:
        return error.found
