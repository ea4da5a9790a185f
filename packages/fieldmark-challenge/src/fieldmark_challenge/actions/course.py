"""The course of a challenge: open, phases, freeze, reveal, and scoring again."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from fieldmark.web.refusals import NotThereError, RefusalError
from fieldmark_challenge.actions.declarations import ActingOrganizer, Actions, FieldShown, Moment, Request, Sent, Told
from fieldmark_challenge.actions.words import MOMENTS, as_shown, many
from fieldmark_challenge.web.replies import Done

if TYPE_CHECKING:
    from fieldmark_challenge.records.schema import Phase
    from fieldmark_challenge.submissions.replies import PhaseOut

actions = Actions()
CSV = "a table as CSV"


class PublishIn(Request):
    """Whether everybody sees it."""

    published: Annotated[bool, FieldShown(undo="Show it to its organizers only.")] = True
    without_data: Annotated[bool, FieldShown("Publish it without data")] = Field(
        False, description="publish it although it offers participants no data"
    )


@actions.add(api="POST /publish", page="/publish", verb="publish birds")
def publish(by: ActingOrganizer, given: PublishIn) -> Told[Done]:
    """Publish a challenge; its phases say when runs are accepted."""
    from fieldmark_challenge.challenges import phases
    from fieldmark_challenge.lifecycle.readiness import missing_of, refuse_unready

    if given.published and not given.without_data:
        refuse_unready(by.database, by.challenge)
    phases.publish(*by.place, published=given.published)
    notes = [f"warning: {one}" for one in missing_of(by.database, by.challenge)] if given.published else []
    done, state = ("published", "public") if given.published else ("hidden", "visible to its organizers only")
    data = {"challenge": by.challenge.slug, "published": given.published}
    return Told(Done(done=done), f"{by.challenge.slug} is {state}", data, done, notes=tuple(notes))


class FreezeIn(Request):
    """Whether it stands still."""

    frozen: Annotated[bool, FieldShown(undo="Let the board go on.")] = True


@actions.add(api="POST /freeze", page={"/freeze": {}, "/unfreeze": {"frozen": False}}, verb="freeze birds")
def freeze(by: ActingOrganizer, given: FreezeIn) -> Told[Done]:
    """Freeze the public leaderboard; runs are still accepted and scored."""
    from fieldmark_challenge.challenges import phases

    phases.freeze(*by.place, frozen=given.frozen)
    done, state = ("frozen", "is frozen") if given.frozen else ("unfrozen", "goes on")
    data = {"challenge": by.challenge.slug, "frozen": given.frozen}
    return Told(Done(done=done), f"the board of {by.challenge.slug} {state}", data, done)


@actions.add(api="POST /reveal", page="/reveal")
def reveal(by: ActingOrganizer) -> Told[Done]:
    """Publish the final results: reveal the private scores, permanently."""
    from fieldmark_challenge.challenges import phases

    phases.reveal(*by.place)
    slug = by.challenge.slug
    text = f"the private scores of {slug} are revealed; see them with `fieldmark challenge board {slug}`"
    return Told(Done(done="revealed"), text, {"challenge": slug, "revealed": True}, "revealed")


# The fields of a phase, as pages and the shell show them.
Name = FieldShown("Name", "Another name for it.", shell="--rename", least=1)
FROM = f"When submissions open: {MOMENTS}; now for a new one."
Starts = FieldShown("Opens (UTC)", FROM, form="starts", shell="--starts")
Ends = FieldShown("Closes (UTC)", "Until when.", form="ends", shell="--ends", beside=True)
ADAY, ALL = "Runs per team and UTC day; 5 for a new one.", "Runs per team in the phase; 100 for a new one."
Daily = FieldShown("Runs a day per team", ADAY, form="daily", shell="--daily", least=1)
Total = FieldShown("Runs in all per team", ALL, form="total", shell="--total", least=1, beside=True)


class NewPhaseIn(Request):
    """A phase to add; times without a zone are in UTC."""

    whole: ClassVar[bool] = True

    name: Annotated[str, Name]
    starts_at: Annotated[Moment, Starts]
    ends_at: Annotated[Moment, Ends]
    daily_limit: Annotated[int, Daily] = 5
    total_limit: Annotated[int, Total] = 100


class PhaseIn(Request):
    """What to change about a phase; what is left out stays."""

    whole: ClassVar[bool] = True

    name: Annotated[str | None, Name] = None
    starts_at: Annotated[Moment | None, Starts] = None
    ends_at: Annotated[Moment | None, Ends] = None
    daily_limit: Annotated[int | None, Daily] = None
    total_limit: Annotated[int | None, Total] = None


@actions.add(api="POST /phases", page="/phases", status=201)
def add_phase(by: ActingOrganizer, given: NewPhaseIn) -> Told[PhaseOut]:
    """Add a phase."""
    from fieldmark_challenge.challenges import phases

    return _told(phases.set_phase(*by.place, **given.changes()))


def own_phase(by: ActingOrganizer, phase_id: int) -> Phase:
    """A phase of the challenge."""
    wanted = next((phase for phase in by.challenge.phases if phase.id == phase_id), None)
    if wanted is None:
        raise NotThereError
    return wanted


@actions.add(api="POST /phases/{phase_id}", page="/phases/{phase_id}", there=own_phase)
def change_phase(by: ActingOrganizer, given: PhaseIn, phase_id: int) -> Told[PhaseOut]:
    """Move a phase, or change its limits."""
    from fieldmark_challenge.challenges import phases

    return _told(phases.change_phase(*by.place, own_phase(by, phase_id), **given.changes()))


@actions.add(api="DELETE /phases/{phase_id}", page="/phases/{phase_id}/remove")
def remove_phase(by: ActingOrganizer, phase_id: int) -> Told[Done]:
    """Remove a phase in which no run was submitted."""
    from fieldmark_challenge.challenges import phases

    phases.remove_phase(*by.place, phase_id)
    return Told(Done(done="removed"))


def _told(phase: Phase) -> Told[PhaseOut]:
    from fieldmark_challenge.submissions.replies import PhaseOut

    span = f"{as_shown(phase.starts_at)} to {as_shown(phase.ends_at)} UTC"
    text = f"{phase.name}: {span}, {many(phase.daily_limit, 'run')} a day and {phase.total_limit} in all per team"
    return Told(PhaseOut.of(phase), text)


Corrected = FieldShown("truth.csv", "A corrected truth, about the same items.", from_file="the truth as CSV")
Classes = FieldShown("classes.csv", "With --truth: the classes.", from_file="the classes as CSV")
Media = FieldShown("media.csv", "With --truth of soundscapes: the recordings.", from_file="the recordings as CSV")


class RescoreIn(Request):
    """A corrected truth, if there is one."""

    truth: Annotated[Sent | None, Corrected] = Field(None, description=CSV)
    classes: Annotated[Sent | None, Classes] = Field(None, description=CSV)
    media: Annotated[Sent | None, Media] = Field(None, description=CSV)


@actions.add(api="POST /rescore", page="/rescore", verb="rescore birds --truth corrected.csv")
def rescore(by: ActingOrganizer, given: RescoreIn) -> Told[Done]:
    """Rescore all runs after a fix; acceptance times are kept, and old scores until new ones replace them."""
    from fieldmark_challenge.lifecycle import creation
    from fieldmark_challenge.scoring import queue

    if given.truth is None:
        if given.classes is not None or given.media is not None:
            raise RefusalError("A corrected truth comes with the truth itself; classes and media go with it.")
        count = queue.rescore(*by.place)
    else:
        with ExitStack() as files:
            sent = {"truth": given.truth, "classes": given.classes, "media": given.media}
            kept = {
                name: files.enter_context(file.on_disk(f"{name}.csv"))
                for name, file in sent.items()
                if file is not None
            }
            corrected = (kept["truth"], kept.get("classes"), kept.get("media"))
            count = creation.replace_truth(*by.stored_place, *corrected)
    slug = by.challenge.slug
    text = f"{many(count, 'run')} of {slug} to be scored again"
    return Told(Done(done="rescore", count=count), text, {"challenge": slug, "waiting": count}, "rescored")


@actions.add(
    api="POST /submissions/{submission_id}/retry", page="/submissions/{submission_id}/retry", on="/submissions",
    verb="retry birds 31",
)  # fmt: skip
def retry(by: ActingOrganizer, submission_id: int) -> Told[Done]:
    """Rescore one run, such as one that failed."""
    from fieldmark_challenge.scoring import queue

    count = queue.rescore(*by.place, only=submission_id)
    data = {"challenge": by.challenge.slug, "submission": submission_id, "state": "queued"}
    text = f"submission {submission_id} waits to be scored again"
    return Told(Done(done="retry", count=count), text, data, "retried")


@actions.add(
    api="POST /submissions/{submission_id}/refund", page="/submissions/{submission_id}/refund", on="/submissions",
    verb="refund birds 31",
)  # fmt: skip
def refund(by: ActingOrganizer, submission_id: int) -> Told[Done]:
    """Stop counting a run against the team's limits; the run stays on the leaderboard."""
    from fieldmark_challenge.submissions import submissions

    submissions.refund(*by.place, submission_id)
    data = {"challenge": by.challenge.slug, "submission": submission_id, "counted": False}
    text = f"submission {submission_id} no longer counts against the limits of its team"
    return Told(Done(done="refunded"), text, data, "refunded")
