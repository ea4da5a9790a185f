"""Does the interface of the platform ever answer with a fault? Schemathesis asks what its description allows, and more.

Every operation is asked with drawn values that fit the description and with values that do not, with addresses of
things that are there and with drawn ones, by an admin, by somebody with a team, and by nobody. Limits on how often
somebody may ask are lifted, since they would answer in place of what is tried.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any, cast
from unittest import mock

import schemathesis.openapi
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.core.result import Ok
from schemathesis.generation.modes import GenerationMode

from fieldmark_challenge.lifecycle.creation import NewChallenge, create_challenge, material_of_files
from fieldmark_challenge.people import accounts, rates, teams
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.site.app import create_app
from studies.evidence.results import read_result, write_result

NAME = "interface"
QUESTIONS, EXAMPLES, SEED = round(50_000 * float(os.environ.get("FIELDMARK_STUDY_SIZE", "1"))), 8, 0
WITHOUT_TOKEN = 4  # nobody is answered 401 before anything else is looked at
PASSWORD = "correct horse battery"
# What stands in addresses for things that are there.
THERE = {"slug": "tiny"} | dict.fromkeys(("submission_id", "number", "entry", "phase_id", "file_id"), 1)
OPTIONS: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "phases": [Phase.generate],
    "suppress_health_check": list(HealthCheck),
}


@contextmanager
def small_site(folder: Path) -> Iterator[tuple[FastAPI, dict[str, str]]]:
    """A platform with one challenge and a team, and tokens of an admin, of that team, and of nobody."""
    database = Database(f"sqlite:///{folder / 'platform.sqlite'}")
    database.migrate()
    storage = Storage(folder / "files")
    admin = accounts.register(database, "admin", "admin@example.org", PASSWORD, role="admin")
    rows = [f"i{number},{'abc'[number % 3]},u{number // 2}" for number in range(60)]
    (folder / "truth.csv").write_text("\n".join(["id,label,unit", *rows]) + "\n")
    with material_of_files("folder", folder / "truth.csv", simulated=True) as material:
        challenge = create_challenge(database, storage, admin, NewChallenge("tiny", "folder"), material)
    ada = accounts.register(database, "ada", "ada@example.org", PASSWORD)
    teams.accept_rules(database, ada, challenge)
    teams.make_team(database, ada, challenge, "team ada")
    tokens = {who.name: accounts.make_token(database, who, "all", accounts.SCOPES) for who in (admin, ada)}
    yield create_app(database, storage), {**tokens, "nobody": ""}
    database.close()


def ask(
    app: FastAPI,
    tokens: Mapping[str, str],
    *,
    examples: int,
    seed_number: int = SEED,
    modes: tuple[GenerationMode, ...] = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE),
    strange_addresses: bool = True,
) -> tuple[Counter[int], list[str]]:
    """Asks every operation.

    Args:
        app: The platform.
        tokens: Who asks, by name.
        examples: How many questions for each operation, person, mode, and kind of address; fewer by nobody.
        seed_number: What is drawn from.
        modes: Whether questions fit the description.
        strange_addresses: Whether to ask for things that are not there as well.

    Returns:
        How often each status was answered, and the questions that were answered with a fault.
    """
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", app)
    statuses: Counter[int] = Counter()
    faults: list[str] = []
    for found in schema.get_all_operations():
        if not isinstance(found, Ok):
            raise RuntimeError(f"the description cannot be read: {found.err()}")
        operation = found.ok()
        own = {one.name for one in operation.path_parameters}
        known = {name: value for name, value in THERE.items() if name in own}
        paths = [known, None] if known and strange_addresses else [known or None]
        for (who, token), mode, path in product(tokens.items(), modes, paths):
            headers = {"authorization": f"Bearer {token}"} if token else {}
            asked = _asking(operation.as_strategy(mode, path_parameters=path), who, headers, statuses, faults)
            options = settings(max_examples=examples if token else min(examples, WITHOUT_TOKEN), **OPTIONS)
            with suppress(Unsatisfiable):  # nothing to draw that would not fit
                options(seed(seed_number)(asked))()
    return statuses, faults


def _asking(
    strategy: Any, who: str, headers: dict[str, str], statuses: Counter[int], faults: list[str]
) -> Callable[[], None]:
    """A test of hypothesis that asks, and notes what was answered."""

    @given(strategy)
    def asked(case: Any) -> None:
        try:
            response = case.call(headers=headers)
        except Exception as error:  # what a server would answer with 500 comes through from an application
            statuses[500] += 1
            faults.append(f"{who}: {case.as_curl_command()[:400]} -> {type(error).__name__}: {error}"[:600])
            return
        statuses[response.status_code] += 1
        if response.status_code >= 500:
            faults.append(f"{who}: {case.as_curl_command()[:400]} -> {response.status_code}")

    return cast(Callable[[], None], asked)


@contextmanager
def without_limits() -> Iterator[None]:
    """Nobody asks too often."""
    with mock.patch.object(rates, "count", lambda *_, **__: None):
        yield


def run() -> dict[str, Any]:
    """How often each status was answered; round after round, each kept when it is done, until enough was asked."""
    logging.disable(logging.WARNING)
    told = read_result(NAME) or {"questions": 0, "rounds": 0, "statuses": {}, "faults": []}
    while told["questions"] < QUESTIONS:
        rounds = told.get("rounds", 1)
        with tempfile.TemporaryDirectory() as name, small_site(Path(name)) as (app, tokens), without_limits():
            statuses, faults = ask(app, tokens, examples=EXAMPLES, seed_number=rounds)
        statuses += Counter({int(status): count for status, count in told["statuses"].items()})
        told = {
            "simulated": True,
            "rounds": rounds + 1,
            "questions": statuses.total(),
            "statuses": {str(status): count for status, count in sorted(statuses.items())},
            "faults": told["faults"] + faults,
        }
        print(told, flush=True)
        write_result(NAME, told)
    return told
