"""What a challenge offers: downloads, and who runs it; texts, limits, baselines and news are actions as they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fieldmark.errors import InputError, MisuseError, did_you_mean
from fieldmark.web.refusals import NotThereError
from fieldmark_challenge.actions import offers
from fieldmark_challenge.actions.declarations import ActingOrganizer, Sent, Told
from fieldmark_challenge.actions.offers import FileIn
from fieldmark_challenge.cli.verbs import Verbs, account_called

verbs = Verbs(offers.actions)


@verbs.add("data birds --add train.zip --about 'Recordings with labels.'")
def data(
    by: ActingOrganizer,
    add: Annotated[Path | None, typer.Option(help="A file to offer, or a newer version of one.")] = None,
    about: Annotated[str, typer.Option(help="With --add: what it is.")] = "",
    remove: Annotated[str | None, typer.Option(help="The name of a file to take back.")] = None,
    renew: Annotated[
        bool, typer.Option("--renew", help="Write items.csv, labels.csv and sample_run.csv again, in a secret order.")
    ] = False,
) -> Told[Any]:
    """List what participants can download; offer a file, or take one back."""
    from fieldmark_challenge.challenges import offered_files
    from fieldmark_challenge.lifecycle import creation
    from fieldmark_challenge.records.schema import Challenge
    from fieldmark_challenge.submissions.replies import FileOut

    slug = by.challenge.slug
    if add is not None and not add.is_file():
        raise InputError(add, found="no such file", expected="a file to offer")
    if remove is not None:
        with by.database.read() as session:
            there = {file.name: file.id for file in session.get_one(Challenge, by.challenge.id).files}
        if remove not in there:
            raise MisuseError(f"{slug} offers no file {remove!r}. {did_you_mean(remove, there)}")
        offers.delete_file(by, there[remove])
    if renew:
        offered_files.renew_lists(*by.stored_place)
    warnings: list[str] = []
    if add is not None:
        warnings = creation.warnings_about(by.database, by.storage, by.challenge, add)
        offers.add_file(by, FileIn(file=Sent(add.name, add), about=about))
    with by.database.read() as session:
        offered = [FileOut.of(file) for file in session.get_one(Challenge, by.challenge.id).files]
    rows = [[one.name, f"{one.size:,}", one.sha256[:12], one.about] for one in offered]
    table = (["file", "bytes", "sha256", "about"], rows) if rows else None
    notes = tuple(f"warning: {sentence}" for sentence in warnings)
    return Told(offered, f"{slug} offers no files", table=table, notes=notes)


@verbs.add("organizers birds --add grace")
def organizers(
    by: ActingOrganizer,
    add: Annotated[str | None, typer.Option(help="The name or address of an account to add as organizer.")] = None,
    remove: Annotated[str | None, typer.Option(help="The name or address of an organizer to remove.")] = None,
    owner: Annotated[str | None, typer.Option(help="The organizer who becomes the owner.")] = None,
) -> Told[Any]:
    """List who runs a challenge; let somebody else run it too, or no longer."""
    from fieldmark_challenge.lifecycle.replies import organizers_out
    from fieldmark_challenge.records.schema import Challenge

    slug = by.challenge.slug
    if add is not None:
        offers.add_organizer(by, offers.OrganizerIn(who=account_called(by, add).name))
    if remove is not None:
        leaving = account_called(by, remove)
        if leaving.id == by.challenge.owner_id:
            raise MisuseError(f"{leaving.name} owns {slug}: give it to another organizer first (--owner).")
        try:
            offers.remove_organizer(by, leaving.id)
        except NotThereError as error:
            raise MisuseError(f"{leaving.name} does not run {slug}.") from error
    if owner is not None:
        heir = account_called(by, owner)
        try:
            offers.give_away(by, heir.id)
        except NotThereError as error:
            raise MisuseError(f"{heir.name} does not run {slug}; --add comes first.") from error
    with by.database.read() as session:
        listed = organizers_out(session, session.get_one(Challenge, by.challenge.id))
    return Told(listed, "\n".join(f"{one.name} (owns it)" if one.owner else one.name for one in listed))
