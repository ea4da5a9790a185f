"""Challenges of the kinds that later editions brought, hosted from files to the board."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from fieldmark.benchmarks import BENCHMARKS
from fieldmark_challenge.lifecycle.creation import NewChallenge, create_challenge, material_of_files
from fieldmark_challenge.scoring.worker import Worker
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.platform import Platform

UNITS = range(8)
# Truth, classes and two runs, the first better than the second, by benchmark.
LISTS = (
    "id,label,unit\n" + "".join(f"q{n},{n % 3},t{n}\nq{n},7,t{n}\n" for n in UNITS),
    "label\n0\n1\n2\n7\n",
    "quadrat_id,species_ids\n" + "".join(f'q{n},"[{n % 3}, 7]"\n' for n in UNITS),
    "quadrat_id,species_ids\n" + "".join(f'q{n},"[7]"\n' for n in UNITS),
)
CLUSTERS = (
    "id,label,unit,dataset\n" + "".join(f"p{n}-{k},a{n},a{n},newt\n" for n in UNITS for k in range(3)),
    None,
    "image_id,cluster\n" + "".join(f"p{n}-{k},cluster_newt_{n}\n" for n in UNITS for k in range(3)),
    "image_id,cluster\n" + "".join(f"p{n}-{k},cluster_newt_{n // 2}\n" for n in UNITS for k in range(3)),
)
INDIVIDUALS = (
    "id,label,unit,dataset\n" + "".join(f"p{n},{f'a{n}' if n % 2 else -1},a{n},newt\n" for n in range(16)),
    "label\n" + "".join(f"a{n}\n" for n in range(16) if n % 2),
    "image_id,identity\n" + "".join(f"p{n},{f'a{n}' if n % 2 else 'new_individual'}\n" for n in range(16)),
    "image_id,identity\n" + "".join(f"p{n},{'a1' if n % 2 else 'new_individual'}\n" for n in range(16)),
)
DECISIONS = (
    "id,label,unit,present\n" + "".join(f"r{n}_5,jay,r{n},{n % 2 == 0}\nr{n}_5,owl,r{n},{n % 2 == 1}\n" for n in UNITS),
    "label\njay\nowl\n",
    "row_id,target\n" + "".join(f"r{n}_jay_5,{n % 2 == 0}\nr{n}_owl_5,{n % 2 == 1}\n" for n in UNITS),
    "row_id,target\n" + "".join(f"r{n}_jay_5,True\nr{n}_owl_5,True\n" for n in UNITS),
)
COLUMNS = (
    "id,label,unit\n" + "".join(f"r{n}_{end},{'jay' if end == 5 else 'owl'},r{n}\n" for n in UNITS for end in (5, 10)),
    "label\njay\nowl\n",
    "row_id,jay,owl\n" + "".join(f"r{n}_5,0.9,0.1\nr{n}_10,0.2,0.8\n" for n in UNITS),
    "row_id,jay,owl\n" + "".join(f"r{n}_5,0.5,0.5\nr{n}_10,0.5,0.5\n" for n in UNITS),
)
KINDS = {
    "plantclef-2025": (LISTS, 1.0, 2 / 3),
    "animalclef-2026": (CLUSTERS, 1.0, None),
    "animalclef-2025": (INDIVIDUALS, 1.0, None),
    "birdclef-2022": (DECISIONS, 1.0, 0.5),
    "birdclef-2024": (COLUMNS, 1.0, 0.5),
}


@pytest.mark.parametrize("benchmark", KINDS)
def test_a_challenge_of_each_new_kind_is_made_scored_and_ranked(benchmark: str, small_platform: Platform, tmp_path):
    (truth, classes, better, worse), best, second = KINDS[benchmark]
    (tmp_path / "truth.csv").write_text(truth)
    named = tmp_path / "classes.csv"
    if classes is not None:
        named.write_text(classes)
    with material_of_files(benchmark, tmp_path / "truth.csv", named if classes else None) as material:
        new = NewChallenge("edition", benchmark, public_share=None)
        challenge = create_challenge(
            small_platform.database, small_platform.storage, small_platform.admin, new, material
        )
    sent = [
        small_platform.hand_in(small_platform.captain(name, challenge), run, challenge=challenge)
        for name, run in (("ada", better), ("bob", worse))
    ]
    worker = Worker(small_platform.database, small_platform.storage, name="worker")
    while worker.run_one():
        pass
    values = []
    for one in sent:
        scored = small_platform.submission(one.id)
        assert scored.state == "scored", scored.reason
        metric = BENCHMARKS[benchmark].task.deciding.name
        values.append(scored.scores[0].card["metrics"][metric]["value"])
    assert values[0] == pytest.approx(best)
    assert values[1] < best if second is None else values[1] == pytest.approx(second)


def test_what_is_provisional_about_an_edition_stands_on_the_page_of_its_challenge(small_platform: Platform, tmp_path):
    (tmp_path / "truth.csv").write_text("id,label\n" + "".join(f"o{n},{n % 3}\n" for n in range(12)))
    with material_of_files("snakeclef-2022", tmp_path / "truth.csv", None) as material:
        new = NewChallenge("snakes", "snakeclef-2022", public_share=None)
        create_challenge(small_platform.database, small_platform.storage, small_platform.admin, new, material)
    page = TestClient(create_app(small_platform.database, small_platform.storage)).get("/c/snakes").text
    assert "<strong>Provisional:</strong> macro-F1 is what participants name" in page
