"""What a challenge asks of programs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from fieldmark_challenge.actions.declarations import ActingOrganizer, Actions, FieldShown, Request, Told

if TYPE_CHECKING:
    from fieldmark_challenge.programs.replies import CodeOut

actions = Actions()


SHOWN = "Whether teams see the last lines that a program says about hidden items, which could be the items."
Seconds = FieldShown("Seconds", "How long a program may take.", least=1)
Memory = FieldShown("Memory in MiB", "MiB that it may use.", shell="--memory", least=64, beside=True)
Processes = FieldShown("Processes", "How many processes it may start.", least=2)
Disk = FieldShown("Disk in MiB", "MiB that it may write.", shell="--disk", least=1, beside=True)
Archive = FieldShown("Largest archive in MiB", "MiB that its archive may take.", shell="--archive", least=1)
Output = FieldShown(
    "Largest predictions in MiB", "MiB that its predictions may take.", shell="--output", least=1, beside=True
)
DebugHourly = FieldShown("Debug runs an hour per team", "Debug runs of a team in an hour; 0 for none.", least=0)
DebugSeconds = FieldShown("Seconds of a debug run", "How long a debug run may take.", least=1, beside=True)
ShowOutput = FieldShown(
    "Teams see the last 4,000 characters that a program says on the hidden items", SHOWN,
    shell="--show-output/--hide-output",
)  # fmt: skip


class CodeIn(Request):
    """What to change about programs; what is left out stays."""

    whole: ClassVar[bool] = True

    seconds: Annotated[int | None, Seconds] = None
    memory_mb: Annotated[int | None, Memory] = None
    processes: Annotated[int | None, Processes] = None
    disk_mb: Annotated[int | None, Disk] = None
    archive_mb: Annotated[int | None, Archive] = None
    output_mb: Annotated[int | None, Output] = None
    debug_hourly: Annotated[int | None, DebugHourly] = None
    debug_seconds: Annotated[int | None, DebugSeconds] = None
    show_output: Annotated[bool | None, ShowOutput] = None
    phases: Annotated[list[int] | None, FieldShown(in_shell=False)] = Field(
        None, description="the phases that require programs, and no others"
    )


@actions.add(api="POST /organize/code", page="/code", on="/code")
def set_code(by: ActingOrganizer, given: CodeIn) -> Told[CodeOut]:
    """Change the limits of programs, and which phases require them."""
    from fieldmark_challenge.challenges import code_tasks
    from fieldmark_challenge.programs import tasks
    from fieldmark_challenge.programs.replies import CodeOut

    changes = given.changes()
    wanted = changes.pop("phases", None)
    with by.database.read() as session:
        task = code_tasks.task_of(session, by.challenge.id)
        phases = code_tasks.code_phases(session, by.challenge) if wanted is None else set(wanted)
    rules = replace(tasks.rules_of(task) if task else tasks.CodeRules(), **changes)
    tasks.set_code(*by.stored_place, rules, phases, most_archive_mb=by.upload_mb)
    with by.database.read() as session:
        return Told(CodeOut.seen(session, by.challenge))
