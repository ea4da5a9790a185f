"""Tables of other tools as Fieldmark reads them and as the tools' own readers do, and `sed_eval` as a second scorer.

- OpenSoundscape (`BoxedAnnotations.from_raven_files`): the selection tables of `soundscapes_qut`, and drawn ones.
- MegaDetector (`load_api_results`, megadetector-utils): drawn results as `write_megadetector` writes them.
- sed_eval (`SegmentBasedMetrics`): drawn events of three species in 30 recordings; true and false positives and
  misses of each species in segments of one, three and five seconds beside `match_sounds` by windows of that length.
  Its own convention: a segment is active where an event touches it. Times are multiples of a hundredth of a second off
  the borders of segments, where the two round differently.

The tools are no part of what Fieldmark installs: FIELDMARK_TOOLS names folders (with colons between them) that hold
them, as `pip install --target` makes them. A tool that is not there is left out.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import types
from contextlib import redirect_stdout
from importlib.metadata import Distribution, distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fieldmark.scoring.sound_matching import MatchRule, match_sounds
from fieldmark.tables.camera_detections import BOX, read_megadetector, write_megadetector
from fieldmark.tables.raven import write_selections
from fieldmark.tables.sound_tables import read_sounds
from studies.evidence.results import real_data

CASES, RECORDINGS, SECONDS, SPECIES = 500, 30, 60.0, ("a", "b", "c")
SEGMENTS_S = (1.0, 3.0, 5.0)


def run() -> dict[str, Any] | None:
    """How many cases each tool and Fieldmark agree on; None where no tool is there."""
    sys.path += os.environ.get("FIELDMARK_TOOLS", "").split(":")
    tools = {"opensoundscape": _opensoundscape, "megadetector-utils": _megadetector, "sed_eval": _sed_eval}
    module = {"megadetector-utils": "megadetector"}
    there = {name: compare for name, compare in tools.items() if find_spec(module.get(name, name))}
    if not there:
        print("skipped: set FIELDMARK_TOOLS to folders that hold opensoundscape, megadetector-utils or sed_eval")
        return None
    versions: dict[str, str] = {found.name: found.version for found in map(_known, distributions()) if found}
    rows = {name: {"version": versions.get(name, ""), **compare()} for name, compare in there.items()}
    return {"about": __doc__, "tools": rows}


def _known(found: Distribution) -> Any:
    return found if found.metadata["Name"] else None


def _opensoundscape() -> dict[str, Any]:
    root = find_spec("opensoundscape")
    assert root is not None and root.submodule_search_locations
    # The package imports torch and torchaudio as it starts; its reader needs neither.
    bare = types.ModuleType("opensoundscape")
    bare.__path__ = list(root.submodule_search_locations)
    sys.modules["opensoundscape"] = bare
    from opensoundscape.annotations import BoxedAnnotations  # type: ignore[import-not-found]

    same = boxes = 0
    with tempfile.TemporaryDirectory() as folder:
        files = _drawn_selections(Path(folder))
        qut = real_data("soundscapes_qut")
        files += sorted(qut.rglob("*.selections.txt")) if qut is not None else []
        for file in files:
            theirs = BoxedAnnotations.from_raven_files([str(file)], annotation_column=None).df
            own = read_sounds(file).rows.select("start_s", "end_s", "low_hz", "high_hz").rows()
            # One box may stand in a line for each view; ours are one row each.
            told = theirs[["start_time", "end_time", "low_f", "high_f"]].drop_duplicates().itertuples(index=False)
            same += sorted(map(tuple, told)) == sorted(set(own))
            boxes += len(own)
    return {"files": len(files), "boxes": boxes, "same": same}


def _drawn_selections(folder: Path) -> list[Path]:
    rng = np.random.default_rng(0)
    files = []
    for number in range(CASES):
        count = int(rng.integers(1, 20))
        start = rng.uniform(0, 50, count).round(6)
        low = rng.uniform(100, 3000, count).round(1)
        table = pl.DataFrame(
            {
                "recording": [f"r{number}.wav"] * count,
                "start_s": start,
                "end_s": (start + rng.uniform(0.1, 5, count)).round(6),
                "low_hz": low,
                "high_hz": (low + rng.uniform(100, 9000, count)).round(1),
                "label": rng.choice(SPECIES, count),
                "score": rng.uniform(0, 1, count).round(4),
            }
        )
        files.append(folder / f"r{number}.selections.txt")
        write_selections(files[-1], table)
    return files


def _megadetector() -> dict[str, Any]:
    from megadetector.postprocessing.load_api_results import load_api_results  # type: ignore[import-not-found]

    rng = np.random.default_rng(0)
    same = boxes = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(CASES):
            count = int(rng.integers(0, 12))
            edges = rng.uniform(0, 0.5, (count, 4)).round(4)
            files = tuple(f"photo{one}.jpg" for one in range(5))
            table = pl.DataFrame(
                {
                    "file": rng.choice(files, count).tolist(),
                    "label": rng.choice(["animal", "person", "vehicle"], count).tolist(),
                    "score": rng.uniform(0, 1, count).round(3),
                    **dict(zip(BOX, edges.T, strict=True)),
                },
                schema_overrides={"file": pl.String, "label": pl.String},
            )
            path = Path(folder, f"{number}.json")
            write_megadetector(path, table, detector="drawn", files=files)
            with redirect_stdout(io.StringIO()):
                frame, other = load_api_results(str(path), force_forward_slashes=True)
            theirs = sorted(
                (row.file, other["detection_categories"][one["category"]], one["conf"], *one["bbox"])
                for row in frame.itertuples()
                for one in row.detections
            )
            own = read_megadetector(path.read_bytes(), path).select("file", "label", "score", *BOX).rows()
            same += theirs == sorted(own) == sorted(table.select("file", "label", "score", *BOX).rows())
            boxes += count
    return {"files": CASES, "boxes": boxes, "same": same}


def _sed_eval() -> dict[str, Any]:
    import dcase_util  # type: ignore[import-not-found]
    import sed_eval  # type: ignore[import-not-found]

    rng = np.random.default_rng(0)
    same = counts = 0
    for case in range(CASES):
        length = SEGMENTS_S[case % len(SEGMENTS_S)]
        names = [f"r{number}" for number in range(RECORDINGS)]
        noted, heard = (_drawn_events(rng, names) for _ in range(2))
        listened = pl.DataFrame(
            [(name, 0.0, SECONDS, None, None) for name in names],
            schema={
                "recording": pl.String,
                "start_s": pl.Float64,
                "end_s": pl.Float64,
                "site": pl.String,
                "date": pl.String,
            },
            orient="row",
        )
        matched = match_sounds(
            heard.with_columns(score=pl.lit(1.0)), noted, listened, MatchRule("window", length), species=SPECIES
        )
        theirs = sed_eval.sound_event.SegmentBasedMetrics(event_label_list=list(SPECIES), time_resolution=length)
        for name in names:
            lists = (
                dcase_util.containers.MetaDataContainer(
                    [
                        {"filename": name, "onset": start, "offset": end, "event_label": label}
                        for recording, start, end, label in events.rows()
                        if recording == name
                    ]
                )
                for events in (noted, heard)
            )
            reference, estimated = lists
            theirs.evaluate(reference, estimated, evaluated_length_seconds=SECONDS)
        for label in SPECIES:
            own, other = matched.species[label], theirs.class_wise[label]
            right = int(own.right.sum())
            of_ours = (right, len(own.right) - right, int(np.isneginf(own.best).sum()))
            same += of_ours == (int(other["Ntp"]), int(other["Nfp"]), int(other["Nfn"]))
            counts += 1
    return {"files": CASES, "boxes": counts, "same": same}


def _drawn_events(rng: np.random.Generator, names: list[str]) -> pl.DataFrame:
    count = int(rng.integers(20, 80))
    start = (rng.integers(0, 5800, count) + 0.5) / 100
    return pl.DataFrame(
        {
            "recording": rng.choice(names, count).tolist(),
            "start_s": start,
            "end_s": np.minimum(start + rng.integers(1, 900, count) / 100, SECONDS - 0.005),
            "label": rng.choice(SPECIES, count).tolist(),
        }
    )
