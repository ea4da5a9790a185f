"""What a challenge offers: its texts and limits, baselines, downloads, and who runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fieldmark.cli.challenge.options import Actor, Json, Name, answer, running, text_in
from fieldmark.cli.serve import DEFAULT_FOLDER, DatabaseUrl, FilesUrl, Folder


def add_to(group: typer.Typer) -> None:
    """Adds the verbs."""
    example = "Example: `fieldmark challenge "
    group.command("settings", epilog=example + "settings birds --title 'Birds at dawn' --rules rules.txt`")(settings)
    group.command("baseline", epilog=example + "baseline birds run.csv --title BirdNET`")(baseline)
    group.command("data", epilog=example + "data birds --add train.zip --about 'Recordings with labels.'`")(data)
    group.command("announce", epilog=example + "announce birds 'The truth was corrected' --text news.md`")(announce)
    group.command("organizers", epilog=example + "organizers birds --add grace`")(organizers)


def settings(
    name: Name,
    title: Annotated[str | None, typer.Option(help="The title.")] = None,
    summary: Annotated[str | None, typer.Option(help="The challenge in one sentence.")] = None,
    description: Annotated[Path | None, typer.Option(help="A text file with the description.")] = None,
    rules: Annotated[Path | None, typer.Option(help="A text file with the rules; all accept them again.")] = None,
    upload_mb: Annotated[int | None, typer.Option(help="The largest run file in MiB.")] = None,
    team_size: Annotated[int | None, typer.Option(help="Members of a team.")] = None,
    finals: Annotated[int | None, typer.Option(help="Runs of a team in the final ranking.")] = None,
    without_external: Annotated[
        bool | None,
        typer.Option("--without-external/--any-data", help="Whether each team needs a run without external data."),
    ] = None,
    ladder: Annotated[bool | None, typer.Option(help="Release public scores only when clearly better.")] = None,
    access: Annotated[
        str | None,
        typer.Option(help="Who may take part: open, approval, invitation or private."),
    ] = None,
    merging: Annotated[bool | None, typer.Option("--merging/--no-merging", help="Whether teams may merge.")] = None,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Change texts and limits; what is not given stays."""
    from dataclasses import asdict, replace

    from fieldmark.challenge.running import organizing
    from fieldmark.challenge.submitting.uploads import SERVER_MB
    from fieldmark.errors import MisuseError

    asked: dict[str, Any] = {
        "title": title,
        "summary": summary,
        "description": None if description is None else text_in(description, "a description"),
        "rules": None if rules is None else text_in(rules, "rules"),
        "max_upload_mb": upload_mb,
        "max_team_size": team_size,
        "max_final": finals,
        "needs_run_without_external": without_external,
        "ladder": ladder,
        "access": access,
        "merging": merging,
    }
    given = {key: value for key, value in asked.items() if value is not None}
    if not given:
        raise MisuseError(
            "Say what to change, such as --title 'Birds at dawn' (`fieldmark challenge show` has it all)."
        )
    with running(name, actor, folder, database, files) as (platform, challenge, user):
        texts = replace(organizing.texts_of(challenge), **given)
        organizing.change(platform.database, user, challenge, texts, most_upload_mb=SERVER_MB)
    answer(as_json, asdict(texts), f"{name}: changed {', '.join(key.replace('_', ' ') for key in given)}")


