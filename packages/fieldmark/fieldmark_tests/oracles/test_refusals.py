"""Bad input gets a sentence that helps, and small files cost little memory."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import polars as pl
import pytest

from fieldmark_tests.oracles.comparing import TABLE_BENCHMARKS, draw, refusal, score_case, score_files, values_of
from fieldmark_tests.oracles.tables import Case, Table, write_texts

# A sentence shows where and what; it does not show a whole file.
LONGEST_SENTENCE = 2000
TABLES = {"truth": "id,label\n1,a\n2,b\n", "classes": "label\na\nb\n"}
FORMATS = ["folder", "fungiclef-2023", "plantclef-2020", "birdclef-2020", "geolifeclef-2020", "snakeclef-2020"]


@pytest.mark.parametrize("probability", ["0", "1e-50"])
def test_a_row_of_tiny_probabilities_is_scored_or_refused(probability: str, tmp_path: Path) -> None:
    run = f"hashed_id,a,b\n1,{probability},{probability}\n2,0.5,0.5\n"
    paths = write_texts(tmp_path, {"run": run, **TABLES})
    try:
        assert "run.csv, line 2" in refusal("snakeclef-2020", paths)
    except AssertionError:
        assert score_files("snakeclef-2020", paths).metrics["top_1"].value == 0.5


def test_a_score_of_1e39_is_a_score(tmp_path: Path) -> None:
    texts = {"run": "observation_id;species_id;score\n1;a;1e39\n2;b;1\n", **TABLES}
    assert score_files("geolifeclef-2020", write_texts(tmp_path, texts)).metrics["adaptive_top_30"].value == 1.0


@pytest.mark.parametrize("benchmark", FORMATS)
def test_a_file_that_only_begins_like_gzip_is_refused(benchmark: str, tmp_path: Path) -> None:
    paths = draw(benchmark, 0).write(tmp_path)
    paths["run"].write_bytes(b"\x1f\x8b" + b"garbage" * 20)
    assert "run.csv" in refusal(benchmark, paths)


@pytest.mark.parametrize("benchmark", FORMATS)
def test_a_gzip_file_that_was_cut_short_is_refused(benchmark: str, tmp_path: Path) -> None:
    case = draw(benchmark, 0)
    paths = case.write(tmp_path)
    paths["run"].write_bytes(gzip.compress(case.run.text().encode())[:14])
    assert "run.csv" in refusal(benchmark, paths)


@pytest.mark.parametrize("benchmark", FORMATS)
def test_a_field_of_300_kilobytes_is_refused_in_a_short_sentence(benchmark: str, tmp_path: Path) -> None:
    paths = draw(benchmark, 0).write(tmp_path)
    paths["run"].write_text("x" * 300_000)
    assert len(refusal(benchmark, paths)) < LONGEST_SENTENCE


def test_an_id_of_100_kilobytes_is_refused_in_a_short_sentence(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, {"run": f"id,predicted\n1,a\n2,b\n{'x' * 100_000},a\n", **TABLES})
    assert len(refusal("folder", paths)) < LONGEST_SENTENCE


@pytest.mark.parametrize("name", ["run", "truth", "classes"])
def test_a_link_to_itself_is_refused(name: str, tmp_path: Path) -> None:
    paths = write_texts(tmp_path, {"run": "id,predicted\n1,a\n2,b\n", **TABLES})
    paths[name].unlink()
    paths[name].symlink_to(paths[name])
    assert f"{name}.csv" in refusal("folder", paths)


def peak_bytes(case: Case, folder: Path) -> int:
    """The most memory that scoring a case takes at any time."""
    tracemalloc.start()
    try:
        score_case(case, folder)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def uneven_places(n: int) -> Case:
    """A place with n answers beside n places with one answer each."""
    rows = [("0", str(label), "0.5") for label in range(n)] + [(str(item), "0", "0.5") for item in range(1, n)]
    truth = tuple((str(item), "0") for item in range(n))
    return Case(
        "geolifeclef-2020",
        Table(("observation_id", "species_id", "score"), tuple(rows), ";"),
        Table(("id", "label"), truth),
        Table(("label",), tuple((str(label),) for label in range(n))),
    )


def test_memory_grows_with_the_answers_that_a_run_lists(tmp_path: Path) -> None:
    score_case(uneven_places(10), tmp_path)
    small, large = (peak_bytes(uneven_places(n), tmp_path) for n in (300, 1200))
    assert large < 8 * small


def test_an_empty_first_line_is_not_called_an_empty_file(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, {"run": "\nid,predicted\n1,a\n2,b\n", **TABLES})
    try:
        sentence = refusal("folder", paths)
    except AssertionError:
        assert score_files("folder", paths).metrics["top_1"].value == 1.0
    else:
        assert "an empty file" not in sentence


def test_the_header_of_places_may_be_quoted(tmp_path: Path) -> None:
    run = '"observation_id";"species_id";"score"\n"1";"a";"1"\n"2";"b";"1"\n'
    plain, quoted = (
        values_of(score_files("geolifeclef-2020", write_texts(tmp_path, {"run": text, **TABLES})))
        for text in (run.replace('"', ""), run)
    )
    assert quoted == plain


def test_unknown_in_a_closed_set_is_refused_because_the_set_is_closed(tmp_path: Path) -> None:
    texts = {"run": "id,predicted\n1,a\n2,b\n", "truth": "id,label\n1,-1\n2,b\n", "classes": "label\n-1\na\nb\n"}
    sentence = refusal("folder", write_texts(tmp_path, texts))
    assert "expected a label listed in" not in sentence


def test_a_folder_without_a_run_file_is_refused_by_the_name_of_that_file(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, TABLES) | {"run": tmp_path}
    assert "run.csv: no such file" in refusal("folder", paths)


@pytest.mark.parametrize("kind", ["mapping", "frame"])
@pytest.mark.parametrize("benchmark", [name for name in TABLE_BENCHMARKS if name in FORMATS])
def test_a_run_may_be_a_table_in_memory(benchmark: str, kind: str, tmp_path: Path) -> None:
    case = draw(benchmark, 1)
    wanted = values_of(score_case(case, tmp_path))
    columns = case.run.by_column()
    run = columns if kind == "mapping" else pl.DataFrame(columns)
    assert values_of(score_files(benchmark, case.write(tmp_path) | {"run": run})) == pytest.approx(wanted, nan_ok=True)
