"""The form that makes a challenge: what its fields say at first, and the challenge that a filled-in one describes."""

from __future__ import annotations

import datetime as dt
from contextlib import AbstractContextManager
from pathlib import Path

from starlette.datastructures import FormData

from fieldmark.tables.numbers import parse_float
from fieldmark.web.refusals import RefusalError
from fieldmark_challenge.lifecycle import creation
from fieldmark_challenge.lifecycle.readiness import refuse_without_data
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, User, utc_now
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.web.forms import kept_files, moment_of, number_of, text_of

FIELDS = (
    "slug",
    "title",
    "summary",
    "description",
    "rules",
    "benchmark",
    "metric",
    "data",
    "public_share",
    "seed",
    "starts",
    "ends",
    "daily",
    "total",
    "needs_run_without_external",
    "ladder",
    "access",
    "stage_of",
    "stage_entry",
    "stage_top",
    "published",
    "without_data",
)


def usual_values() -> dict[str, str]:
    """What the fields of the form say before somebody fills them in."""
    now = utc_now().replace(second=0, microsecond=0, tzinfo=None)
    return dict.fromkeys(FIELDS, "") | {
        "rules": creation.RULES,
        "benchmark": "folder",
        "public_share": "0.3",
        "starts": now.isoformat(timespec="minutes"),
        "ends": (now + dt.timedelta(days=30)).isoformat(timespec="minutes"),
        "daily": "5",
        "total": "100",
        "access": "open",
        "stage_entry": "all",
    }


def create_from(form: FormData, user: User, database: Database, storage: Storage) -> Challenge:
    """Makes the challenge that a form describes."""
    wanted = creation.NewChallenge(
        slug=text_of(form, "slug"),
        benchmark=text_of(form, "benchmark"),
        title=text_of(form, "title"),
        summary=text_of(form, "summary"),
        description=text_of(form, "description"),
        rules=text_of(form, "rules") or creation.RULES,
        public_share=_share(form),
        seed=_seed(form),
        starts_at=moment_of(form, "starts", "The beginning"),
        ends_at=moment_of(form, "ends", "The end"),
        daily_limit=number_of(form, "daily", "The limit per day"),
        total_limit=number_of(form, "total", "The limit in all"),
        needs_run_without_external=text_of(form, "needs_run_without_external") == "yes",
        ladder=text_of(form, "ladder") == "yes",
        access=text_of(form, "access") or "open",
        stage_of=text_of(form, "stage_of").strip(),
        stage_entry=text_of(form, "stage_entry") or "all",
        stage_top=number_of(form, "stage_top", "The number of teams") if text_of(form, "stage_top").strip() else None,
        metric=text_of(form, "metric").strip(),
        published=text_of(form, "published") == "yes",
    )
    with kept_files(form, "truth", "classes", "media") as files, _material(user, form, files) as material:
        if wanted.published and text_of(form, "without_data") != "yes":
            refuse_without_data(wanted.slug, material.downloads, wanted.description)
        return creation.create_challenge(database, storage, user, wanted, material)


def _material(user: User, form: FormData, files: dict[str, Path]) -> AbstractContextManager[creation.Material]:
    benchmark, data = text_of(form, "benchmark"), text_of(form, "data").strip()
    if data:
        # A folder of the server may be anything: naming one is for those who run the server.
        if user.role != "admin":
            raise RefusalError("Only an admin may name a folder of the server; upload the truth as CSV instead.")
        if not Path(data).is_dir():  # never an address: the server fetches nothing from anywhere
            raise RefusalError(f"There is no folder {data!r} on the server.")
        return creation.material_of_release(benchmark, Path(data))
    if "truth" not in files:
        raise RefusalError("Upload the truth as CSV (id, label, and unit where rows are not independent).")
    return creation.material_of_files(benchmark, files["truth"], files.get("classes"), files.get("media"))


def _seed(form: FormData) -> int:
    given = text_of(form, "seed").strip()
    return number_of(form, "seed", "The seed", most=2**63 - 1) if given else creation.secret_seed()


def _share(form: FormData) -> float | None:
    """The public share of the units; None where everything is public."""
    text = text_of(form, "public_share").strip()
    try:
        return parse_float(text) if text else None
    except ValueError as error:
        raise RefusalError(f"The public share: found {text[:40]!r}, expected a number such as 0.3.") from error
