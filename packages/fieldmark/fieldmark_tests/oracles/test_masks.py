"""The intersection over union of masks equals the naive program's, from pictures and from run lengths."""

from __future__ import annotations

from pathlib import Path
from random import Random

import polars as pl
import pytest

import fieldmark
from fieldmark.errors import InputError
from fieldmark_tests.oracles.comparing import differences, report, values_of
from fieldmark_tests.oracles.pictures import MaskCase, draw_masks, expected_masks, write_folder, write_parquet
from fieldmark_tests.oracles.segmentation import last_row_as_whole

BENCHMARK = "fungitastic-mini/segmentation"
CASES_PER_TEST = 50


def draw(seed: int) -> MaskCase:
    """The random masks with that seed."""
    return draw_masks(Random(f"{BENCHMARK} {seed}"))


def differences_of_masks(case: MaskCase, folder: Path, seed: int, *, run_as: str, truth_as: str) -> list[str]:
    """What differs between the scorecard and the naive program, with run and truth written as asked."""
    writers = {"folder": write_folder, "parquet": write_parquet}
    rng = Random(seed)
    run = writers[run_as](folder / f"run-{seed}.{run_as}", case.run, rng)
    truth = writers[truth_as](folder / f"truth-{seed}.{truth_as}", case.truth, rng)
    card = fieldmark.score(BENCHMARK, run, truth=truth)
    found = {**values_of(card), "items": card.items, "units": card.units, "classes": card.classes}
    true = last_row_as_whole(case.truth) if truth_as == "parquet" else case.truth
    return report(BENCHMARK, seed, differences(found, expected_masks(MaskCase(case.run, true))))


@pytest.mark.parametrize("run_as", ["folder", "parquet"])
@pytest.mark.parametrize("truth_as", ["folder", "parquet"])
@pytest.mark.parametrize("block", range(2))
def test_every_metric_equals_its_definition(run_as: str, truth_as: str, block: int, tmp_path: Path) -> None:
    wrong: list[str] = []
    for seed in range(block * CASES_PER_TEST, (block + 1) * CASES_PER_TEST):
        wrong += differences_of_masks(draw(seed), tmp_path, seed, run_as=run_as, truth_as=truth_as)
    assert not wrong, "\n".join(wrong)


def test_the_order_of_rows_and_columns_does_not_matter_where_the_whole_of_a_photo_stays_last(tmp_path: Path) -> None:
    for seed in range(20):
        rng, case = Random(seed), draw(seed)
        truth = write_parquet(tmp_path / "truth.parquet", case.truth, rng)
        run = write_parquet(tmp_path / "run.parquet", case.run, rng)
        before = values_of(fieldmark.score(BENCHMARK, run, truth=truth))
        for path in (run, truth):
            rows = pl.read_parquet(path)
            columns = rng.sample(rows.columns, len(rows.columns))
            mixed = rows.sample(fraction=1.0, shuffle=True, seed=seed)
            if path == truth:  # pieces of the whole come first, the merged one last
                numbered = rows.with_row_index()
                last = numbered.group_by("file_name").tail(1).select("index")
                rest = numbered.join(last, on="index", how="anti").sample(fraction=1.0, shuffle=True, seed=seed)
                mixed = pl.concat([rest, numbered.join(last, on="index", how="semi")]).drop("index")
            mixed.select(columns).write_parquet(path)
        after = values_of(fieldmark.score(BENCHMARK, run, truth=truth))
        assert not differences(after, before), f"seed {seed}"


def test_a_photo_of_the_truth_without_a_mask_in_the_run_is_refused(tmp_path: Path) -> None:
    for seed in range(20):
        rng, case = Random(seed), draw(seed)
        truth = write_parquet(tmp_path / "truth.parquet", case.truth, rng)
        rest = dict(list(case.run.items())[1:]) or {"another": next(iter(case.run.values()))}
        run = write_folder(tmp_path / f"run-{seed}", rest, rng)
        with pytest.raises(InputError, match="no mask for 1 of"):
            fieldmark.score(BENCHMARK, run, truth=truth)
