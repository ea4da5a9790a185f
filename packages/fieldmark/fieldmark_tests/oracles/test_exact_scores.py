"""What a run file says is compared in double precision, as the organizers compare it."""

from __future__ import annotations

from pathlib import Path
from random import Random

from fieldmark_tests.oracles.comparing import differences_of_case, report, score_case, score_files
from fieldmark_tests.oracles.lists import draw_birds
from fieldmark_tests.oracles.photos import draw_snakes
from fieldmark_tests.oracles.stored import Stored
from fieldmark_tests.oracles.tables import Case, Table, write_texts

LOWER, HIGHER = "0.98765431", "0.98765432"
TRUTH = Table(("id", "label"), (("1", "a"),))
CLASSES = Table(("label",), (("a",), ("b",)))


def value(case: Case, folder: Path, metric: str) -> float:
    """One metric of a case."""
    return float(score_case(case, folder).metrics[metric].value)


def test_scores_of_birds_that_differ_in_the_eighth_digit_are_ranked_as_doubles(tmp_path: Path) -> None:
    texts = {
        "run": f"X;00:00:00-00:00:05;jay;{LOWER}\nX;00:00:05-00:00:10;jay;{HIGHER}\n",
        "truth": "X;jay;00:00:00-00:00:05\n",
        "media": "MediaId,seconds,site\nX,10,PER\n",
    }
    assert score_files("birdclef-2020", write_texts(tmp_path, texts)).metrics["cmap"].value == 0.5


def test_probabilities_of_snakes_that_differ_in_the_eighth_digit_are_ranked_as_doubles(tmp_path: Path) -> None:
    run = Table(("hashed_id", "b", "a"), (("1", "0.49999999", "0.50000001"),))
    classes = Table(("label",), (("b",), ("a",)))
    assert value(Case("snakeclef-2020", run, TRUTH, classes), tmp_path, "top_1") == 1.0


def test_unknown_scores_that_differ_in_the_eighth_digit_are_ranked_as_doubles(tmp_path: Path) -> None:
    run = Table(("id", "predicted", "unknown_score"), (("1", "a", HIGHER), ("2", "-1", LOWER)))
    truth = Table(("id", "label"), (("1", "a"), ("2", "-1")))
    assert value(Case("fungitastic/open", run, truth, CLASSES), tmp_path, "roc_auc") == 0.0


def test_scores_of_places_that_differ_in_the_eighth_digit_are_cut_as_doubles(tmp_path: Path) -> None:
    others = tuple(f"s{number}" for number in range(30))
    run = Table(
        ("observation_id", "species_id", "score"),
        (("1", "a", LOWER), *(("1", name, HIGHER) for name in others)),
        ";",
    )
    classes = Table(("label",), (("a",), *((name,) for name in others)))
    assert value(Case("geolifeclef-2020", run, TRUTH, classes), tmp_path, "mean_set_size") == 30.0


def test_probabilities_of_plants_that_differ_in_the_eighth_digit_are_ranked_as_doubles(tmp_path: Path) -> None:
    columns = ("ObservationId", "ClassId", "Probability", "Rank")
    run = Table(columns, (("1", "a", LOWER, "1"), ("1", "b", HIGHER, "2")), ";")
    assert value(Case("plantclef-2020", run, TRUTH, CLASSES), tmp_path, "mrr") == 0.5


def test_stored_scores_in_double_precision_are_ranked_as_doubles(tmp_path: Path) -> None:
    stored = Stored(["1"], ["b", "a"], [[0.98765431, 0.98765432]])
    classes = Table(("label",), (("b",), ("a",)))
    paths = Case("fungitastic/closed", TRUTH, TRUTH, classes).write(tmp_path)
    paths["run"] = stored.write(tmp_path / "run.parquet", double=True)
    assert score_files("fungitastic/closed", paths).metrics["top_1"].value == 1.0


def test_random_runs_of_birds_with_close_scores_equal_the_definitions(tmp_path: Path) -> None:
    wrong: list[str] = []
    for seed in range(20):
        case = draw_birds(Random(seed), scores=tuple(0.3 + number * 1e-10 for number in range(50)))
        wrong += report("birdclef-2020", seed, differences_of_case(case, score_case(case, tmp_path)))
    assert not wrong, "\n".join(wrong)


def test_the_log_loss_of_decimal_probabilities_is_exact(tmp_path: Path) -> None:
    wrong: list[str] = []
    for seed in range(20):
        rng = Random(seed)
        case = draw_snakes(rng)
        rows = [(row[0], *(repr(rng.random()) for _ in row[1:])) for row in case.run.rows]
        decimal = Case(case.benchmark, case.run.with_rows(rows), case.truth, case.classes)
        wrong += report(case.benchmark, seed, differences_of_case(decimal, score_case(decimal, tmp_path)))
    assert not wrong, "\n".join(wrong)
