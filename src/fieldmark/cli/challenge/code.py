"""Programs of participants: `fieldmark challenge code`, `run-code`, `self-test` and `doctor`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldmark.cli.challenge.options import Actor, Json, Name, answer, as_shown, running
from fieldmark.cli.serve import DEFAULT_FOLDER, DatabaseUrl, FilesUrl, Folder

if TYPE_CHECKING:
    from fieldmark.challenge.coding.replies import CodeOut
    from fieldmark.challenge.coding.runners import CodeRunner


def add_to(group: typer.Typer) -> None:
    """Adds the verbs."""
    asked = "Example: `fieldmark challenge code snakes --data SnakeCLEF2020 --phase main --seconds 7200`"
    group.command("code", epilog=asked)(code)
    group.command("self-test", epilog="Example: `fieldmark challenge self-test --json`")(self_test)
    group.command("doctor", epilog="Example: `fieldmark challenge doctor --folder /var/lib/fieldmark`")(doctor)
    epilog = "Example: `fieldmark challenge run-code team.tar.gz --inputs secret-test --out team.csv`"
    group.command("run-code", epilog=epilog)(run_code)


def run_code(
    archive: Annotated[Path, typer.Argument(help="A zip or tar archive with run.sh in it.")],
    inputs: Annotated[Path, typer.Option(help="A folder with images/ and metadata.csv, and no labels.")],
    out: Annotated[Path, typer.Option(help="The run file to write.")],
    seconds: Annotated[int, typer.Option(min=1, help="How long the program may take.")] = 3600,
    memory: Annotated[int, typer.Option(min=64, help="MiB that it may use.")] = 8192,
    processes: Annotated[int, typer.Option(min=2, help="How many processes it may start.")] = 64,
    disk: Annotated[int, typer.Option(min=1, help="MiB that it may write.")] = 1024,
    podman: Annotated[str | None, typer.Option(help="Use Podman with this image in place of bubblewrap.")] = None,
    as_json: Json = False,
) -> None:
    """Run the program of a participant on hidden inputs: no network, no labels, nothing kept but its predictions."""
    from fieldmark.challenge.coding.runners import CodeLimits, make_runner
    from fieldmark.challenge.coding.running import run_archive

    limits = CodeLimits(float(seconds), memory, processes, disk)
    size = run_archive(archive, inputs, out, runner=make_runner(podman), limits=limits)
    answer(as_json, {"predictions": str(out), "bytes": size}, f"{size} bytes of predictions in {out}")


def code(
    name: Name,
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
        typer.Option(help="A phase that asks for programs, all named ones and no others; 'none' for none."),
    ] = None,
    seconds: Annotated[int | None, typer.Option(help="How long a program may take.")] = None,
    memory: Annotated[int | None, typer.Option(help="MiB that it may use.")] = None,
    processes: Annotated[int | None, typer.Option(help="How many processes it may start.")] = None,
    disk: Annotated[int | None, typer.Option(help="MiB that it may write.")] = None,
    output: Annotated[int | None, typer.Option(help="MiB that its predictions may take.")] = None,
    archive: Annotated[int | None, typer.Option(help="MiB that its archive may take.")] = None,
    debug_seconds: Annotated[int | None, typer.Option(help="How long a debug run may take.")] = None,
    debug_hourly: Annotated[int | None, typer.Option(help="Debug runs of a team in an hour; 0 for none.")] = None,
    show_output: Annotated[
        bool | None,
        typer.Option(
            "--show-output/--hide-output",
            help="Whether teams see the last lines that a program says about hidden items, which could be the items.",
        ),
    ] = None,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Ask for programs in some phases of a challenge, say what they may use; without options, show what is asked."""
    from fieldmark.challenge.coding.replies import CodeOut
    from fieldmark.challenge.coding.tasks import CodeInputs
    from fieldmark.challenge.records.scratch import scratch

    asked = {
        "seconds": seconds,
        "memory_mb": memory,
        "processes": processes,
        "disk_mb": disk,
        "output_mb": output,
        "archive_mb": archive,
        "debug_seconds": debug_seconds,
        "debug_hourly": debug_hourly,
        "show_output": show_output,
    }
    given = {key: value for key, value in asked.items() if value is not None}
    warnings: list[str] = []
    with running(name, actor, folder, database, files) as (platform, challenge, user), scratch("inputs") as place:
        if given or phase or inputs or sample or data:
            from fieldmark.challenge.coding.inputs import inputs_of_release

            folders = CodeInputs(inputs, sample)
            if data is not None:
                made = inputs_of_release(challenge.benchmark, data, place)
                folders = CodeInputs(inputs or made[0], sample or made[1])
            warnings = _changed(platform, user, challenge, given, phase, folders)
        with platform.database.read() as session:
            seen = CodeOut.seen(session, challenge)
    answer(as_json, {**seen.model_dump(mode="json"), "warnings": warnings}, "\n".join(_described(name, seen, warnings)))


