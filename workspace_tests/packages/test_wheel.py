"""The wheel works where there is no checkout: the core alone scores, with [vision,report] photos are fitted and shown.

The environments are empty but for what the wheel asks for. Nothing is downloaded: what it asks for is linked from
where the tests run. `python -m studies.perf packages` installs for real, and runs the demo.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from fieldmark.version import __version__
from fieldmark_tests.fixtures import COLORS, save_photo
from fieldmark_tests.places import ROOT
from studies.perf.packages import UV, build_wheel, clean_environment


class Environment:
    """A Python with a few packages and the wheel."""

    def __init__(self, place: Path, wheel: Path, extras: tuple[str, ...], platform: Path | None = None) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
        self.bin = place / "bin"
        self.packages = next((place / "lib").glob("python*/site-packages"))
        install = [UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", str(self.bin / "python")]
        wheels = [str(one) for one in (wheel, platform) if one is not None]
        subprocess.run([*install, *wheels], check=True, capture_output=True, env=clean_environment())
        self.names = {"fieldmark", "fieldmark-challenge"}  # which are there
        wanted = requirements(next(self.packages.glob("fieldmark-*.dist-info")), extras)
        if platform is not None:
            wanted += requirements(next(self.packages.glob("fieldmark_challenge-*.dist-info")), ())
        for name, further in wanted:
            self._link(name, further)

    def _link(self, name: str, extras: tuple[str, ...]) -> None:
        if name in self.names:
            return
        self.names.add(name)
        found = distribution(name)
        for top in {Path(file.parts[0]) for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
            target = self.packages / top
            if not target.exists():
                target.symlink_to(Path(str(found.locate_file(top))))
        for further, wanted in needed(found.requires or (), extras):
            self._link(further, wanted)

    def __call__(self, *words: object, folder: Path) -> subprocess.CompletedProcess[str]:
        command = [str(self.bin / "fieldmark"), *map(str, words)]
        return subprocess.run(command, check=False, cwd=folder, env=clean_environment(), capture_output=True, text=True)

    def has(self, module: str) -> bool:
        code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        command = [str(self.bin / "python"), "-c", code]
        return subprocess.run(command, check=False, env=clean_environment()).returncode == 0


def needed(requires, extras: tuple[str, ...]):
    """What applies here of some requirements: names, and the extras that they are asked for with."""
    for text in requires:
        one = Requirement(text)
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield one.name, tuple(one.extras)


def requirements(about: Path, extras: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """What a wheel asks for, its own extras followed: names, and the extras that they are asked for with."""
    lines = [
        line.partition(": ")[2]
        for line in (about / "METADATA").read_text().splitlines()
        if line.startswith("Requires-Dist")
    ]
    found = []
    for name, further in needed(lines, extras):
        found += requirements(about, further) if about.name.startswith(f"{name}-") else [(name, further)]
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def platform_wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("platform-wheel"), "fieldmark-challenge")


def test_the_core_alone_scores_and_says_what_else_needs_more(wheel, tmp_path):
    core = Environment(tmp_path / "core", wheel, ())
    assert not any(core.has(module) for module in ("torch", "matplotlib", "fastapi", "jinja2"))
    (tmp_path / "truth.csv").write_text("id,label\n" + "".join(f"{row},{row % 3}\n" for row in range(60)))
    (tmp_path / "run.csv").write_text("id,predicted\n" + "".join(f"{row},{row % 2}\n" for row in range(60)))
    scored = core("score", "folder", "run.csv", "--truth", "truth.csv", folder=tmp_path)
    assert scored.returncode == 0 and "macro_f1_all" in scored.stdout, scored.stderr
    listed = core("list", "recipes", folder=tmp_path)
    assert listed.returncode == 0 and "better" in listed.stdout, listed.stderr
    refused = core("report", "run.csv", folder=tmp_path)
    assert refused.returncode != 0 and "fieldmark[report]" in refused.stderr


def test_a_participant_needs_an_http_client_and_no_web_framework(wheel, tmp_path):
    made = Environment(tmp_path / "submit", wheel, ("submit",))
    assert made.has("httpx") and not any(
        made.has(module) for module in ("fastapi", "sqlalchemy", "fieldmark_challenge")
    )
    (tmp_path / "run.csv").write_text("id,predicted\n")
    refused = made(
        "submit", "http://127.0.0.1:9/c/none", "run.csv", "--token", "fm_none", "--external", "none", folder=tmp_path
    )
    assert refused.returncode == 1 and "127.0.0.1:9" in refused.stderr, refused.stderr
    refused = made("serve", folder=tmp_path)
    assert refused.returncode != 0 and "fieldmark[server]" in refused.stderr


def test_the_platform_adds_its_verbs_to_the_command_line(wheel, platform_wheel, tmp_path):
    made = Environment(tmp_path / "server", wheel, ("web", "submit"), platform_wheel)
    shown = made("--help", folder=tmp_path)
    assert all(verb in shown.stdout for verb in ("serve", "worker", "challenge")), shown.stderr
    done = made("challenge", "--help", folder=tmp_path)
    assert done.returncode == 0 and "create" in done.stdout, done.stderr


def test_with_vision_and_report_photos_are_fitted_and_shown(wheel, tmp_path):
    made = Environment(tmp_path / "whole", wheel, ("vision", "report"))
    for number, (label, color) in enumerate(COLORS.items()):
        for photo, part in enumerate(("train", "train", "val", "test")):
            save_photo(tmp_path / "photos" / part / label / f"{number}-{photo}.jpg", color, 10 * number + photo)
    settings = ("--set", "size=32", "--out", "run")
    fitted = made("fit", "folder", "--data", "photos", "--method", "centroid", *settings, folder=tmp_path)
    assert fitted.returncode == 0, fitted.stderr
    shown = made("report", "run", folder=tmp_path)
    assert shown.returncode == 0 and (tmp_path / "run" / "report.html").stat().st_size > 10_000, shown.stderr


def test_the_version_is_one_and_the_same():
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    changed = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert cited and changed and {cited[1], changed[1]} == {__version__}
    assert re.fullmatch(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?", __version__)
    core, platform = (
        tomllib.loads((ROOT / "packages" / name / "pyproject.toml").read_text())["project"]
        for name in ("fieldmark", "fieldmark-challenge")
    )
    assert platform["version"] == __version__ and f"fieldmark[web,submit]=={__version__}" in platform["dependencies"]
    assert core["optional-dependencies"]["server"] == [f"fieldmark-challenge=={__version__}"]
