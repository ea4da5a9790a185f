"""What is kept and taken home: challenges made from releases, exports, backups."""

from __future__ import annotations

import csv
import io
import zipfile

import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.challenge.records import backup
from fieldmark.challenge.records.database import Database
from fieldmark.challenge.records.schema import Base, Challenge, DataFile, PartScore, Submission, Team
from fieldmark.challenge.records.storage import Storage
from fieldmark.challenge.refusals import ConflictError, RefusalError
from fieldmark.challenge.running import creating, exports
from fieldmark.challenge.scoring import queue
from fieldmark.challenge.submitting.uploads import checklist
from fieldmark.errors import InputError, MisuseError
from fieldmark.labels import Labels
from tests.challenge.conftest import administer
from tests.challenge.platform import Platform, absent, run_text
from tests.challenge.scoring.test_queue import cards

HOSTED = [name for name in BENCHMARKS if BENCHMARKS[name].task.run.hosted]


@pytest.mark.parametrize("name", HOSTED)
def test_the_sample_run_of_every_benchmark_is_a_valid_run(name, tmp_path):
    task = BENCHMARKS[name].task
    items = ("rec/0", "rec/5", "other/0") if task.items.noun == "segment" else ("x1", "x2", "x3")
    labels = Labels(tuple(f"label{number}" for number in range(40)))
    creating.write_sample(tmp_path / "run.csv", task, items, labels)
    read = task.run.read(tmp_path / "run.csv", items, labels, unknown=task.unknown)
    assert read.items == items


def test_a_challenge_from_a_release_has_its_truth_and_a_baseline(small_platform: Platform, make_release):
    platform = small_platform
    with creating.material_of_release("folder", make_release(per_class=24)) as material:
        new = creating.NewChallenge("photos", "folder", public_share=0.5)
        made = creating.create_challenge(platform.database, platform.storage, platform.admin, new, material)
    assert (made.items, made.units, made.units_public, made.classes) == (18, 18, 9, 3)
    assert len(checklist(platform.storage, made).items) == 18
    with platform.database.read() as session:
        names = {file.name for file in session.query(DataFile).filter_by(challenge_id=made.id)}
        baseline = session.query(Submission).join(Team).filter(Team.challenge_id == made.id).one()
        assert baseline.team.kind == "baseline" and not baseline.counted
    assert names == {"sample_run.csv", "items.csv", "labels.csv"}


def test_which_units_are_public_cannot_be_guessed(small_platform: Platform):
    drawn = set()
    for number in range(3):
        with creating.material_of_files("folder", small_platform.folder / "tiny-truth.csv") as material:
            new = creating.NewChallenge(f"drawn-{number}", "folder", public_share=0.5)
            creating.create_challenge(
                small_platform.database, small_platform.storage, small_platform.admin, new, material
            )
            drawn.add((material.folder / "parts.csv").read_text())
    assert len(drawn) == 3


def test_soundscapes_are_hosted_from_their_tables(small_platform: Platform, tmp_path):
    platform = small_platform
    (tmp_path / "t.csv").write_text("r1;jay;00:00:00-00:00:05\nr2;owl;00:00:05-00:00:10\nr3;jay;00:00:00-00:00:02\n")
    (tmp_path / "m.csv").write_text("MediaId,seconds,site\n" + "".join(f"r{n},10,s{n % 2}\n" for n in range(1, 5)))
    with creating.material_of_files("birdclef-2020", tmp_path / "t.csv", None, tmp_path / "m.csv") as material:
        new = creating.NewChallenge("birds", "birdclef-2020", public_share=0.5)
        made = creating.create_challenge(platform.database, platform.storage, platform.admin, new, material)
    assert (made.items, made.units, made.classes) == (8, 4, 2)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"slug": "Not A Slug"}, "small letters"),
        ({"public_share": 0.001}, "both parts need"),
        ({"daily_limit": 0}, "from 1 on"),
        ({"slug": "tiny"}, "already"),
    ],
)
def test_what_will_not_do_is_said_and_nothing_is_made(small_platform: Platform, settings, sentence):
    with pytest.raises((RefusalError, MisuseError), match=sentence):
        small_platform.make(**{"slug": "other"} | settings)
    with small_platform.database.read() as session:
        assert session.query(Challenge).count() == 1


def test_masks_are_not_hosted(tmp_path):
    with (
        pytest.raises(MisuseError, match="masks"),
        creating.material_of_files("fungitastic-mini/segmentation", tmp_path),
    ):
        pass


