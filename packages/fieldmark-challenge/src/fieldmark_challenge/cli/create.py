"""Making a challenge, and what to know before."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldmark.cli import completion
from fieldmark.errors import InputError, MisuseError
from fieldmark_challenge.actions.declarations import Told
from fieldmark_challenge.actions.words import MOMENTS
from fieldmark_challenge.cli.options import WHEN, Actor, Name, link_base, moment, text_in
from fieldmark_challenge.cli.serve import DEFAULT_FOLDER, DatabaseUrl, FilesUrl, Folder
from fieldmark_challenge.cli.verbs import Nowhere, Shell, Verbs

if TYPE_CHECKING:
    from fieldmark_challenge.records.schema import Challenge

verbs = Verbs()
LONGEST_PATH = 1000  # of what may be the name of a file


@verbs.add("create birds --benchmark birdclef-2020 --data BirdCLEF2020")
def create(
    at: Nowhere,
    name: Name,
    benchmark: Annotated[
        str, typer.Option(help="The benchmark (`fieldmark list benchmarks`).", autocompletion=completion.benchmarks)
    ],
    data: Annotated[Path | None, typer.Option(help="The release that holds the truth of test.")] = None,
    truth: Annotated[Path | None, typer.Option(help="Or the truth as CSV, as for `fieldmark score`.")] = None,
    classes: Annotated[Path | None, typer.Option(help="With --truth: the classes as CSV.")] = None,
    media: Annotated[Path | None, typer.Option(help="With --truth of soundscapes: the recordings as CSV.")] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="With --truth: say that it is that of a world, where no table does.")
    ] = False,
    metric: Annotated[
        str, typer.Option(help="The primary metric, if not the one the benchmark names (birdclef-2020: cmap).")
    ] = "",
    title: Annotated[str | None, typer.Option(help="The title; asked for at a terminal.")] = None,
    summary: Annotated[str, typer.Option(help="The challenge in one sentence.")] = "",
    description: Annotated[
        str | None, typer.Option(help="What it is about, as Markdown: the text, or a file with it; asked for too.")
    ] = None,
    offer: Annotated[
        list[Path] | None, typer.Option(help="A file for participants to download, such as train.zip; may be repeated.")
    ] = None,
    public: Annotated[float, typer.Option(help="The public share of the independent units; 1 for all of them.")] = 0.3,
    seed: Annotated[
        int | None, typer.Option(help="The seed that draws the public units; a secret number if not given.")
    ] = None,
    starts: Annotated[str, typer.Option(metavar=WHEN, help=f"When submissions open: {MOMENTS}.")] = "now",
    ends: Annotated[
        str | None, typer.Option(metavar=WHEN, help="When submissions close; after 30 days if not given.")
    ] = None,
    daily: Annotated[int, typer.Option(min=1, help="Runs per team and day.")] = 5,
    total: Annotated[int, typer.Option(min=1, help="Runs per team in all.")] = 100,
    without_external: Annotated[
        bool, typer.Option("--without-external", help="Ask each team for at least one run without external data.")
    ] = False,
    ladder: Annotated[bool, typer.Option("--ladder", help="Release public scores only when clearly better.")] = False,
    access: Annotated[
        str, typer.Option(help="Who may take part: open, approval, invitation, or private (nobody else knows of it).")
    ] = "open",
    stage_of: Annotated[str, typer.Option(help="The challenge whose next stage this is.")] = "",
    entry: Annotated[
        str, typer.Option(help="With --stage-of, who goes on: all, final (who is in the final ranking) or top.")
    ] = "all",
    top: Annotated[int | None, typer.Option(min=1, help="With --entry top: how many teams.")] = None,
    publish: Annotated[
        bool,
        typer.Option("--publish/--draft", help="Publish it at once; otherwise it is a draft that only organizers see."),
    ] = False,
    without_data: Annotated[
        bool, typer.Option("--without-data", help="With --publish: publish it although it offers participants no data.")
    ] = False,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
) -> Told[Any]:
    """Make a challenge from a release, or from the truth as small tables."""
    from dataclasses import replace

    from fieldmark_challenge.lifecycle import creation
    from fieldmark_challenge.lifecycle.readiness import missing_of, refuse_without_data
    from fieldmark_challenge.site import server

    if (data is None) == (truth is None):
        raise MisuseError("A challenge needs its truth from one place: either --data ROOT or --truth FILE.")
    title, description = _asked(name, title, description)
    files_offered = [_offered(path) for path in offer or ()]
    if publish and not without_data:
        refuse_without_data(name, files_offered, description)
    new = creation.NewChallenge(
        slug=name,
        benchmark=benchmark,
        title=title,
        summary=summary,
        description=description,
        public_share=None if public == 1 else public,
        seed=creation.secret_seed() if seed is None else seed,
        starts_at=moment(starts),
        ends_at=moment(ends) if ends else None,
        daily_limit=daily,
        total_limit=total,
        needs_run_without_external=without_external,
        ladder=ladder,
        access=access,
        stage_of=stage_of,
        stage_entry=entry,
        stage_top=top,
        metric=metric,
        published=publish,
    )
    material = (
        creation.material_of_release(benchmark, data, seed=seed or 0)
        if data is not None
        else creation.material_of_files(benchmark, _given(truth), classes, media, simulated=simulated)
    )
    with server.open_platform(folder, database, files, new=True) as platform, material as sources:
        link = server.first_admin(platform.database)
        sources = replace(sources, downloads=(*sources.downloads, *files_offered))
        made = creation.create_challenge(platform.database, platform.storage, platform.account(actor), new, sources)
        place = link_base(platform, None)
        warnings = creation.warnings_about(platform.database, platform.storage, made)
        warnings += missing_of(platform.database, made)
    notes = [f"warning: {sentence}" for sentence in warnings]
    if link:  # the first account: without the link nobody could ever sign in; apart from what a program reads
        notes.append(f"Set the password of the account 'admin' (works once, for a day): {place}/reset/{link}")
    counts = {key: getattr(made, key) for key in ("items", "units", "units_public", "classes", "truth_sha256")}
    text = (
        f"{made.slug}: {made.items} items in {made.units} independent units ({made.units_public} public), "
        f"{made.classes} classes; see it with `fieldmark serve --folder {folder}`"
    )
    text += f"\n{_who_sees(made)}"
    told = {"challenge": made.slug, "published": publish, **counts, "warnings": warnings}
    return Told(made, text, told, notes=tuple(notes))


@verbs.add("plan --units 638 --score 0.18 --entries 20")
def plan(
    at: Nowhere,
    units: Annotated[int | None, typer.Option(min=1, help="The number of independent units in the test set.")] = None,
    challenge: Annotated[
        str | None, typer.Option(help="Or the short name of a challenge: its units, and its baselines if good enough.")
    ] = None,
    score: Annotated[float | None, typer.Option(help="The expected score, between 0 and 1; 0.5, or measured.")] = None,
    entries: Annotated[int, typer.Option(min=2, help="The number of entries to compare.")] = 10,
    public: Annotated[float, typer.Option(help="With --units: the public share of them.")] = 0.3,
    difference: Annotated[float, typer.Option(help="A difference of interest.")] = 0.02,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
) -> Told[Any] | None:
    """Say what a test set can tell apart, before the challenge opens."""
    from fieldmark.cli.output import print_table
    from fieldmark_challenge.boards import planner, visibility
    from fieldmark_challenge.challenges.metrics import deciding_metric
    from fieldmark_challenge.site import server

    if (units is None) == (challenge is None):
        raise MisuseError("A plan is about so many --units, or about those of a --challenge.")
    spread = planner.assumed_spread(0.5 if score is None else score)
    if challenge is not None:
        with server.open_platform(folder, database, files) as platform, platform.database.read() as session:
            hosted = platform.challenge(challenge)
            cards, metric = visibility.baseline_cards(session, hosted), deciding_metric(hosted)
        parts = {"all": hosted.units, "public": hosted.units_public, "private": hosted.units - hosted.units_public}
        if score is None and cards and planner.tells(cards[0], metric):
            spread = planner.measured_spread(cards[0], metric, *cards[1:])
    else:
        shown = round(public * (units or 0))
        parts = {"all": units or 0, "public": shown, "private": (units or 0) - shown}
    plans = {part: planner.plan(count, spread, entries=entries) for part, count in parts.items() if count}
    needed = planner.units_for(difference, spread, entries=entries)
    if at.as_json:
        told = {"parts": {part: made.to_json() for part, made in plans.items()}, "units_for_difference": needed}
        return Told(None, data=told)
    rows = [
        [part, str(made.units), *(_separable(value) for value in (made.half_width, made.pair, made.among_all))]
        for part, made in plans.items()
    ]
    print_table(["", "units", "interval +-", "two entries apart", f"any of {entries} apart"], rows)
    print(f"smallest differences found with 80 % power at 95 %; a difference of {difference:g} takes {needed} units")
    if any(made.among_all is None for made in plans.values()):
        print("nothing: no possible difference between two scores is large enough to be separable with so few units")
    print(f"from {spread.source}")
    return None


@verbs.add("list --json")
def list_challenges(at: Shell) -> Told[Any]:
    """List the challenges of a platform."""
    from sqlalchemy import select

    from fieldmark_challenge.lifecycle import challenge_settings
    from fieldmark_challenge.records.schema import Challenge

    with at.platform.database.read() as session:
        rows = [
            {
                "challenge": c.slug,
                "benchmark": c.benchmark,
                "units": c.units,
                **challenge_settings.count_states(session, c),
            }
            for c in session.scalars(select(Challenge).order_by(Challenge.id))
        ]
    table = (list(rows[0]), [[str(value) for value in row.values()] for row in rows]) if rows else None
    return Told(None, "no challenges yet", rows, table=table)


def at_terminal() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _asked(name: str, title: str | None, description: str | None) -> tuple[str, str]:
    """The title and the description, asked for where they are not given and somebody is there to answer."""
    if at_terminal():
        if title is None:
            title = typer.prompt("Title", default=name, err=True)
        if description is None:
            question = "What is it about, and where do the data come from"
            description = typer.prompt(question, default="", show_default=False, err=True)
    text = description or ""
    with_text = len(text) < LONGEST_PATH and "\n" not in text and Path(text).is_file()
    return title or "", text_in(Path(text), "a description") if with_text else text


def _offered(path: Path) -> tuple[Path, str]:
    """A file for participants, and what is said about it."""
    if not path.is_file():
        raise InputError(path, found="no such file", expected="a file to offer")
    return path, ""


def _who_sees(made: Challenge) -> str:
    if made.published_at is None:
        return f"only its organizers see it until `fieldmark challenge publish {made.slug}`"
    who = "those whom you admit see it" if made.access == "private" else "it is public: everybody sees it"
    return f"{who} from now on; `fieldmark challenge publish {made.slug} --undo` hides it"


def _separable(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.3f}"


def _given(path: Path | None) -> Path:
    assert path is not None  # one of the two was checked to be there
    return path
