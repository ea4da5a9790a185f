"""Programs of participants: `fieldmark challenge code`, `run-code` and `self-test`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldmark.cli.challenge.options import Actor, Json, Name, answer, as_shown, running
from fieldmark.cli.serve import DEFAULT_FOLDER, DatabaseUrl, FilesUrl, Folder

if TYPE_CHECKING:
    from fieldmark.challenge.coding.replies import CodeOut


def add_to(group: typer.Typer) -> None:
    """Adds the verbs."""
    asked = "Example: `fieldmark challenge code snakes --data SnakeCLEF2020 --phase main --seconds 7200`"
    group.command("code", epilog=asked)(code)
    group.command("self-test", epilog="Example: `fieldmark challenge self-test --json`")(self_test)
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


def self_test(
    podman: Annotated[str | None, typer.Option(help="Try Podman with this image in place of bubblewrap.")] = None,
    as_json: Json = False,
) -> None:
    """Try the walls that programs of participants would run in, as a hostile program would."""
    from fieldmark.challenge.coding.runners import make_runner
    from fieldmark.challenge.coding.self_test import failure_of
    from fieldmark.errors import MisuseError

    runner = make_runner(podman)
    failure = failure_of(runner)
    if failure and not as_json:
        raise MisuseError(f"Programs cannot be run safely with {runner.name} here: {failure}.")
    answer(as_json, {"runner": runner.name, "safe": not failure, "failure": failure}, f"{runner.name}: the walls hold")
    if failure:
        raise typer.Exit(1)
