"""The birds of a world in the layout of BirdCLEF 2021, as Kaggle packs it.

```
ROOT/
  train_metadata.csv, train_short_audio/<code>/XC9000001.ogg
  train_soundscapes/7001_PER_20190116.flac, train_soundscape_labels.csv    row_id,site,audio_id,seconds,birds
  test_soundscapes/..., test_soundscape_labels.csv                         which the real release keeps back
  WORLD.json
```
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fieldmark.storage.files import appearing_folder, write_json
from fieldmark.work.blocks import Executor
from fieldmark_worlds.birds.recordings import Rendition, make_recordings
from fieldmark_worlds.layouts.birdclef import (
    EXTENTS,
    GENERATOR_VERSION,
    NOTE,
    SITES,
    VAL_SITES,
    Birds,
    Focal,
    Soundscape,
    grow_birds,
    heard_events,
    plan_focal,
    plan_soundscapes,
)
from fieldmark_worlds.layouts.release_files import Size, extent_of, finding_rng, world_mark

SEGMENT_S, FIRST_AUDIO = 5, 7001
FOLDERS = {"val": "train_soundscapes", "test": "test_soundscapes"}
TABLES = {"val": "train_soundscape_labels.csv", "test": "test_soundscape_labels.csv"}


def write(
    out: Path, *, size: Size = "tiny", seed: int = 0, overwrite: bool = False, executor: Executor | None = None
) -> dict[str, object]:
    """Writes a world of the given size: the same birds and recordings as that of BirdCLEF 2020 with this seed.

    Args:
        out: The root to be; it appears when complete.
        size: How much.
        seed: Another seed is another nature.
        overwrite: Whether an existing folder is replaced.
        executor: Who records; all cores unless given.

    Returns:
        The content of `WORLD.json`.
    """
    extent, rng = extent_of(EXTENTS, size), finding_rng(seed)
    birds = grow_birds(extent, rng)
    focal = [_moved(one) for one in plan_focal(birds, extent, seed, rng)]
    scapes = {
        "val": plan_soundscapes("val", VAL_SITES, extent.val_per_site, birds, extent, seed, rng),
        "test": plan_soundscapes("test", tuple(SITES), extent.test_per_site, birds, extent, seed, rng),
    }
    first = {"val": FIRST_AUDIO, "test": FIRST_AUDIO + len(scapes["val"])}
    named = {
        part: [_renamed(one, part, first[part] + number) for number, one in enumerate(made)]
        for part, made in scapes.items()
    }
    with appearing_folder(Path(out), overwrite=overwrite) as root:
        jobs = [one.job for one in focal] + [one.job for made in named.values() for one in made]
        sung = make_recordings(root, jobs, executor)
        _write_focal(root, birds, focal)
        for part, made in named.items():
            _write_rows(root, part, made, sung, birds)
        counts = {"train": {"recordings": len(focal)}}
        counts |= {part: {"recordings": len(made)} for part, made in named.items()}
        mark = world_mark(
            "birdclef-2021", size=size, seed=seed, generator_version=GENERATOR_VERSION, about={"counts": counts}
        )
        write_json(root / "WORLD.json", {**mark, "note": NOTE})
    return {**mark, "note": NOTE}


def _moved(one: Focal) -> Focal:
    file = one.job.file.replace("train/audio/", "train_short_audio/")
    return replace(one, job=replace(one.job, file=file))


def _renamed(one: Soundscape, part: str, audio: int) -> Soundscape:
    site, date = one.media_id[:3], str(one.about["Date"]).replace("-", "")
    media_id = f"{audio}_{site}"
    return replace(one, media_id=media_id, job=replace(one.job, file=f"{FOLDERS[part]}/{media_id}_{date}.flac"))


def _write_focal(root: Path, birds: Birds, focal: Sequence[Focal]) -> None:
    code_of = dict(birds.names.select("species", "code").iter_rows())
    with (root / "train_metadata.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        columns = ("primary_label", "secondary_labels", "latitude", "longitude", "scientific_name", "common_name")
        writer.writerow([*columns, "date", "filename"])
        for one in focal:
            also = one.about["also"]
            behind = [code_of[name] for name in also] if isinstance(also, list) else []
            about = one.about
            label, name = one.job.file.split("/")[1:]
            species = f"{about['gen']} {about['sp']}"
            writer.writerow([label, behind, about["lat"], about["lng"], species, about["en"], about["date"], name])


def _write_rows(root: Path, part: str, made: Sequence[Soundscape], sung: Sequence[Rendition], birds: Birds) -> None:
    codes = birds.names["code"].to_list()
    with (root / TABLES[part]).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["row_id", "site", "audio_id", "seconds", "birds"])
        for scape in made:
            audio, site = scape.media_id.split("_")
            own = [one for one in sung if one.file == scape.job.file]
            events = heard_events(own, scape.job.seconds)
            for end in range(SEGMENT_S, int(scape.job.seconds) + 1, SEGMENT_S):
                inside = {codes[bird] for bird, begin, stop in events if begin < end and stop > end - SEGMENT_S}
                writer.writerow([f"{scape.media_id}_{end}", site, audio, end, " ".join(sorted(inside)) or "nocall"])
