import json
import shutil
from dataclasses import replace

import pytest

from fieldmark.errors import MisuseError
from fieldmark.identification.field_guide import npm_packages
from fieldmark.identification.field_guide.contents import ArrayFile, plain_step
from fieldmark.identification.field_guide.export import export_guide
from fieldmark.identification.field_guide.npm_packages import NpmError, NpmPackage, package_files, pinned
from fieldmark.models import load_model
from fieldmark.steps.neighbors import Neighbors


def test_a_package_with_another_checksum_is_refused(tmp_path):
    package = NpmPackage("thing", "1.0.0", "sha512-AAAA")
    (tmp_path / package.archive).write_bytes(b"something else")
    with pytest.raises(NpmError, match=r"expected sha512-AAAA\. Delete the file"):
        package_files(package, ["a.js"], tmp_path)


def test_without_npm_the_sentence_says_which_file_to_put_where(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    package = pinned("onnxruntime-web")
    with pytest.raises(NpmError, match=f"npm pack onnxruntime-web@{package.version}.*{package.archive}"):
        package_files(package, ["dist/ort.wasm.min.mjs"], tmp_path / "cache")


def test_files_inside_the_wheel_come_first(tmp_path, monkeypatch):
    for name in npm_packages.RUNTIME_FILES:
        (tmp_path / name).write_bytes(name.encode())
    monkeypatch.setattr(npm_packages, "PACKED", tmp_path)
    assert npm_packages.runtime_files(tmp_path / "none")["ort.wasm.min.mjs"] == b"ort.wasm.min.mjs"


def test_a_guide_that_cannot_be_made_leaves_nothing_behind(color_model, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setenv("FIELDMARK_CACHE", str(tmp_path / "cache"))
    with pytest.raises(MisuseError, match="npm pack"):
        export_guide(color_model, tmp_path / "guide")
    with pytest.raises(MisuseError, match="Weights are not stored as '4-bit'"):
        export_guide(color_model, tmp_path / "guide", weights="4-bit")
    assert not (tmp_path / "guide").exists()


def test_a_step_that_is_no_plain_number_is_refused_by_name(color_model):
    model = load_model(color_model)
    with pytest.raises(MisuseError, match="its step neighbors is not among those that are plain numbers"):
        plain_step(Neighbors(), replace(model), ArrayFile())


def test_versions_of_packages_are_exact_and_have_a_checksum():
    declared = json.loads((npm_packages.APP / "package.json").read_text(encoding="utf-8"))
    for name in ("onnxruntime-web", "axe-core"):
        assert pinned(name).integrity.startswith("sha512-")
    every = {**declared["dependencies"], **declared["devDependencies"]}
    assert all(version[0].isdigit() for version in every.values())
