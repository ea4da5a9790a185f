"""A hosted challenge that asks for programs: invented snakes, hidden photos, and a sample to try programs on."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fieldmark.scoring.score_parts import truth_files
from fieldmark.views.score_run import write_truth
from fieldmark_challenge.challenges import code_tasks
from fieldmark_challenge.lifecycle.creation import NewChallenge, create_challenge, material_of_files
from fieldmark_challenge.programs import hosts, tasks
from fieldmark_challenge.programs.inputs import inputs_of_release
from fieldmark_challenge.programs.runners import BubblewrapRunner
from fieldmark_challenge.programs.tasks import CodeInputs, CodeRules
from fieldmark_challenge.records.code_schema import CodeHost, Program
from fieldmark_challenge.records.schema import Challenge, User
from fieldmark_challenge_tests.platform import Platform
from fieldmark_challenge_tests.programs.programs import archive_of
from fieldmark_challenge_tests.unprivileged import require_sandbox

RULES = CodeRules(seconds=60, memory_mb=1024, processes=24, disk_mb=16, output_mb=1, archive_mb=4, debug_seconds=60)
# Answers each photo with what a table in its archive says, and the others with the first class.
LOOKUP = """
import csv, json, os
known = json.load(open("known.json"))
rows = csv.DictReader(open(os.environ["AICROWD_TEST_METADATA_PATH"]))
items = [row["hashed_id"] for row in rows]
photos = os.listdir(os.environ["AICROWD_TEST_IMAGES_PATH"])
assert sorted(photos) == sorted(item + ".jpg" for item in items)
print("photos", len(photos))
with open(os.environ["AICROWD_PREDICTIONS_OUTPUT_PATH"], "w") as sink:
    sink.write(",".join(["hashed_id", *known["classes"]]) + "\\n")
    for item in items:
        right = known["answers"].get(item, known["classes"][0])
        sink.write(",".join([item, *("1.0" if name == right else "0.0" for name in known["classes"])]) + "\\n")
"""


@dataclass
class Hosted:
    """A platform with a challenge that asks for programs."""

    platform: Platform
    challenge: Challenge
    truth: dict[str, str]
    classes: list[str]

    def archive(self, *, right: int) -> bytes:
        """A program that answers so many items right."""
        return archive_of(LOOKUP, **{"known.json": self.known(right=right)})

    def known(self, *, right: int) -> str:
        """What such a program knows."""
        answers = dict(sorted(self.truth.items())[:right])
        return json.dumps({"classes": self.classes, "answers": answers})

    def hand_in(self, user: User, archive: bytes, **entry: Any) -> Program:
        submission = self.platform.hand_in(user, archive, challenge=self.challenge, filename="team.tar.gz", **entry)
        with self.platform.database.read() as session:
            return session.query(Program).filter_by(submission_id=submission.id).one()

    def program(self, number: int) -> Program:
        with self.platform.database.read() as session:
            found = session.get_one(Program, number)
            found.submission  # noqa: B018  (loaded while there is a session)
            return found

    def set_rules(self, **changes: Any) -> None:
        with self.platform.database.read() as session:
            phases = code_tasks.code_phases(session, self.challenge)
        rules = replace(RULES, **changes)
        owner, store = self.platform.admin, self.platform.storage
        tasks.set_code(self.platform.database, store, owner, self.challenge, rules, phases, most_archive_mb=64)


def host_snakes(platform: Platform, world: Path, slug: str = "snakes", **settings: Any) -> Hosted:
    """Makes the challenge; machines whose walls do not hold cannot."""
    require_sandbox()
    folder = platform.folder / slug
    write_truth("snakeclef-2020", world, folder / "truth")
    files = truth_files(folder / "truth")
    with material_of_files("snakeclef-2020", files["truth"], files["classes"], simulated=True) as material:
        new = NewChallenge(slug, "snakeclef-2020", **{"public_share": 0.5, "seed": 0} | settings)
        challenge = create_challenge(platform.database, platform.storage, platform.admin, new, material)
    with platform.database.write() as session:  # as a worker notes it when it starts
        session.merge(CodeHost(name="here", runner=hosts.tried_with(BubblewrapRunner()), failure=""))
    with platform.database.read() as session:
        phase = session.get_one(Challenge, challenge.id).phases[0].id
    inputs, sample = inputs_of_release("snakeclef-2020", world, folder)
    tasks.set_code(
        platform.database, platform.storage, platform.admin, challenge, RULES, [phase], CodeInputs(inputs, sample),
        most_archive_mb=64,
    )  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(files["truth"].read_text())))
    classes = [row["label"] for row in csv.DictReader(io.StringIO(files["classes"].read_text()))]
    return Hosted(platform, challenge, {row["id"]: row["label"] for row in rows}, classes)
