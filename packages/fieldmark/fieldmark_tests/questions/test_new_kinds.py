"""A new kind of items and a new kind of answer: one module each and a registration, and everything else works.

The package under `packages/` adds them from outside, as any installed package may: nothing in Fieldmark names them.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark_tests.fixtures import COLORS, save_photo

PACKAGES = Path(__file__).parent / "packages" / "site-packages"
# Which species grow in the quadrats of each part.
GROWING = {
    "train": [(0,), (1,), (2,), (0, 1), (1, 2)],
    "val": [(0,), (1, 2), (0, 2)],
    "test": [(0, 1), (2,), (1,), (0, 2)],
}


@pytest.fixture
def quadrats(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package as if it were installed."""
    monkeypatch.syspath_prepend(str(PACKAGES))


@pytest.fixture
def plots(tmp_path: Path) -> Path:
    """Photos of quadrats, two of each species that grows in one."""
    root, names = tmp_path / "plots", list(COLORS)
    lines = ["file,observation,quadrat"]
    for part, quadrats_of_part in GROWING.items():
        for number, species in enumerate(quadrats_of_part):
            for one in species:
                for photo in range(2):
                    path = f"{part}/{names[one]}/{number}-{photo}.jpg"
                    save_photo(root / path, COLORS[names[one]], 1000 * one + 10 * number + photo)
                    lines.append(f"{path},{part}-{number}-{one},{part}-{number}")
    (root / "observations.csv").write_text("\n".join(lines) + "\n")
    return root


def test_a_new_kind_is_listed_only_while_its_package_is_there(quadrats):
    assert "quadrats" in BENCHMARKS
    assert BENCHMARKS.about("quadrats") == "from the package fieldmark-quadrats"


def test_without_the_package_there_is_no_such_benchmark():
    with pytest.raises(MisuseError, match="no benchmark called 'quadrats'"):
        BENCHMARKS["quadrats"]


def test_a_new_kind_is_fitted_scored_and_reported(quadrats, plots, tmp_path):
    result = fieldmark.fit("quadrats", plots, "linear", tmp_path / "run", settings={"size": 32})
    card = result.scorecard
    assert (card.items, card.units, card.classes) == (4, 4, 3)
    assert 0 < card.metrics["sample_f1"].value <= 1
    again = fieldmark.score("quadrats", tmp_path / "run", data=plots)
    assert again.metrics == card.metrics
    truth = tmp_path / "truth"
    from fieldmark.views.score_run import write_truth

    assert write_truth("quadrats", plots, truth) == 4
    from_tables = fieldmark.score(
        "quadrats", tmp_path / "run" / "run.csv", truth=truth / "truth.csv", classes=truth / "classes.csv"
    )
    assert from_tables.metrics == card.metrics
    page = fieldmark.report([tmp_path / "run"], tmp_path / "page.html").read_text()
    assert "F1 by quadrat" in page and "Test quadrats" in page


def test_the_scores_are_those_of_a_program_by_hand(quadrats, tmp_path):
    (tmp_path / "truth.csv").write_text("id,label,unit\nq1,a,q1\nq1,b,q1\nq2,c,q2\nq3,,q3\n")
    (tmp_path / "run.csv").write_text("quadrat,species,score\nq1,a,0.9\nq1,c,0.6\nq1,b,0.2\nq2,c,0.5\n")
    (tmp_path / "classes.csv").write_text("label\na\nb\nc\n")
    card = fieldmark.score(
        "quadrats", tmp_path / "run.csv", truth=tmp_path / "truth.csv", classes=tmp_path / "classes.csv"
    )
    assert card.items == 3
    assert card.metrics["sample_f1"].value == pytest.approx(np.mean([0.5, 1.0, 0.0]))


def test_a_new_kind_is_hosted(quadrats, plots, tmp_path):
    pytest.importorskip("fastapi")
    from fieldmark_challenge.lifecycle.creation import NewChallenge, create_challenge, material_of_release
    from fieldmark_challenge.people import accounts, teams
    from fieldmark_challenge.records.database import Database
    from fieldmark_challenge.records.schema import Submission, utc_now
    from fieldmark_challenge.records.storage import Storage
    from fieldmark_challenge.scoring.worker import Worker
    from fieldmark_challenge.submissions import submissions
    from fieldmark_challenge.submissions.submissions import Entry
    from fieldmark_challenge.submissions.uploads import received

    database, storage = Database(f"sqlite:///{tmp_path / 'platform.sqlite'}"), Storage(str(tmp_path / "files"))
    database.migrate()
    owner = accounts.register(database, "ada", "ada@example.org", "correct horse battery", role="admin")
    with material_of_release("quadrats", plots) as material:
        challenge = create_challenge(
            database, storage, owner, NewChallenge("plots", "quadrats", public_share=None), material
        )
    bob = accounts.register(database, "bob", "bob@example.org", "correct horse battery")
    teams.accept_rules(database, bob, challenge)
    teams.make_team(database, bob, challenge, "team bob")
    run = b"quadrat,species,score\ntest-0,Alba alba,0.9\ntest-0,Alba nigra,0.9\ntest-1,Rubra vera,0.9\n"
    with received(io.BytesIO(run), "run.csv", limit_mb=1) as upload:
        sent = submissions.hand_in(database, storage, bob, challenge, upload, Entry(), arrived=utc_now())
    worker = Worker(database, storage, name="worker")
    while worker.run_one():
        pass
    with database.read() as session:
        scored = session.get_one(Submission, sent.id)
        assert (scored.state, scored.reason) == ("scored", scored.reason)
        assert [row.part for row in scored.scores] == ["public"]
        value = scored.scores[0].card["metrics"]["sample_f1"]["value"]
    assert value == pytest.approx((1 + 1 + 0 + 0) / 4)
    database.close()
