"""Masks: every part counts, and what is no mask is refused."""

from __future__ import annotations

from pathlib import Path
from random import Random

import polars as pl
import pytest

from fieldmark_tests.oracles.comparing import refusal, report, same, score_files
from fieldmark_tests.oracles.pictures import (
    MaskCase,
    draw_masks,
    expected_masks,
    part_names,
    run_lengths,
    write_folder,
    write_parquet,
    write_rows,
)
from fieldmark_tests.oracles.segmentation import SPORES, Mask, last_row_as_whole

BENCHMARK = "fungitastic-mini/segmentation"
LEFT: Mask = [[True, True, False, False]]
RIGHT: Mask = [[False, False, True, True]]


def paths_of(folder: Path, case: MaskCase) -> dict[str, Path]:
    """Run and truth as folders of pictures."""
    return {
        "run": write_folder(folder / "run", case.run, Random(0)),
        "truth": write_folder(folder / "truth", case.truth, Random(0)),
    }


def test_a_part_that_only_the_run_has_counts_against_it(tmp_path: Path) -> None:
    case = MaskCase(run={"0-1": {"cap": LEFT, "stem": RIGHT}}, truth={"0-1": {"cap": LEFT}})
    assert score_files(BENCHMARK, paths_of(tmp_path, case)).metrics["miou"].value == 0.5


def without_one_true_part(case: MaskCase) -> MaskCase:
    """The case with one part less in the truth, where photos show another one beside it."""
    gone = min(part_names(case.truth), default="")
    truth = {
        photo: {name: mask for name, mask in parts.items() if name != gone or len(parts) == 1}
        for photo, parts in case.truth.items()
    }
    return MaskCase(case.run, truth)


def test_random_masks_with_parts_that_only_the_run_has_equal_the_definitions(tmp_path: Path) -> None:
    wrong: list[str] = []
    for seed in range(40):
        case = without_one_true_part(draw_masks(Random(seed)))
        wanted = expected_masks(MaskCase(case.run, last_row_as_whole(case.truth)))
        if "miou" not in wanted:
            continue
        run, truth = (
            write_parquet(tmp_path / f"{name}.parquet", masks, Random(seed))
            for name, masks in (("run", case.run), ("truth", case.truth))
        )
        card = score_files(BENCHMARK, {"run": run, "truth": truth})
        for name in ("iou", "miou", "miou_with_background"):
            if not same(card.metrics[name].value, wanted[name]):
                wrong += report(BENCHMARK, seed, [f"{name}: {card.metrics[name].value} and {wanted[name]}"])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("lengths", [[0, 1, 1], [0, 3, 3]], ids=["too short", "too long"])
def test_run_lengths_that_do_not_fill_the_picture_are_refused(lengths: list[int], tmp_path: Path) -> None:
    truth = write_rows(tmp_path / "truth.parquet", [("0-1.JPG", "cap", 4, 1, run_lengths(LEFT))])
    run = write_rows(tmp_path / "run.parquet", [("0-1.JPG", "cap", 4, 1, lengths)])
    assert "run.parquet" in refusal(BENCHMARK, {"run": run, "truth": truth})


def test_two_masks_of_the_same_part_of_a_photo_are_refused(tmp_path: Path) -> None:
    paths = paths_of(tmp_path, MaskCase(run={"0-1": {"cap": LEFT}}, truth={"0-1": {"cap": LEFT}}))
    first = next((paths["run"] / "cap").iterdir())
    first.rename(first.with_name("0-1.png"))
    (paths["run"] / "cap" / "0-1.JPG.png").write_bytes((paths["run"] / "cap" / "0-1.png").read_bytes())
    assert "0-1" in refusal(BENCHMARK, paths)


def test_a_part_in_another_case_is_refused_or_counts_as_a_part(tmp_path: Path) -> None:
    case = MaskCase(run={"0-1": {"Cap": LEFT}}, truth={"0-1": {"cap": LEFT}})
    paths = paths_of(tmp_path, case)
    try:
        sentence = refusal(BENCHMARK, paths)
    except AssertionError:
        assert "miou" in score_files(BENCHMARK, paths).metrics
    else:
        assert "Cap" in sentence


@pytest.mark.parametrize("lengths", ["0 2 2", None], ids=["text", "null"])
def test_run_lengths_that_are_no_list_are_refused(lengths: str | None, tmp_path: Path) -> None:
    truth = write_rows(tmp_path / "truth.parquet", [("0-1.JPG", "cap", 4, 1, run_lengths(LEFT))])
    run = tmp_path / "run.parquet"
    rows = {"file_name": ["0-1.JPG"], "label": ["cap"], "width": [4], "height": [1], "rle": [lengths]}
    pl.DataFrame(rows).write_parquet(run)
    assert "run.parquet" in refusal(BENCHMARK, {"run": run, "truth": truth})


def test_an_answer_that_shows_nothing_but_spores_is_an_empty_mask_or_refused(tmp_path: Path) -> None:
    case = MaskCase(run={"0-1": {SPORES: LEFT}}, truth={"0-1": {"cap": LEFT}})
    paths = paths_of(tmp_path, case)
    try:
        refusal(BENCHMARK, paths)
    except AssertionError:
        assert score_files(BENCHMARK, paths).metrics["iou"].value == 0.0
