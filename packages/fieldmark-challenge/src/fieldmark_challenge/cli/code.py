"""Programs of participants: `fieldmark challenge code`, `run-code`, `self-test` and `doctor`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldmark.errors import MisuseError
from fieldmark_challenge.actions.declarations import ActingOrganizer, Told
from fieldmark_challenge.actions.programs import CodeIn
from fieldmark_challenge.actions.words import as_shown
from fieldmark_challenge.cli.verbs import Nowhere, Shell, Verbs, say

if TYPE_CHECKING:
    from fieldmark_challenge.programs.replies import CodeOut
    from fieldmark_challenge.programs.runners import CodeRunner
    from fieldmark_challenge.programs.tasks import CodeInputs

verbs = Verbs()
Podman = Annotated[str | None, typer.Option(help="Try Podman with this image in place of bubblewrap.")]


@verbs.add("code snakes --data SnakeCLEF2020 --phase main --seconds 7200")
def code(
    by: ActingOrganizer,
    given: CodeIn,
    inputs: Annotated[
        Path | None,
        typer.Option(help="A folder with images/ and metadata.csv: what has to be answered, without labels."),
    ] = None,
    sample: Annotated[
        Path | None, typer.Option(help="The same with a few public items, which debug runs are made on.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="A release to take both from: its test part, and five of val.")
    ] = None,
    phase: Annotated[
        list[str] | None,
        typer.Option(help="A phase that requires programs, all named ones and no others; 'none' for none."),
    ] = None,
) -> Told[Any]:
    """Ask for programs in some phases of a challenge, say what they may use; without options, show what is asked."""
    from fieldmark_challenge.programs.replies import CodeOut
    from fieldmark_challenge.programs.tasks import CodeInputs
    from fieldmark_challenge.records.scratch import scratch

    warnings: list[str] = []
    with scratch("inputs") as place:
        if given.changes() or phase or inputs or sample or data:
            from fieldmark_challenge.programs.inputs import inputs_of_release

            folders = CodeInputs(inputs, sample)
            if data is not None:
                made = inputs_of_release(by.challenge.benchmark, data, place)
                folders = CodeInputs(inputs or made[0], sample or made[1])
            warnings = _changed(by, given, phase, folders)
    with by.database.read() as session:
        seen = CodeOut.seen(session, by.challenge)
    whole = {**seen.model_dump(mode="json"), "warnings": warnings}
    return Told(seen, "\n".join(_described(by.challenge.slug, seen, warnings)), whole)


def _changed(by: ActingOrganizer, given: CodeIn, phase: list[str] | None, folders: CodeInputs) -> list[str]:
    from dataclasses import replace

    from fieldmark_challenge.challenges import code_tasks
    from fieldmark_challenge.programs import tasks

    with by.database.read() as session:
        task = code_tasks.task_of(session, by.challenge.id)
        wanted = code_tasks.code_phases(session, by.challenge)
    by_name = {one.name: one.id for one in by.challenge.phases}
    if phase is not None:
        named = [one for one in phase if one != "none"]
        if strange := [one for one in named if one not in by_name]:
            raise MisuseError(f"There is no phase {strange[0]!r}. Known: {', '.join(by_name) or 'none yet'}.")
        wanted = {by_name[one] for one in named}
    rules = replace(tasks.rules_of(task) if task else tasks.CodeRules(), **given.changes())
    return tasks.set_code(*by.stored_place, rules, wanted, folders, most_archive_mb=by.upload_mb)


def _described(name: str, seen: CodeOut, warnings: list[str]) -> list[str]:
    lines = [f"note: {sentence}" for sentence in warnings]
    if seen.items == 0:
        lines.append(
            f"{name} asks for runs; `fieldmark challenge code {name} --data RELEASE --phase main` asks for programs"
        )
    else:
        rules = seen.rules
        lines += [
            f"{name}: programs are run on {seen.items} hidden items, debug runs on {len(seen.sample_items)} others",
            f"phases that require programs: {', '.join(seen.phases) or 'none'}",
            f"a program: {rules.seconds} s, {rules.memory_mb} MiB of memory, {rules.processes} processes, "
            f"{rules.disk_mb} MiB of disk, {rules.output_mb} MiB of predictions; archives up to {rules.archive_mb} MiB",
            f"debug runs: {rules.debug_hourly} an hour per team, {rules.debug_seconds} s",
            "teams see the last lines a program says on hidden items"
            if rules.show_output
            else "teams see no output of programs on hidden items",
        ]
    for host in seen.hosts:
        state = "its walls hold" if not host.failure else f"REFUSED: {host.failure}"
        lines.append(f"runs programs: {host.name}, {state} (tried {as_shown(host.tried_at)})")
    if seen.why_not:
        lines.append(seen.why_not)
    return lines


@verbs.add("self-test --json")
def self_test(at: Nowhere, podman: Podman = None) -> None:
    """Try the walls that programs of participants would run in, as a hostile program would."""
    from fieldmark_challenge.programs.runners import make_runner

    _report(at.as_json, *_tried(make_runner(podman)))


@verbs.add("doctor --folder /var/lib/fieldmark")
def doctor(at: Shell, podman: Podman = None) -> None:
    """Say what protects this machine and the platform from programs and runs of participants, and what does not."""
    from fieldmark.sandbox.bubblewrap import why_no_walls
    from fieldmark_challenge.programs.hosts import hidden_from_programs, hosts, why_not
    from fieldmark_challenge.programs.runners import make_runner

    about: dict[str, Any] = {}
    hidden = hidden_from_programs(at.platform.database, at.platform.storage)
    data, lines = _tried(make_runner(podman), hidden)
    with at.platform.database.read() as session:
        about["why_not"] = why_not(session)
        about["hosts"] = [{"name": one.name, "failure": one.failure} for one in hosts(session)]
    about["scoring"] = why_no_walls()
    walls = f"runs are NOT walled in: bubblewrap is not used, {about['scoring']}" if about["scoring"] else "bubblewrap"
    lines += [f"runs are checked and scored within: {walls}"]
    lines += [f"phases that require programs: {about['why_not'] or 'open'}"]
    _report(at.as_json, {**data, **about}, lines)


def _tried(runner: CodeRunner, hidden: Iterable[Path] = ()) -> tuple[dict[str, Any], list[str]]:
    """What protects from programs here, as data and as lines."""
    from dataclasses import asdict

    from fieldmark_challenge.programs.self_test import failure_in, protections

    tried = protections(runner, hidden)
    failure = failure_in(tried)
    mark = {True: "holds", False: "FAILS"}
    lines = [
        f"{mark[one.holds] if one.needed or one.holds else 'absent':<7} {one.name:<11} {one.found}" for one in tried
    ]
    lines.append(f"{runner.name}: " + ("programs cannot be run safely" if failure else "the walls hold"))
    data = {"runner": runner.name, "safe": not failure, "failure": failure}
    return {**data, "protections": [asdict(one) for one in tried]}, lines


def _report(as_json: bool, data: dict[str, Any], lines: list[str]) -> None:
    say(Told(None, "\n".join(lines), data), as_json=as_json)
    if not data["safe"]:
        raise typer.Exit(1)


@verbs.add("run-code team.tar.gz --inputs secret-test --out team.csv")
def run_code(
    at: Nowhere,
    archive: Annotated[Path, typer.Argument(help="A zip or tar archive with run.sh in it.")],
    inputs: Annotated[Path, typer.Option(help="A folder with images/ and metadata.csv, and no labels.")],
    out: Annotated[Path, typer.Option(help="The run file to write.")],
    seconds: Annotated[int, typer.Option(min=1, help="How long the program may take.")] = 3600,
    memory: Annotated[int, typer.Option(min=64, help="MiB that it may use.")] = 8192,
    processes: Annotated[int, typer.Option(min=2, help="How many processes it may start.")] = 64,
    disk: Annotated[int, typer.Option(min=1, help="MiB that it may write.")] = 1024,
    podman: Annotated[str | None, typer.Option(help="Use Podman with this image in place of bubblewrap.")] = None,
) -> Told[Any]:
    """Run the program of a participant on hidden inputs: no network, no labels, nothing kept but its predictions."""
    from fieldmark_challenge.programs.execution import run_archive
    from fieldmark_challenge.programs.runners import CodeLimits, make_runner

    limits = CodeLimits(float(seconds), memory, processes, disk)
    size = run_archive(archive, inputs, out, runner=make_runner(podman), limits=limits)
    return Told(None, f"{size} bytes of predictions in {out}", {"predictions": str(out), "bytes": size})
