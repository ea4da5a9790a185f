"""Commands with addresses: the same answers as on disk, and one sentence where that cannot be."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import fsspec
import pytest

import fieldmark
from fieldmark.errors import InputError, MissingExtraError
from fieldmark.fitting import fit
from fieldmark.runs.provenance import Run
from fieldmark.splits.files import read_split
from fieldmark.storage.release import Release
from fieldmark_tests.fixtures import save_photo
from fieldmark_tests.object_storage.buckets import in_memory
from fieldmark_tests.places import GOLDEN

SETTINGS = {"size": 32, "l2": 0.01}


def test_a_method_fitted_to_a_bucket_scores_as_on_disk(color_model, bucket, tmp_path):
    address = bucket.fill(color_model.parent / "photos", "colors")
    result = fit("folder", address, "linear", tmp_path / "run", settings=SETTINGS)
    here = json.loads((color_model / "scorecard.json").read_text())
    there = json.loads((tmp_path / "run" / "scorecard.json").read_text())
    assert there["metrics"] == here["metrics"] and result.scorecard.items == here["items"]
    assert (tmp_path / "run" / "run.csv").read_bytes() == (color_model / "run.csv").read_bytes()
    assert Run.read(tmp_path / "run").data == address


def test_runs_truth_and_models_are_read_at_addresses(color_model, bucket, tmp_path, run_main):
    photos = color_model.parent / "photos"
    run_main("truth", "folder", "--data", photos, "--out", tmp_path / "truth")
    truth, run = in_memory(tmp_path / "truth", "truth"), bucket.fill(color_model, "run")
    tables = ("--truth", f"{truth}/truth.csv", "--classes", f"{truth}/classes.csv", "--json")
    code, there, _ = run_main("score", "folder", f"{run}/run.csv", *tables)
    assert code == 0
    _, here, _ = run_main(
        "score", "folder", color_model / "run.csv", "--truth", tmp_path / "truth/truth.csv",
        "--classes", tmp_path / "truth/classes.csv", "--json",
    )  # fmt: skip
    assert json.loads(there)["metrics"] == json.loads(here)["metrics"]
    cards = [fieldmark.score("folder", place, data=photos) for place in (run, color_model)]
    assert cards[0].metrics == cards[1].metrics
    photo = next((photos / "test").rglob("*.jpg"))
    code, answered, _ = run_main("predict", run, photo, "--json")
    assert code == 0 and answered == run_main("predict", color_model, photo, "--json")[1]


def test_errors_speak_of_the_address_and_not_of_the_copy(bucket, tmp_path, run_main):
    (tmp_path / "run.csv").write_text("nothing,of,this\n1,2,3\n")
    (tmp_path / "truth.csv").write_text("id,label\na,b\n")
    address = bucket.fill(tmp_path, "broken")
    code, _, error = run_main("score", "folder", f"{address}/run.csv", "--truth", f"{address}/truth.csv")
    assert code == 1 and error.startswith(f"fieldmark: {address}/run.csv, line 1: found")


def test_exports_of_one_file_are_sent(color_model, bucket, run_main):
    photos = color_model.parent / "photos"
    out = f"s3://{bucket.name}/exports/coco.json"
    code, _, error = run_main("export", "coco", "folder", "--data", photos, "--out", out)
    assert code == 0, error
    with fsspec.open(out) as file:
        assert len(json.load(file)["images"]) == 36
    code, _, error = run_main("export", "split", "folder", "--data", photos, "--out", "memory://splits/colors.csv")
    assert code == 0, error
    split = read_split(Path("memory://splits/colors.csv"))
    assert len(split.table) == 36 and split.is_own_of("folder")


def test_a_report_about_a_run_in_a_bucket_is_sent_there(color_model, bucket, tmp_path, run_main):
    address = bucket.fill(color_model, "reported")
    code, out, error = run_main("report", address)
    assert code == 0 and out.strip().endswith(f"report in {address}/report.html"), error
    with fsspec.open(f"{address}/report.html", "r", encoding="utf-8") as file:
        page = file.read()
    assert ": linear</title>" in page and "</html>" in page and "/tmp" not in page
    code, out, error = run_main("report", f"{address}/nothing", "--out", tmp_path / "page.html")
    assert code == 1 and f"{address}/nothing: no such file or directory, expected the folder of a run" in error
    assert not (tmp_path / "page.html").exists()


def test_checked_answers_are_added_to_a_release_in_a_bucket(color_model, bucket, tmp_path, run_main):
    photos = color_model.parent / "photos"
    root = bucket.fill(photos, "checked-release")
    wrong, val, test = (next((photos / part / "Alba alba").iterdir()) for part in ("train", "val", "test"))
    for number in range(2):
        save_photo(tmp_path / "new" / f"{number}.jpg", (60, 200, 60), 700 + number)
    shutil.copyfile(test, tmp_path / "new" / "copy.jpg")
    rows = [
        f"{root}/{wrong.relative_to(photos)},Rubra vera,uncertain",
        f"{root}/{val.relative_to(photos)},Rubra vera,uncertain",
        *(f"{name}.jpg,Viridis nova,uncertain" for name in ("0", "1", "copy")),
    ]
    (tmp_path / "new" / "checked.csv").write_text("\n".join(["file,label,drawn", *rows]) + "\n")
    beside = bucket.fill(tmp_path / "new", "checked")
    cards = []
    for place in (tmp_path / "new", beside):
        out = tmp_path / f"run-{len(cards)}"
        settings = ("--set", "size=32", "--set", "l2=0.01", "--out", out)
        add = ("--add", f"{place}/checked.csv")
        code, _, error = run_main("fit", "folder", "--data", root, "--method", "linear", *add, *settings)
        assert code == 0, error
        cards.append(json.loads((out / "model" / "model.json").read_text())["trained"]["added"])
        remarks = " ".join(Run.read(out).remarks)
        assert "2 checked photos were added to train from checked.csv, and 1 labels corrected" in remarks
        assert "2 lie in val or test" in remarks
    assert cards[0] == cards[1] and cards[0]["items"] == 2 and cards[0]["corrected"] == 1
    (tmp_path / "new" / "checked.csv").write_text("file,label\n0.jpg,Rubra vera\nnone.jpg,Rubra vera\n")
    bucket.fill(tmp_path / "new", "checked-gone")
    gone = f"s3://{bucket.name}/checked-gone/checked.csv"
    code, _, error = run_main(
        "fit", "folder", "--data", root, "--method", "linear", "--add", gone, "--out", tmp_path / "x"
    )
    assert code == 1 and f"{gone}, line 3: found 'none.jpg', which is not there, expected a photo" in error


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("fit", "folder", "--data", "DATA", "--method", "linear", "--out", "s3://b/run"), "--out takes a local path"),
        (("world", "folder", "s3://b/world"), "OUT takes a local path, not s3://b/world. Write to this machine"),
        (("review", "s3://b/run"), "takes a local path, not s3://b/run. Copy what lies there"),
        (
            ("check", "folder", "DATA", "--labels", "--out", "x"),
            "A review shows files of a local disk, not of memory://",
        ),
    ],
)
def test_what_must_be_local_is_said_before_any_work(command, sentence, run_main, color_model):
    address = in_memory(color_model.parent / "photos", "said-before")
    code, out, error = run_main(*(address if one == "DATA" else one for one in command))
    assert code == 2 and sentence in error and not out and not Path("s3:").exists()


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("s3://no-such-bucket/fungi", "found no bucket called no-such-bucket, expected a bucket that exists"),
        ("s3://BUCKET/nothing", "s3://BUCKET/nothing: no such file or directory, expected the folder of a release"),
        ("s3://BUCKET/one/a.txt", "found a file, expected the folder of a release"),
    ],
)
def test_a_place_without_a_release_is_one_sentence(address, sentence, bucket, tmp_path):
    (tmp_path / "a.txt").write_text("a")
    bucket.fill(tmp_path, "one")
    with pytest.raises(InputError) as error:
        Release(address.replace("BUCKET", bucket.name))
    assert sentence.replace("BUCKET", bucket.name) in str(error.value)


def test_a_missing_file_is_named_by_its_address(bucket, tmp_path):
    (tmp_path / "a.txt").write_text("a")
    release = Release(bucket.fill(tmp_path, "one"))
    sentence = f"s3://{bucket.name}/one/photos/b.jpg: no such file"
    for read in (release.read, release.open, release.size, lambda path: list(release.read_many(["a.txt", path]))):
        with pytest.raises(InputError, match=sentence):
            read("photos/b.jpg")


def test_no_permission_is_one_sentence(bucket, tmp_path, monkeypatch):
    from moto import settings
    from moto.core.responses import ActionAuthenticatorMixin

    (tmp_path / "a.txt").write_text("a")
    address = bucket.fill(tmp_path, "private")
    monkeypatch.setattr(settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0.0)
    monkeypatch.setattr(ActionAuthenticatorMixin, "request_count", 0)
    with pytest.raises(InputError, match=f"{address}: found no permission, expected an account that may read it"):
        Release(address)


def test_a_server_that_is_not_there_is_one_sentence(bucket, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    fsspec.filesystem("s3").clear_instance_cache()
    try:
        with pytest.raises(InputError, match=r"no connection, in several tries .*127\.0\.0\.1:9.*AWS_ENDPOINT_URL"):
            Release(f"s3://{bucket.name}/fungi")
    finally:
        fsspec.filesystem("s3").clear_instance_cache()


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingExtraError, match=r"needs s3fs, which is not installed: pip install 'fieldmark\[s3\]'"):
        Release("s3a://bucket/fungi")  # the other name of S3, which no test has loaded


def test_an_archive_is_read_where_it_lies(bucket, tmp_path):
    golden = GOLDEN / "occurrences" / "archive"
    shutil.make_archive(str(tmp_path / "zips" / "finds"), "zip", golden)
    here = fieldmark.dataset("occurrences", tmp_path / "zips" / "finds.zip")
    for address in (in_memory(tmp_path / "zips", "zips"), bucket.fill(tmp_path / "zips", "zips")):
        there = fieldmark.dataset("occurrences", f"{address}/finds.zip")
        assert there.digest == here.digest and there.release.root == f"{address}/finds.zip"