def test_exports_are_safe_in_a_spreadsheet_and_complete(small_platform: Platform):
    platform = small_platform
    ada = platform.captain("ada")
    texts = {"title": '=HYPERLINK("http://evil")', "method": "+1 line\nanother", "external_note": "@SUM(A1)"}
    platform.hand_in(ada, external_data=True, **texts)
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards(0.25))
    with platform.database.read() as session:
        rows = exports.export_rows(session, session.get_one(Challenge, platform.challenge.id))
    assert rows[0]["scores"]["private"]["macro_f1_all"]["value"] == 0.25 and rows[0]["final"]
    table = list(csv.DictReader(io.StringIO(exports.to_csv(rows))))
    assert table[0]["title"] == "'" + texts["title"] and table[0]["external_note"] == "'@SUM(A1)"
    assert float(table[0]["public_macro_f1_all_low"]) == 0.15
    for cell in table[0].values():
        assert not cell.startswith(("=", "+", "@", "\t", "-"))


def furnish(platform: Platform) -> None:
    """One of everything."""
    ada = platform.captain("ada")
    platform.hand_in(ada, title="Ünïcode")
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards(0.25))
    platform.hand_in(ada, run_text(right=5))


@pytest.mark.parametrize("target", ["sqlite", "postgresql"])
def test_a_backup_is_restored_on_either_database(platform: Platform, target, tmp_path, request):
    furnish(platform)
    counts = backup.backup(platform.database, platform.storage, tmp_path / "all.zip")
    assert counts["submissions"] == 2 and counts["files"] == len(platform.storage.everything())
    url = f"sqlite:///{tmp_path / 'restored.sqlite'}"
    if target == "postgresql":
        server = request.getfixturevalue("postgresql")
        name = f"restored{request.node.callspec.params['database_url']}"
        administer(server, f"CREATE DATABASE {name}")
        url = f"{server}/{name}"
    restored, store = Database(url), Storage(tmp_path / "restored-files")
    backup.restore(restored, store, tmp_path / "all.zip")
    with platform.database.read() as before, restored.read() as after:
        for table in Base.metadata.sorted_tables:
            if table.name not in backup.LEFT_OUT:
                key = list(table.primary_key.columns)
                rows = [session.execute(table.select().order_by(*key)).all() for session in (before, after)]
                assert rows[0] == rows[1], table.name
        assert after.query(PartScore).count() == 2
    for path in platform.storage.everything():
        assert b"".join(store.chunks(path)) == b"".join(platform.storage.chunks(path))
    # Life goes on: new rows get new numbers, and what waited is scored.
    again = Platform(restored, store, tmp_path, platform.admin, platform.challenge, dict(platform.people))
    assert again.hand_in(again.people["ada"]).id > 2
    assert queue.claim(restored, "w").submission_id == 2
    with pytest.raises(MisuseError, match="restore into an empty one"):
        backup.restore(restored, store, tmp_path / "all.zip")
    restored.close()


def test_only_a_backup_is_restored(small_platform: Platform, tmp_path):
    (tmp_path / "no.zip").write_text("no")
    with pytest.raises(InputError, match="expected a backup"):
        backup.restore(small_platform.database, small_platform.storage, tmp_path / "no.zip")
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("manifest.json", '{"tables": "0001", "counts": {}}')
        for table in Base.metadata.sorted_tables:
            archive.writestr(f"tables/{table.name}.jsonl", "")
        archive.writestr("files/../../evil", "x")
    fresh = Database(f"sqlite:///{tmp_path / 'fresh.sqlite'}")
    with pytest.raises(ValueError, match="not a path of the store"):
        backup.restore(fresh, Storage(tmp_path / "fresh"), tmp_path / "evil.zip")
    fresh.close()


def test_baselines_need_a_name_of_their_own(small_platform: Platform):
    platform = small_platform
    from fieldmark.challenge.submitting.submissions import add_baseline
    from fieldmark.challenge.submitting.uploads import received

    for attempt in range(2):
        with received(io.BytesIO(run_text().encode()), "run.csv", limit_mb=1) as upload:
            if attempt:
                with pytest.raises(ConflictError):
                    add_baseline(
                        platform.database, platform.storage, platform.admin, platform.challenge, "chance", upload
                    )
            else:
                add_baseline(platform.database, platform.storage, platform.admin, platform.challenge, "chance", upload)


def test_absent_programs_fail_where_they_are_required(monkeypatch):
    monkeypatch.delenv("FIELDMARK_REQUIRE_SYSTEM", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no such program"):
        absent("no such program")
    monkeypatch.setenv("FIELDMARK_REQUIRE_SYSTEM", "1")
    with pytest.raises(pytest.fail.Exception, match="asks for it"):
        absent("no such program")
