"""Promises about the declared releases, and about choosing from them."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import pytest

from fieldmark.errors import MisuseError
from fieldmark.releases.download.local_copies import place_of
from fieldmark.releases.download.manifest import EVERYTHING, Manifest, ReleaseFile
from fieldmark.releases.download.manifests import MANIFESTS
from fieldmark.storage.archives import safe_name

every_release = pytest.mark.parametrize("name", list(MANIFESTS))


@every_release
def test_a_manifest_loads_under_its_name_and_says_the_terms(name: str) -> None:
    manifest = MANIFESTS[name]
    assert manifest.name == name
    assert manifest.license
    assert manifest.homepage.startswith("https://")
    assert manifest.by_hand.endswith(".")
    assert manifest.choose()


@every_release
def test_no_two_files_share_a_place_and_all_stay_in_the_root(name: str) -> None:
    manifest = MANIFESTS[name]
    places = [place_of(file, Path("root")) for file in manifest.files]
    assert len(set(places)) == len(places)
    for file in manifest.files:
        for path in (file.name, file.into, *file.creates):
            safe_name(path)
        assert PurePosixPath(file.name).name == file.name


@every_release
def test_addresses_are_https_and_none_needs_a_login(name: str) -> None:
    urls = [url for file in MANIFESTS[name].files for url in file.mirrors]
    assert len(set(urls)) == len(urls)
    for url in urls:
        parts = urlsplit(url)
        assert parts.scheme == "https"
        assert parts.hostname is not None
        assert "kaggle" not in parts.hostname


@every_release
def test_checksums_are_well_formed(name: str) -> None:
    for file in MANIFESTS[name].files:
        assert file.md5 is None or re.fullmatch("[0-9a-f]{32}", file.md5)
        assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)


@every_release
def test_a_file_without_a_mirror_says_how_to_get_it(name: str) -> None:
    manifest = MANIFESTS[name]
    assert all(file.mirrors or "https://" in (file.by_hand or manifest.by_hand) for file in manifest.files)


@every_release
def test_every_file_can_be_chosen_by_a_tag_that_is_no_file_name(name: str) -> None:
    manifest = MANIFESTS[name]
    assert all(file.tags for file in manifest.files)
    assert not {EVERYTHING, *manifest.tags} & {file.name for file in manifest.files}
    assert not any("," in tag or tag != tag.strip() for tag in manifest.tags)


def test_the_archives_of_fungitastic_bear_the_published_names() -> None:
    names = {file.name for file in MANIFESTS["fungitastic"].files}
    assert {"FungiTastic-train-500p.zip", "FungiTastic-Mini-dna-test-fullsize.zip", "metadata.zip"} <= names
    assert "FungiTastic-FewShot-test-300p.zip" in names
    assert "FungiTastic-FewShot-dna-test-300p.zip" not in names
    assert not any("pp" in name for name in names)


def test_the_usual_choice_of_fungitastic_fits_a_laptop() -> None:
    chosen = MANIFESTS["fungitastic"].choose()
    assert {file.name for file in chosen if "photos" not in file.tags} == {"metadata.zip", "masks.zip"}
    assert all({"mini", "300p"} <= set(file.tags) for file in chosen if "photos" in file.tags)
    assert sum(file.expected_size or 0 for file in chosen) < 5e9


MANIFEST = Manifest(
    "toy",
    (
        ReleaseFile("meta.csv", tags=("metadata",)),
        ReleaseFile("mini-300.zip", tags=("photos", "mini", "300p")),
        ReleaseFile("mini-500.zip", tags=("photos", "mini", "500p")),
        ReleaseFile("full-300.zip", tags=("photos", "full", "300p")),
    ),
    by_hand="Ask around.",
)


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ((), "meta.csv mini-300.zip mini-500.zip full-300.zip"),
        (("all",), "meta.csv mini-300.zip mini-500.zip full-300.zip"),
        (("mini",), "mini-300.zip mini-500.zip"),
        (("mini,300p",), "mini-300.zip"),
        (("300p, full", "metadata"), "meta.csv full-300.zip"),
        (("mini-500.zip",), "mini-500.zip"),
    ],
)
def test_commas_narrow_and_repeats_widen(wanted: tuple[str, ...], names: str) -> None:
    assert [file.name for file in MANIFEST.choose(wanted)] == names.split()


def test_an_unknown_part_gets_a_suggestion() -> None:
    with pytest.raises(MisuseError, match="Did you mean metadata"):
        MANIFEST.choose(["metdata"])


def test_parts_that_do_not_meet_are_told() -> None:
    with pytest.raises(MisuseError, match="500p and full at once"):
        MANIFEST.choose(["full,500p"])


def test_a_file_cannot_be_declared_twice() -> None:
    with pytest.raises(ValueError, match="declared twice: x"):
        Manifest("toy", (ReleaseFile("x"), ReleaseFile("x")), by_hand="")


def test_the_stronger_checksum_judges() -> None:
    checksum = ReleaseFile("x", md5="0" * 32, sha256="A" * 64).checksum
    assert checksum is not None
    assert (checksum.algorithm, checksum.digest) == ("sha256", "a" * 64)