def _changed(
    platform: Any, user: Any, challenge: Any, given: dict[str, Any], phase: list[str] | None, folders: Any
) -> list[str]:
    from dataclasses import replace

    from fieldmark.challenge.coding import tasks
    from fieldmark.challenge.records.schema import Challenge
    from fieldmark.challenge.submitting.uploads import SERVER_MB
    from fieldmark.errors import MisuseError

    with platform.database.read() as session:
        task = tasks.task_of(session, challenge.id)
        wanted = tasks.code_phases(session, challenge)
        by_name = {one.name: one.id for one in session.get_one(Challenge, challenge.id).phases}
    if phase is not None:
        named = [one for one in phase if one != "none"]
        if strange := [one for one in named if one not in by_name]:
            raise MisuseError(f"There is no phase {strange[0]!r}. Known: {', '.join(by_name) or 'none yet'}.")
        wanted = {by_name[one] for one in named}
    rules = replace(tasks.rules_of(task) if task else tasks.CodeRules(), **given)
    return tasks.set_code(
        platform.database, platform.storage, user, challenge, rules, wanted, folders, most_archive_mb=SERVER_MB
    )


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
            f"phases that ask for programs: {', '.join(seen.phases) or 'none'}",
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


Podman = Annotated[str | None, typer.Option(help="Try Podman with this image in place of bubblewrap.")]


def self_test(podman: Podman = None, as_json: Json = False) -> None:
    """Try the walls that programs of participants would run in, as a hostile program would."""
    from fieldmark.challenge.coding.runners import make_runner

    _report(as_json, *_tried(make_runner(podman)))


def doctor(
    podman: Podman = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Say what protects this machine and the platform from programs and runs of participants, and what does not."""
    from fieldmark.challenge.coding.hosts import hidden_from_programs, hosts, why_not
    from fieldmark.challenge.coding.runners import make_runner
    from fieldmark.challenge.running.serving import open_platform
    from fieldmark.challenge.scoring.walls import why_no_walls

    about: dict[str, Any] = {}
    with open_platform(folder, database, files) as platform:
        data, lines = _tried(make_runner(podman), hidden_from_programs(platform.database, platform.storage))
        with platform.database.read() as session:
            about["why_not"] = why_not(session)
            about["hosts"] = [{"name": one.name, "failure": one.failure} for one in hosts(session)]
    about["scoring"] = why_no_walls()
    walls = f"runs are NOT walled in: bubblewrap is not used, {about['scoring']}" if about["scoring"] else "bubblewrap"
    lines += [f"runs are checked and scored within: {walls}"]
    lines += [f"phases that ask for programs: {about['why_not'] or 'open'}"]
    _report(as_json, {**data, **about}, lines)


def _tried(runner: CodeRunner, hidden: Iterable[Path] = ()) -> tuple[dict[str, Any], list[str]]:
    """What protects from programs here, as data and as lines."""
    from dataclasses import asdict

    from fieldmark.challenge.coding.self_test import failure_in, protections

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
    answer(as_json, data, "\n".join(lines))
    if not data["safe"]:
        raise typer.Exit(1)
