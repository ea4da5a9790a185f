"""Who takes part in a challenge: who is let in, accounts for a class, and what is taken out of the ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from fieldmark_challenge.actions.declarations import ActingOrganizer, Actions, FieldShown, Request, Told
from fieldmark_challenge.actions.words import many
from fieldmark_challenge.challenges.limits import LONGEST_NOTE, LONGEST_REASON, MOST_DAYS, MOST_USES
from fieldmark_challenge.web.replies import Done

if TYPE_CHECKING:
    from fieldmark_challenge.lifecycle.replies import AccountOut, NewEntryCodeOut

actions = Actions()


class EntryCodeIn(Request):
    """A code to make."""

    uses: Annotated[int, FieldShown("For how many people", least=1)] = Field(
        1, ge=1, le=MOST_USES, description="The number of people it admits."
    )
    days: Annotated[int, FieldShown("Works for how many days", least=1, beside=True)] = Field(
        14, ge=1, le=MOST_DAYS, description="How long it is valid."
    )
    note: Annotated[str, FieldShown("For whom", hint="A note for yourself.")] = Field(
        "", max_length=LONGEST_NOTE, description="A note for yourself."
    )


@actions.add(
    api="POST /codes", page="/codes", on="/people", status=201, links=True,
    verb="invite birds --uses 30 --days 7 --note 'course in May'",
)  # fmt: skip
def make_code(by: ActingOrganizer, given: EntryCodeIn) -> Told[NewEntryCodeOut]:
    """Create an invitation code for a challenge; people enter it at `/enter`, or open `/enter/CODE`."""
    from fieldmark_challenge.challenges import admissions
    from fieldmark_challenge.lifecycle.replies import NewEntryCodeOut

    made = admissions.make_code(*by.place, **given.changes())
    link, slug = f"{by.base}/enter/{made}", by.challenge.slug
    people = "one person" if given.uses == 1 else f"{given.uses} people"
    within = f"lets {people} into {slug} within {many(given.days, 'day')}; it is shown this once"
    data = {"challenge": slug, "code": made, "link": link, "uses": given.uses, "days": given.days}
    return Told(NewEntryCodeOut(code=made), f"{made} {within}\n{link}", data, once={"code": made, "link": link})


@actions.add(api="DELETE /codes/{code_id}", page="/codes/{code_id}/revoke", on="/people")
def revoke_code(by: ActingOrganizer, code_id: int) -> Told[Done]:
    """End a code; those it admitted stay."""
    from fieldmark_challenge.challenges import admissions

    admissions.revoke_code(*by.place, code_id)
    return Told(Done(done="revoked"), done="code-revoked")


class AdmissionIn(Request):
    """A decision about somebody."""

    who: Annotated[str, FieldShown("Name or e-mail of the account")]
    admit: Annotated[
        bool,
        FieldShown("Decision", form="decision", no="refuse", choices=(("admit", "let in"), ("refuse", "keep out"))),
    ] = True


@actions.add(api="POST /admissions", page="/admissions", on="/people")
def decide(by: ActingOrganizer, given: AdmissionIn) -> Told[Done]:
    """Admit or reject somebody, by name or address."""
    from fieldmark_challenge.challenges import admissions

    admissions.decide(*by.place, given.who, admit=given.admit)
    return Told(Done(done="admitted" if given.admit else "refused"), done="admission")


COLUMNS = "CSV with the columns name and email; an address may be missing."
People = FieldShown(
    "List", COLUMNS, rows=6, argument=True, from_file="a list of people",
    hint=f"{COLUMNS} Each new account gets a link that sets its password; who has an account already is let in.",
)  # fmt: skip


class RosterIn(Request):
    """A list of people."""

    table: Annotated[str, People] = Field(description="CSV with the columns name and email")


@actions.add(api="POST /accounts", page="/accounts", on="/people", status=201)
def make_accounts(by: ActingOrganizer, given: RosterIn) -> Told[list[AccountOut]]:
    """Make accounts for a class from a list, each with a link that sets its password once, and admit them.

    Existing accounts are admitted and get no link.
    """
    from fieldmark_challenge.lifecycle.replies import AccountOut
    from fieldmark_challenge.people import rates, rosters

    rates.count(by.database, rates.ROSTER, str(by.user.id))
    made = rosters.make_accounts(*by.place, given.table)
    reply = [AccountOut(name=one.name, email=one.email, reset=one.secret) for one in made]
    links = [(one, f"{by.base}/reset/{one.secret}" if one.secret else "") for one in made]
    return Told(reply, once={"made": links})


@actions.add(api="POST /advance", page="/advance", on="/people", verb="advance birds-final")
def advance(by: ActingOrganizer) -> Told[Done]:
    """Admit the teams that qualified in the stage before."""
    from fieldmark_challenge.lifecycle import advancement

    came, slug = advancement.advance(*by.place), by.challenge.slug
    text = f"{many(len(came), 'team')} came to {slug}: {', '.join(came) or 'none'}"
    return Told(Done(done="advanced", count=len(came)), text, {"challenge": slug, "teams": came}, "advanced")


class StandingIn(Request):
    """Whether something is ranked, and why not."""

    standing: Literal["disqualified", "hidden", ""] = Field("disqualified", description="empty to put it back")
    reason: str = Field("", max_length=LONGEST_REASON, description="shown to those concerned")


@actions.add(api="POST /teams/{team_id}/standing", page="/teams/{team_id}/standing", on="/people")
def team_standing(by: ActingOrganizer, given: StandingIn, team_id: int) -> Told[Done]:
    """Disqualify or hide a team with all its runs, or reinstate it."""
    from fieldmark_challenge.lifecycle import standings

    standings.set_team_standing(*by.place, team_id, given.standing, given.reason)
    return Told(Done(done=given.standing or "put back"), done="standing")


@actions.add(
    api="POST /submissions/{submission_id}/standing", page="/submissions/{submission_id}/standing", on="/people"
)
def run_standing(by: ActingOrganizer, given: StandingIn, submission_id: int) -> Told[Done]:
    """Disqualify or hide a single run, or reinstate it."""
    from fieldmark_challenge.lifecycle import standings

    standings.set_run_standing(*by.place, submission_id, given.standing, given.reason)
    return Told(Done(done=given.standing or "put back"), done="standing")
