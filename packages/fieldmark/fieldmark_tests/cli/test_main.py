"""The command line as a stranger meets it: in a process of its own where that could matter, else in this one.

A process pays for its imports with a second or more; what a verb prints and answers is the same without.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from fieldmark.version import __version__
from fieldmark_tests.places import GOLDEN

VERBS = (
    *(
        "list",
        "get",
        "world",
        "check",
        "truth",
        "split",
        "fit",
        "predict",
        "identify",
        "species-at",
        "adapt",
        "score",
        "compare",
        "report",
        "export",
        "models",
        "demo",
    ),
    *("episodes", "suite", "reproduce", "backbones", "ensemble", "detector", "detections", "names"),
    *("serve", "worker", "challenge", "submit"),
)


def fieldmark(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    command = [sys.executable, "-c", "from fieldmark.cli.main import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def assert_refused(code: int, errors: str, sentence: str, expected: int = 1) -> None:
    assert code == expected, errors
    last = errors.strip().splitlines()[-1]
    assert last.startswith("fieldmark: ") and sentence in last
    assert "Traceback" not in errors


def test_python_m_fieldmark_is_the_command_line():
    done = subprocess.run([sys.executable, "-m", "fieldmark", "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.strip() == __version__


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_shows_an_example(verb, run_main):
    code, printed, _ = run_main(verb, "--help")
    assert code == 0 and f"Example: fieldmark {verb}" in " ".join(printed.split())


@pytest.mark.parametrize(
    "kind", ["benchmarks", "datasets", "worlds", "methods", "steps", "backbones", "metrics", "tables"]
)
def test_everything_can_be_listed_for_people_and_programs(kind, run_main):
    listed = json.loads(run_main("list", kind, "--json")[1])
    printed = run_main("list", kind)[1]
    assert listed and all(name.split(" ")[0] in printed for name in listed)


def test_fit_score_and_predict_from_the_shell(make_release, tmp_path, run_main):
    root, run = make_release(), tmp_path / "run"
    settings = ["--set", "backbone=resnet10t", "--set", "weights=random", "--set", "size=32"]
    fitted = fieldmark("fit", "folder", "--data", root, "--method", "centroid", "--out", run, *settings, "--json")
    assert fitted.returncode == 0, fitted.stderr
    card = json.loads(fitted.stdout)
    assert card["split"] == "test" and next(iter(card["metrics"])) == "macro_f1_all"
    scored = json.loads(fieldmark("score", "folder", run, "--data", root, "--json").stdout)
    assert scored["metrics"] == card["metrics"]
    answers = json.loads(run_main("predict", run, root / "test", "--json", "--top", "2")[1])["answers"]
    assert len(answers) == 6 and all(len(row) == 2 for row in answers.values())
    assert run_main("predict", run, "--data", root, "--out", tmp_path / "again.csv")[0] == 0
    assert (tmp_path / "again.csv").read_bytes() == (run / "run.csv").read_bytes()


def test_progress_goes_to_standard_error_as_plain_lines_without_a_terminal(make_release, tmp_path):
    settings = ["--set", "size=32"]
    done = fieldmark("fit", "folder", "--data", make_release(), "--method", "knn", "--out", tmp_path / "r", *settings)
    assert "reading train photos: 12/12" in done.stderr and "reading" not in done.stdout
    assert "\x1b[" not in done.stderr + done.stdout


def test_the_input_at_fault_is_one_sentence_and_exit_code_1(make_release, tmp_path):
    root = make_release()
    (root / "observations.csv").write_text("shot\nx\n")
    done = fieldmark("fit", "folder", "--data", root, "--method", "frequent", "--out", tmp_path / "run")
    sentence = "observations.csv, line 1: found the columns shot, expected a column 'file'."
    assert_refused(done.returncode, done.stderr, sentence)
    assert not (tmp_path / "run").exists()


def test_misuse_is_exit_code_2(make_release, tmp_path, run_main):
    root = make_release()
    done = fieldmark("fit", "foldr", "--data", root, "--method", "frequent")
    assert_refused(done.returncode, done.stderr, "no benchmark called 'foldr'. Did you mean folder?", 2)
    code, _, errors = run_main("fit", "folder", "--data", root, "--method", "linaer")
    assert_refused(code, errors, "Did you mean linear", 2)
    assert run_main("fit", "folder")[0] == 2
    code, _, errors = run_main("predict", tmp_path)
    assert_refused(code, errors, "either photos or --data", 2)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("predict", "no-model", "photo.jpg"), "no-model: found no model, expected the folder of a model or a run."),
        (("report", "no-run"), "no-run: found no run.json, expected the folder of a run."),
        (
            ("score", "folder", "no.csv", "--truth", "t.csv"),
            "t.csv: no such file, expected a CSV table",
        ),
    ],
)
def test_what_does_not_exist_is_named(tmp_path, monkeypatch, run_main, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    code, _, errors = run_main(*arguments)
    assert_refused(code, errors, sentence)


def test_importing_fieldmark_is_quick_and_loads_neither_torch_nor_a_web_framework():
    code = (
        "import sys, time; start = time.process_time(); import fieldmark; took = time.process_time() - start;"
        "heavy = {'torch', 'timm', 'polars', 'scipy', 'matplotlib', 'fastapi'} & set(sys.modules);"
        "print(took, *heavy)"
    )
    # The fastest of three: a busy machine may stumble once.
    outputs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(3)
    ]
    assert min(float(words[0]) for words in outputs) < 0.3
    assert outputs[0][1:] == []


def test_compare_truth_and_check_from_the_shell(make_release, tmp_path, run_main):
    def answer(*arguments: object) -> dict:
        code, printed, errors = run_main(*arguments, "--json")
        assert code == 0, errors
        return json.loads(printed)

    root = make_release()
    for number in (0, 1):
        run_main("fit", "folder", "--data", root, "--method", "frequent", "--out", tmp_path / f"run{number}")
    compared = fieldmark("compare", tmp_path / "run0", tmp_path / "run1", "--metric", "top_1", "--json")
    assert json.loads(compared.stdout)["differences"][0]["value"] == 0
    assert run_main("truth", "folder", "--data", root, "--out", tmp_path / "truth")[0] == 0
    truth = ["--truth", tmp_path / "truth" / "truth.csv", "--classes", tmp_path / "truth" / "classes.csv"]
    from_table = answer("score", "folder", tmp_path / "run0", *truth)
    assert from_table["metrics"] == answer("score", "folder", tmp_path / "run0", "--data", root)["metrics"]
    golden = GOLDEN / "fungitastic-2025"
    report = answer("check", "fungitastic", golden)
    assert report["sound"] and report["counts"][0]["published"]["FungiTastic, table 9"]["photos"] == 433701
