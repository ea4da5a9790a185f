"""What a challenge asks of programs: its inputs, what programs may use, and in which phases they are submitted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from fieldmark.scoring.score_parts import read_truth, truth_files
from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError
from fieldmark_challenge.challenges.code_tasks import code_phases
from fieldmark_challenge.challenges.label_leaks import leaks_of, order_key
from fieldmark_challenge.programs.hosts import need_walls
from fieldmark_challenge.programs.inputs import ID, METADATA, pack, read_items, refuse_labels
from fieldmark_challenge.programs.runners import CodeLimits
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.code_schema import CodePhase, CodeTask, Program
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, Submission, User
from fieldmark_challenge.records.scratch import scratch
from fieldmark_challenge.records.storage import Storage, new_name

# Each rule with the least and the most that organizers may set.
BOUNDS = {
    "seconds": (1, 7 * 86_400),
    "memory_mb": (64, 1 << 20),
    "processes": (2, 4096),
    "disk_mb": (1, 1 << 20),
    "output_mb": (1, 4096),
    "archive_mb": (1, 1 << 16),
    "debug_seconds": (1, 86_400),
    "debug_hourly": (0, 1000),
}
MOST_SAMPLE_ITEMS = 100


@dataclass(frozen=True)
class CodeRules:
    """What programs of a challenge may use, and what their authors see.

    Args:
        seconds, memory_mb, processes, disk_mb, output_mb: See `CodeLimits`.
        archive_mb: How large an archive may be.
        debug_seconds: How long a debug run may take.
        debug_hourly: How many debug runs a team has in an hour.
        show_output: Whether teams see the last lines that a program says on the hidden inputs.
    """

    seconds: int = 3600
    memory_mb: int = 8192
    processes: int = 64
    disk_mb: int = 1024
    output_mb: int = 64
    archive_mb: int = 256
    debug_seconds: int = 300
    debug_hourly: int = 10
    show_output: bool = False

    def limits(self, *, debug: bool = False) -> CodeLimits:
        """What one program may use."""
        seconds = min(self.debug_seconds, self.seconds) if debug else self.seconds
        return CodeLimits(float(seconds), self.memory_mb, self.processes, self.disk_mb, self.output_mb)


@dataclass(frozen=True)
class CodeInputs:
    """Folders with what programs are run on; None leaves those that are stored."""

    inputs: Path | None = None
    sample: Path | None = None


def rules_of(task: CodeTask) -> CodeRules:
    """The rules of a task."""
    return CodeRules(**{field.name: getattr(task, field.name) for field in fields(CodeRules)})


def set_code(
    database: Database,
    storage: Storage,
    actor: User,
    challenge: Challenge,
    rules: CodeRules,
    phases: Collection[int],
    given: CodeInputs = CodeInputs(),  # noqa: B008  (it is frozen)
    *,
    most_archive_mb: int,
) -> list[str]:
    """Has some phases of a challenge ask for programs, under these rules.

    Args:
        database: Where the rules are kept.
        storage: Where the inputs are kept.
        actor: Who decides.
        challenge: The challenge.
        rules: What programs may use.
        phases: The phases that require programs; none ends it.
        given: Inputs of programs.
        most_archive_mb: The largest archive that the server takes.

    Returns:
        Sentences about what in the inputs tells labels.

    Raises:
        ConflictError: When programs cannot be run safely, or a phase has taken runs already.
        RefusalError: When a rule or an input will not do.
    """
    _check_rules(rules, most_archive_mb)
    with database.read() as session:
        if set(phases) - code_phases(session, challenge):
            need_walls(session)
    with scratch("inputs") as folder:
        stored, warnings = _stored(database, storage, challenge, given, folder)
    with database.write() as session:
        mine: Challenge = database.lock(session, Challenge, challenge.id)
        task = session.get(CodeTask, mine.id)
        before = asdict(rules_of(task)) if task else None
        if "inputs_path" in stored and _has_been_run(session, mine):
            raise ConflictError("Programs were run on the present inputs: with others, scores would not compare.")
        if task is None:
            if phases and "inputs_path" not in stored:
                raise RefusalError("Say first what programs are run on (--inputs, or --data for a release).")
            task = CodeTask(challenge_id=mine.id, inputs_path="", inputs_sha256="", items=0)
        for name, value in {**asdict(rules), **stored}.items():
            setattr(task, name, value)
        session.add(task)
        session.flush()
        changed = _set_phases(session, mine, set(phases))
        names = sorted(phase.name for phase in mine.phases if phase.id in set(phases))
        kept = {name: stored[name] for name in ("inputs_sha256", "sample_sha256") if name in stored}
        audit.note(session, actor, "code.set", challenge=mine, before=before, after=asdict(rules), phases=names, **kept)
        for sentence in warnings:
            audit.note(session, actor, "challenge.warn", challenge=mine, subject=mine.slug, sentence=sentence)
        if changed and mine.revealed_at:
            raise ConflictError("The private scores are revealed: the challenge is over.")
    return warnings


def _has_been_run(session: Session, challenge: Challenge) -> bool:
    """Whether the run of a program was written on the inputs that a challenge has."""
    written = (Program.challenge_id == challenge.id, Program.submission_id.is_not(None), Program.state == "done")
    return session.scalars(select(Program.id).where(*written).limit(1)).first() is not None


def _check_rules(rules: CodeRules, most_archive_mb: int) -> None:
    for name, (least, most) in {**BOUNDS, "archive_mb": (1, most_archive_mb)}.items():
        if not least <= getattr(rules, name) <= most:
            what = name.replace("_mb", " in MiB").replace("_", " ")
            raise RefusalError(f"{what}: found {getattr(rules, name)}, expected a number from {least} to {most}.")


def _set_phases(session: Session, challenge: Challenge, wanted: set[int]) -> bool:
    """Changes which phases ask for programs; runs and programs never meet in one phase."""
    if wanted - {phase.id for phase in challenge.phases}:
        raise NotThereError
    present = code_phases(session, challenge)
    for phase in challenge.phases:
        if (phase.id in wanted) == (phase.id in present):
            continue
        if session.scalars(select(Submission.id).where(Submission.phase_id == phase.id).limit(1)).first() is not None:
            raise ConflictError(f"The phase {phase.name!r} has taken submissions: add another one for the other kind.")
        if phase.id in wanted:
            session.add(CodePhase(phase_id=phase.id))
        else:
            session.execute(delete(CodePhase).where(CodePhase.phase_id == phase.id))
    session.flush()
    return wanted != present


def _stored(
    database: Database, storage: Storage, challenge: Challenge, given: CodeInputs, folder: Path
) -> tuple[dict[str, Any], list[str]]:
    """Stores what programs are run on, and what the task keeps about it; sentences about what tells labels."""
    stored: dict[str, Any] = {}
    warnings: list[str] = []
    if given.inputs is None and given.sample is None:
        return stored, warnings
    files = truth_files(storage.fetch_folder(challenge.truth_path, folder / "truth"))
    truth, *_ = read_truth(challenge.versioned_benchmark, files)
    key = order_key(database, challenge.id)
    if given.inputs is not None:
        rows = read_items(given.inputs)
        _refuse_other_items(set(rows[ID]), set(truth.items))
        refuse_labels(rows, dict(truth.rows.select("item_id", "label").iter_rows()))
        sha256 = pack(given.inputs, rows, folder / "inputs.zip", key)
        warnings = [one for one in leaks_of(truth, [folder / "inputs.zip"]) if one.startswith("inputs.zip")]
        stored |= {"inputs_path": _put(storage, challenge, folder / "inputs.zip"), "inputs_sha256": sha256}
        stored["items"] = len(rows)
    if given.sample is not None:
        rows = read_items(given.sample)
        if len(rows) > MOST_SAMPLE_ITEMS:
            raise RefusalError(f"The sample has {len(rows)} items, expected at most {MOST_SAMPLE_ITEMS}.")
        if shared := set(rows[ID]) & set(truth.items):
            raise RefusalError(f"The sample holds hidden items ({min(shared)}, ...); debug runs show everything of it.")
        sha256 = pack(given.sample, rows, folder / "sample.zip", key)
        stored |= {"sample_path": _put(storage, challenge, folder / "sample.zip"), "sample_sha256": sha256}
        stored["sample_items"] = sorted(rows[ID])
    return stored, warnings


def _refuse_other_items(found: set[str], wanted: set[str]) -> None:
    missing, strange = sorted(wanted - found), sorted(found - wanted)
    if missing or strange:
        parts = [f"{len(missing)} of {len(wanted)} items are missing ({missing[0]}, ...)"] if missing else []
        parts += [f"{len(strange)} are not in the truth ({strange[0]}, ...)"] if strange else []
        raise RefusalError(f"{METADATA}: {' and '.join(parts)}; expected the items of the challenge.")


def _put(storage: Storage, challenge: Challenge, archive: Path) -> str:
    path = f"inputs/{challenge.id}/{new_name()}"
    storage.put(archive, path)
    return path