def baseline(
    name: Name,
    run: Annotated[Path, typer.Argument(help="The run file, plain or gzip, or the folder of a run.")],
    title: Annotated[str, typer.Option(help="What the board calls it.")],
    method: Annotated[str, typer.Option(help="How it was made.")] = "",
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Put a run of your own on the board, without a rank."""
    from fieldmark.challenge.submitting import submissions
    from fieldmark.challenge.submitting.plain_problems import in_lines
    from fieldmark.challenge.submitting.run_files import RunRefusedError
    from fieldmark.challenge.submitting.uploads import received
    from fieldmark.errors import FieldmarkError, InputError
    from fieldmark.runs.provenance import run_file

    path = run_file(run) if run.is_dir() else run
    if not path.is_file():
        raise InputError(path, found="no such file", expected="a run file")
    with running(name, actor, folder, database, files) as (platform, challenge, user), path.open("rb") as source:
        place = (platform.database, platform.storage, user, challenge)
        try:
            with received(source, path.name, limit_mb=challenge.max_upload_mb) as upload:
                added = submissions.add_baseline(*place, title, upload, method)
        except RunRefusedError as error:
            raise FieldmarkError(in_lines("The run file has mistakes:", error.problems, str(path))) from error
    about = {"submission": added.id, "challenge": name, "title": added.title, "state": added.state}
    answer(as_json, about, f"submission {added.id}: the baseline {added.title!r} waits to be scored")


def data(
    name: Name,
    add: Annotated[Path | None, typer.Option(help="A file to offer, or a newer version of one.")] = None,
    about: Annotated[str, typer.Option(help="With --add: what it is.")] = "",
    remove: Annotated[str | None, typer.Option(help="The name of a file to take back.")] = None,
    renew: Annotated[
        bool, typer.Option("--renew", help="Write items.csv, labels.csv and sample_run.csv again, in a secret order.")
    ] = False,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """List what participants can download; offer a file, or take one back."""
    from fieldmark.challenge.records.schema import Challenge
    from fieldmark.challenge.running import creating, offered_files, organizing
    from fieldmark.challenge.submitting.replies import FileOut
    from fieldmark.cli.printing import print_json, print_table
    from fieldmark.errors import InputError, MisuseError, did_you_mean

    if add is not None and not add.is_file():
        raise InputError(add, found="no such file", expected="a file to offer")
    with running(name, actor, folder, database, files) as (platform, challenge, user):
        if remove is not None:
            with platform.database.read() as session:
                there = {file.name: file.id for file in session.get_one(Challenge, challenge.id).files}
            if remove not in there:
                raise MisuseError(f"{name} offers no file {remove!r}. {did_you_mean(remove, there)}")
            organizing.delete_data_file(platform.database, platform.storage, user, challenge, there[remove])
        if renew:
            offered_files.renew_lists(platform.database, platform.storage, user, challenge)
        if add is not None:
            for sentence in creating.warnings_about(platform.database, platform.storage, challenge, add):
                typer.echo(f"warning: {sentence}", err=True)
            offered_files.add_data_file(platform.database, platform.storage, user, challenge, add, add.name, about)
        with platform.database.read() as session:
            offered = [FileOut.of(file) for file in session.get_one(Challenge, challenge.id).files]
    if as_json:
        print_json([one.model_dump(mode="json") for one in offered])
    elif offered:
        rows = [[one.name, f"{one.size:,}", one.sha256[:12], one.about] for one in offered]
        print_table(["file", "bytes", "sha256", "about"], rows, numbers=False)
    else:
        print(f"{name} offers no files")


def announce(
    name: Name,
    title: Annotated[str, typer.Argument(help="What it is about, in one line.")],
    text: Annotated[Path | None, typer.Option(help="A file with more, as Markdown.")] = None,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Announce something on the page of a challenge, in its feed, and by mail to those who take part."""
    from fieldmark.challenge.running import announcing
    from fieldmark.challenge.submitting.replies import AnnouncementOut

    said = "" if text is None else text_in(text, "an announcement")
    with running(name, actor, folder, database, files) as (platform, challenge, user):
        made = announcing.announce(platform.database, user, challenge, title, said)
    about = AnnouncementOut.model_validate(made, from_attributes=True).model_dump(mode="json")
    answer(as_json, about, f"{name}: announced {made.title!r}")


def organizers(
    name: Name,
    add: Annotated[str | None, typer.Option(help="The name or address of an account that shall run it too.")] = None,
    remove: Annotated[str | None, typer.Option(help="The name or address of one that shall no longer.")] = None,
    owner: Annotated[str | None, typer.Option(help="The organizer who shall own it from now on.")] = None,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """List who runs a challenge; let somebody else run it too, or no longer."""
    from fieldmark.challenge.refusals import NotThereError
    from fieldmark.challenge.running import organizing
    from fieldmark.challenge.running.replies import organizers_out
    from fieldmark.cli.printing import print_json
    from fieldmark.errors import MisuseError

    with running(name, actor, folder, database, files) as (platform, challenge, user):
        if add is not None:
            organizing.add_organizer(platform.database, user, challenge, platform.account(add).name)
        if remove is not None:
            leaving = platform.account(remove)
            if leaving.id == challenge.owner_id:
                raise MisuseError(f"{leaving.name} owns {name}: give it to another organizer first (--owner).")
            try:
                organizing.remove_organizer(platform.database, user, challenge, leaving.id)
            except NotThereError as error:
                raise MisuseError(f"{leaving.name} does not run {name}.") from error
        if owner is not None:
            heir = platform.account(owner)
            try:
                organizing.give_away(platform.database, user, challenge, heir.id)
            except NotThereError as error:
                raise MisuseError(f"{heir.name} does not run {name}; --add comes first.") from error
            challenge = platform.challenge(name)
        with platform.database.read() as session:
            listed = organizers_out(session, challenge)
    if as_json:
        print_json([one.model_dump(mode="json") for one in listed])
    else:
        print("\n".join(f"{one.name} (owns it)" if one.owner else one.name for one in listed))
