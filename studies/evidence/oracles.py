"""A hundred random cases of every benchmark beside naive programs: values, and values without each unit.

The programs are those of `fieldmark_tests/oracles`, written from the papers in plain Python; files carry byte-order
marks, CRLF or gzip in turn. Open sets and masks of the variants share a program and are drawn all the same.
"""

from __future__ import annotations

import gzip
import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.work.progress import progress
from fieldmark_tests.oracles import comparing, leaving_out
from fieldmark_tests.oracles.editions import EDITIONS, draw_edition
from fieldmark_tests.oracles.pictures import MaskCase, draw_masks, expected_masks, write_folder
from fieldmark_tests.oracles.presence import PRESENCE, draw_presence
from fieldmark_tests.oracles.segmentation import mean_iou, mean_iou_of_parts
from fieldmark_tests.oracles.tables import Case
from studies.evidence.results import read_result

CASES = 100
NAME = "oracles"
TOLERANCE = comparing.TOLERANCE
MASKS = ("fungitastic-mini/segmentation", "folder/segmentation")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass
class Tally:
    """How many numbers were compared, how far they lie apart at most, and where they do not agree."""

    values: int = 0
    left_out: int = 0
    farthest: float = 0.0
    differing: list[str] = field(default_factory=list)

    def compare(self, found: Mapping[str, float], wanted: Mapping[str, float], where: str) -> int:
        """Compares numbers by name, and returns how many there are."""
        for name in sorted({*found, *wanted}):
            ours, theirs = found.get(name, math.inf), wanted.get(name, math.inf)
            if not comparing.same(ours, theirs):
                self.differing.append(f"{where}, {name}: {ours!r} against {theirs!r}")
            elif not math.isnan(ours):
                self.farthest = max(self.farthest, abs(ours - theirs) / max(abs(ours), abs(theirs), 1.0))
        return len(found)


def run() -> dict[str, Any]:
    """Scores all cases of all benchmarks; a benchmark that was done before is not done again."""
    rows = {} if (before := read_result(NAME)) is None else dict(before["rows"])
    names = [name for name in BENCHMARKS if name not in rows or rows[name]["version"] != BENCHMARKS[name].version]
    with progress("comparing with naive programs", len(names)) as tick, tempfile.TemporaryDirectory() as folder:
        for name in names:
            tally = masks(name, Path(folder)) if name in MASKS else tables(name, Path(folder))
            rows[name] = {
                "version": BENCHMARKS[name].version,
                "cases": CASES,
                "values": tally.values,
                "left_out": tally.left_out,
                "farthest": tally.farthest,
                "differing": tally.differing[:20],
            }
            tick(1)
    ordered = {name: rows[name] for name in BENCHMARKS}
    return {
        "tolerance": TOLERANCE,
        "rows": ordered,
        "differing": sum(len(row["differing"]) for row in ordered.values()),
    }


def tables(name: str, folder: Path) -> Tally:
    """The cases of a benchmark whose truth is a table."""
    tally = Tally()
    for seed in range(CASES):
        case = drawn(name, seed)
        card = comparing.score_files(name, spelled(case, folder, seed))
        wanted = leaving_out.values(case, leaving_out.items_of(case))
        found = {metric: score.value for metric, score in card.metrics.items()}
        tally.values += tally.compare(found, wanted, f"seed {seed}")
        for unit, ours, theirs in leaving_out.left_out(case, card):
            tally.left_out += tally.compare(ours, theirs, f"seed {seed} without {unit}")
    return tally


def drawn(name: str, seed: int) -> Case:
    """The random case of a benchmark with that seed."""
    if name == PRESENCE:
        return draw_presence(Random(f"{name} {seed}"))
    return draw_edition(name, seed) if name in EDITIONS else comparing.draw(name, seed)


def spelled(case: Case, folder: Path, seed: int) -> dict[str, Path]:
    """The files of a case: plain, with byte-order marks, with CRLF, or the run packed by gzip, in turn."""
    paths = case.write(folder)
    for what, path in paths.items():
        data = path.read_bytes()
        if seed % 4 == 1:
            data = BYTE_ORDER_MARK + data
        elif seed % 4 == 2:
            data = data.replace(b"\n", b"\r\n")
        elif seed % 4 == 3 and what == "run":
            data = gzip.compress(data)
        path.write_bytes(data)
    return paths


def masks(name: str, folder: Path) -> Tally:
    """The cases of a benchmark of masks, as folders of pictures."""
    tally = Tally()
    for seed in range(CASES):
        rng = Random(f"{name} {seed}")
        case = draw_masks(rng)
        own = folder / f"{name.partition('/')[0]}-{seed}"
        paths = {part: write_folder(own / part, getattr(case, part), rng) for part in ("run", "truth")}
        card = comparing.score_files(name, paths)
        wanted = naive_masks(case, case)
        found = {metric: score.value for metric, score in card.metrics.items()}
        tally.values += tally.compare(found, wanted, f"seed {seed}")
        unit = (lambda photo: photo.rpartition("-")[2]) if name == MASKS[0] else str
        for place, one in enumerate(card.unit_ids if len(card.unit_ids) > 1 else ()):
            ours = leaving_out.value_without(card, place)
            kept = [photo for photo in case.truth if unit(photo) != one]
            rest = MaskCase(*({photo: given[photo] for photo in kept} for given in (case.run, case.truth)))
            theirs = naive_masks(rest, case)
            tally.left_out += tally.compare(
                ours, {metric: theirs[metric] for metric in ours}, f"seed {seed} without {one}"
            )
    return tally


def naive_masks(case: MaskCase, whole: MaskCase) -> dict[str, float]:
    """The metrics of masks; those of parts where the whole case has parts."""
    values = {"iou": mean_iou(case.run, case.truth)}
    if "miou" in expected_masks(whole):
        values["miou"] = mean_iou_of_parts(case.run, case.truth, background=False)
        values["miou_with_background"] = mean_iou_of_parts(case.run, case.truth, background=True)
    return values
