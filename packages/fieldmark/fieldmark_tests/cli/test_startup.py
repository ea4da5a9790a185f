"""What the commands that people call most leave alone: modules are counted, not seconds."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# Runs commands one after the other in a new process and prints after each which of the slow libraries are loaded.
PROGRAM = """
import contextlib, io, json, sys
from fieldmark.cli.main import main
slow = ("torch", "torchvision", "timm", "sklearn", "scipy.stats", "pandas", "matplotlib", "fastapi", "transformers")
slow += ("fieldmark.benchmarks.birdclef",)  # none of these is about birds
slow += ("fieldmark_challenge.actions",)
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["fieldmark", *arguments]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as ended:
            assert not ended.code, (arguments, ended.code)
    print(json.dumps([name for name in slow if name in sys.modules]))
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    from fieldmark_tests.fixtures import save_photo

    folder = tmp_path_factory.mktemp("startup")
    for label, color in (("Alba alba", (220, 210, 200)), ("Rubra vera", (200, 60, 50))):
        for number in range(6):
            part = ("train", "val", "test")[number % 3]
            save_photo(folder / "photos" / part / label / f"{label[0]}{number}.jpg", color, 10 * number + len(label))
    photo = folder / "new.jpg"
    save_photo(photo, (210, 100, 90), 99)
    data, small = ["--data", str(folder / "photos")], ["--set", "size=32"]
    runs = [str(folder / "linear"), str(folder / "centroid")]
    fits = {
        "fit": ["fit", "folder", *data, "--method", "centroid", *small, "--out", runs[1]],
        "fit with cached features": ["fit", "folder", *data, "--method", "linear", *small, "--out", runs[0]],
    }
    others = {
        "compare": ["compare", *runs],
        "score": ["score", "folder", runs[0], *data],
        "identify": ["identify", str(photo), "--model", runs[0]],
        "predict": ["predict", runs[0], str(photo)],
        "list": ["list"],
    }
    return _modules_after(fits) | _modules_after(others) | _modules_after({"help": ["--help"]})


def _modules_after(commands: dict[str, list[str]]) -> dict[str, list[str]]:
    command = [sys.executable, "-c", PROGRAM, json.dumps(list(commands.values()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(zip(commands, map(json.loads, done.stdout.splitlines()), strict=True))


# pyarrow imports pandas, where it is installed, to write the predictions of a fit.
@pytest.mark.parametrize(
    ("verb", "allowed"),
    [
        ("compare", []),
        ("score", []),
        ("identify", []),
        ("predict", []),
        ("help", []),
        ("list", ["fieldmark.benchmarks.birdclef"]),  # it names the metrics of all benchmarks
        ("fit", ["pandas"]),
        ("fit with cached features", ["pandas"]),
    ],
)
def test_no_slow_library_is_imported_by(loaded, verb, allowed):
    assert set(loaded[verb]) <= set(allowed)


def test_every_verb_stands_in_the_table_under_the_name_of_its_command():
    from typer.main import get_command

    from fieldmark.cli.main import VERBS, application

    assert set(get_command(application()).commands) == set(VERBS)
    for verb in VERBS:
        assert list(get_command(application(verb)).commands) == [verb]


def test_a_list_of_settings_loads_nothing_that_fits():
    code = "import sys, fieldmark.fitting.setting_lists; sys.exit('fieldmark.fitting.harness' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_scoring_and_comparing_load_no_scipy_before_an_interval_needs_it():
    code = "import sys, fieldmark.views.score_run, fieldmark.scoring.comparison; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# The same commands where torch and its relatives were never installed.
WITHOUT_TORCH = """
import sys
from importlib.machinery import PathFinder

class Bare(PathFinder):
    @classmethod
    def find_spec(cls, name, *others):
        missing = name.partition(".")[0] in ("torch", "torchvision", "timm", "lightning_fabric")
        return None if missing else super().find_spec(name, *others)

sys.meta_path = [Bare if finder is PathFinder else finder for finder in sys.meta_path]
from fieldmark.cli.main import main
sys.argv = ["fieldmark", *sys.argv[1:]]
main()
"""


@pytest.fixture
def without_torch(make_release, tmp_path):
    data = make_release()

    def call(method: str) -> subprocess.CompletedProcess[str]:
        options = ["--data", str(data), "--method", method, "--out", str(tmp_path / method)]
        options += ["--set", "size=32"] if method == "centroid" else []
        command = [sys.executable, "-c", WITHOUT_TORCH, "fit", "folder", *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return call


def test_photos_become_a_number_without_torch(without_torch):
    done = without_torch("centroid")
    assert done.returncode == 0, done.stderr
    assert "macro_f1_all" in done.stdout


def test_a_method_that_trains_says_which_extra_brings_torch(without_torch):
    done = without_torch("finetune")
    assert done.returncode == 2
    assert "needs torch, which is not installed: pip install 'fieldmark[train]'" in " ".join(done.stderr.split())
