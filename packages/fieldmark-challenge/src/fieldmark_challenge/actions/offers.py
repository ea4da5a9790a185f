"""What a challenge offers: its texts and limits, baselines, downloads, news, and who runs it."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from fieldmark_challenge.actions.declarations import ActingOrganizer, Actions, FieldShown, Request, Sent, Told
from fieldmark_challenge.challenges.limits import LONGEST_TEXT, LONGEST_TITLE
from fieldmark_challenge.web.replies import Done

if TYPE_CHECKING:
    from fieldmark_challenge.lifecycle.replies import ManagedOut, OrganizerOut
    from fieldmark_challenge.submissions.replies import AnnouncementOut, FileOut, SubmissionOut

actions = Actions()
ACCESS = (
    ("open", "everybody"),
    ("approval", "those whom the organizers approve"),
    ("invitation", "those who have a code"),
    ("private", "those who have a code; nobody else knows of the challenge"),
)
PARAGRAPHS = "Markdown: headings, lists, tables, links, and pictures among the files that you offer."
AGAIN = "After a change everybody accepts them again."
LADDER = "Ladder: show a new public score only when it beats the team's best by more than chance"
MERGING = "Teams may merge, as long as they have submitted together no more than one team could have"
EXTERNAL = "Every team needs at least one run without external data"
Description = FieldShown(
    "Description", "A text file with the description.", rows=8, hint=PARAGRAPHS, from_file="a description"
)
Rules = FieldShown("Rules", "A text file with the rules; all accept them again.", rows=8, hint=AGAIN, from_file="rules")
TeamSize = FieldShown("Members of a team", "Members of a team.", shell="--team-size", least=1)
Finals = FieldShown(
    "Runs in the final ranking", "Runs of a team in the final ranking.", shell="--finals", least=1, beside=True
)
WhoMay = FieldShown("Who may take part", "Who may take part: open, approval, invitation or private.", choices=ACCESS)
UploadMb = FieldShown("Largest run file in MiB", "The largest run file in MiB.", shell="--upload-mb", least=1)
External = FieldShown(
    EXTERNAL, "Whether each team needs a run without external data.", shell="--without-external/--any-data"
)


class SettingsIn(Request):
    """What to change about a challenge; what is left out stays."""

    whole: ClassVar[bool] = True
    nothing: ClassVar[str] = (
        "Name what to change, such as --title 'Birds at dawn' (`fieldmark challenge show` has it all)."
    )

    title: Annotated[str | None, FieldShown("Title", "The title.", least=1)] = None
    summary: Annotated[str | None, FieldShown("In one sentence", "The challenge in one sentence.")] = None
    description: Annotated[str | None, Description] = None
    rules: Annotated[str | None, Rules] = Field(None, description="new rules have to be accepted again by everybody")
    max_team_size: Annotated[int | None, TeamSize] = None
    max_final: Annotated[int | None, Finals] = None
    access: Annotated[Literal["open", "approval", "invitation", "private"] | None, WhoMay] = Field(
        None, description="who may take part"
    )
    max_upload_mb: Annotated[int | None, UploadMb] = None
    needs_run_without_external: Annotated[bool | None, External] = None
    ladder: Annotated[bool | None, FieldShown(LADDER, "Release public scores only when clearly better.")] = Field(
        None, description="chosen before the first run"
    )
    merging: Annotated[bool | None, FieldShown(MERGING, "Whether teams may merge.")] = Field(
        None, description="whether teams may merge"
    )


@actions.add(api="POST /settings", page="/settings", verb="settings birds --title 'Birds at dawn' --rules rules.txt")
def settings(by: ActingOrganizer, given: SettingsIn) -> Told[ManagedOut]:
    """Change texts and limits; what is not given stays."""
    from fieldmark_challenge.lifecycle import challenge_settings
    from fieldmark_challenge.lifecycle.replies import ManagedOut
    from fieldmark_challenge.records.schema import Challenge

    changes = given.changes()
    texts = replace(challenge_settings.texts_of(by.challenge), **changes)
    challenge_settings.change(*by.place, texts, most_upload_mb=by.upload_mb)
    with by.database.read() as session:
        seen = ManagedOut.seen(session, session.get_one(Challenge, by.challenge.id))
    text = f"{by.challenge.slug}: changed {', '.join(name.replace('_', ' ') for name in changes)}"
    return Told(seen, text, asdict(texts))


RunFile = FieldShown(
    "Run file", "The run file, plain or gzip, or the folder of a run.", argument=True, from_file="a run file"
)


class BaselineIn(Request):
    """A run of the organizers."""

    title: Annotated[str, FieldShown("Title", "The name on the leaderboard.")]
    method: Annotated[str, FieldShown("Method", "How it was made.", rows=3)] = ""
    external: Annotated[
        str, FieldShown("External data", "Which were used; what run.json beside the run records in the shell.")
    ] = ""
    run: Annotated[Sent, RunFile] = Field(description="the run file, plain or gzip; or an archive with run.sh")


@actions.add(
    api="POST /baselines", page="/baselines", verb="baseline birds run.csv --title BirdNET", status=201, bounded=True
)
def baseline(by: ActingOrganizer, given: BaselineIn) -> Told[SubmissionOut]:
    """Add a baseline: a run of your own, without a rank. Mistakes are listed with line numbers."""
    from fieldmark.runs.provenance import recorded_external
    from fieldmark_challenge.records.schema import Submission
    from fieldmark_challenge.submissions import submissions
    from fieldmark_challenge.submissions.api import submission_out
    from fieldmark_challenge.submissions.uploads import received

    limit_mb = by.challenge.max_upload_mb
    with given.run.opened() as source, received(source, given.run.name, limit_mb=limit_mb) as upload:
        external = given.external
        if not external and isinstance(given.run.source, Path):
            external = recorded_external(given.run.source) or ""
        added = submissions.add_baseline(*by.stored_place, given.title, upload, given.method, external)
    with by.database.read() as session:
        reply = submission_out(session, by.user, by.challenge, session.get_one(Submission, added.id))
    data = {"submission": added.id, "challenge": by.challenge.slug, "title": added.title, "state": added.state}
    text = f"submission {added.id}: the baseline {added.title!r} waits to be scored"
    return Told(reply, text, data, "baseline")


class FileIn(Request):
    """A file to offer."""

    file: Annotated[Sent, FieldShown("File")]
    about: Annotated[str, FieldShown("What it is")] = ""


@actions.add(api="POST /data", page="/data", status=201)
def add_file(by: ActingOrganizer, given: FileIn) -> Told[FileOut]:
    """Offer a file for download, or a newer version of it."""
    from fieldmark_challenge.challenges import offered_files
    from fieldmark_challenge.submissions.replies import FileOut

    with given.file.on_disk("file") as path:
        added = offered_files.add_data_file(*by.stored_place, path, given.file.name, given.about)
    return Told(FileOut.of(added), done="file")


@actions.add(api="DELETE /data/{file_id}", page="/data/{file_id}/delete")
def delete_file(by: ActingOrganizer, file_id: int) -> Told[Done]:
    """Remove an offered file."""
    from fieldmark_challenge.lifecycle import challenge_settings

    challenge_settings.delete_data_file(*by.stored_place, file_id)
    return Told(Done(done="deleted"), done="file-deleted")


NEWS = "Markdown. It stands on the page of the challenge and in its feed, and goes by mail to those who take part."
Heading = FieldShown("Title", "What it is about, in one line.", argument=True)
Body = FieldShown("Text", "A file with more, as Markdown.", rows=5, from_file="an announcement", hint=NEWS)


class AnnouncementIn(Request):
    """Something to tell everybody."""

    title: Annotated[str, Heading] = Field(max_length=LONGEST_TITLE)
    text: Annotated[str, Body] = Field("", max_length=LONGEST_TEXT)


@actions.add(
    api="POST /announcements", page="/announcements", status=201,
    verb="announce birds 'The truth was corrected' --text news.md",
)  # fmt: skip
def announce(by: ActingOrganizer, given: AnnouncementIn) -> Told[AnnouncementOut]:
    """Announce something on the page of a challenge, in its feed, and by mail to those who take part."""
    from fieldmark_challenge.challenges import announcements
    from fieldmark_challenge.submissions.replies import AnnouncementOut

    made = announcements.announce(*by.place, given.title, given.text)
    reply = AnnouncementOut.model_validate(made, from_attributes=True)
    return Told(reply, f"{by.challenge.slug}: announced {made.title!r}", done="announced")


@actions.add(api="DELETE /announcements/{announcement_id}", page="/announcements/{announcement_id}/remove")
def take_back(by: ActingOrganizer, announcement_id: int) -> Told[Done]:
    """Withdraw an announcement."""
    from fieldmark_challenge.challenges import announcements

    announcements.remove(*by.place, announcement_id)
    return Told(Done(done="taken back"), done="taken-back")


class OrganizerIn(Request):
    """Somebody who shall run a challenge."""

    who: Annotated[str, FieldShown("Name or e-mail")]


@actions.add(api="POST /organizers", page="/organizers", status=201)
def add_organizer(by: ActingOrganizer, given: OrganizerIn) -> Told[list[OrganizerOut]]:
    """Add an organizer, by name or address."""
    from fieldmark_challenge.lifecycle import challenge_settings
    from fieldmark_challenge.lifecycle.replies import organizers_out

    challenge_settings.add_organizer(*by.place, given.who)
    with by.database.read() as session:
        return Told(organizers_out(session, by.challenge), done="organizer")


@actions.add(api="DELETE /organizers/{user_id}", page="/organizers/{user_id}/remove")
def remove_organizer(by: ActingOrganizer, user_id: int) -> Told[Done]:
    """Remove an organizer; the owner stays."""
    from fieldmark_challenge.lifecycle import challenge_settings

    challenge_settings.remove_organizer(*by.place, user_id)
    return Told(Done(done="removed"), done="organizer")


@actions.add(page="/organizers/{heir_id}/own")
def give_away(by: ActingOrganizer, heir_id: int) -> Told[Done]:
    """Make one of the organizers the owner of a challenge."""
    from fieldmark_challenge.lifecycle import challenge_settings

    challenge_settings.give_away(*by.place, heir_id)
    return Told(Done(done="given away"), done="organizer")
