"""Making a challenge, and what to know before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldmark.cli import completing
from fieldmark.cli.challenge.options import MOMENTS, WHEN, Actor, Json, Name, link_base, moment
from fieldmark.cli.serve import DEFAULT_FOLDER, DatabaseUrl, FilesUrl, Folder

if TYPE_CHECKING:
    from fieldmark.challenge.records.schema import Challenge


def add_to(group: typer.Typer) -> None:
    """Adds the verbs."""
    example = "Example: `fieldmark challenge "
    group.command("plan", epilog=example + "plan --units 638 --score 0.18 --entries 20`")(plan)
    group.command("create", epilog=example + "create birds --benchmark birdclef-2020 --data BirdCLEF2020`")(create)
    group.command("list", epilog=example + "list --json`")(list_challenges)


def create(
    name: Name,
    benchmark: Annotated[
        str, typer.Option(help="The benchmark (`fieldmark list benchmarks`).", autocompletion=completing.benchmarks)
    ],
    data: Annotated[Path | None, typer.Option(help="The release that holds the truth of test.")] = None,
    truth: Annotated[Path | None, typer.Option(help="Or the truth as CSV, as for `fieldmark score`.")] = None,
    classes: Annotated[Path | None, typer.Option(help="With --truth: the classes as CSV.")] = None,
    media: Annotated[Path | None, typer.Option(help="With --truth of soundscapes: the recordings as CSV.")] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="With --truth: say that it is that of a world.")
    ] = False,
    title: Annotated[str, typer.Option(help="The title; the short name if not given.")] = "",
    public: Annotated[float, typer.Option(help="The public share of the independent units; 1 for all of them.")] = 0.3,
    seed: Annotated[
        int | None, typer.Option(help="Decides which units are public; a secret number if not given.")
    ] = None,
    starts: Annotated[str, typer.Option(metavar=WHEN, help=f"When runs are taken from: {MOMENTS}.")] = "now",
    ends: Annotated[str | None, typer.Option(metavar=WHEN, help="Until when; 30 days if not given.")] = None,
    daily: Annotated[int, typer.Option(min=1, help="Runs per team and day.")] = 5,
    total: Annotated[int, typer.Option(min=1, help="Runs per team in all.")] = 100,
    without_external: Annotated[
        bool, typer.Option("--without-external", help="Ask each team for at least one run without external data.")
    ] = False,
    ladder: Annotated[bool, typer.Option("--ladder", help="Release public scores only when clearly better.")] = False,
    access: Annotated[
        str, typer.Option(help="Who may take part: open, approval, invitation, or private (nobody else knows of it).")
    ] = "open",
    stage_of: Annotated[str, typer.Option(help="The challenge that this one is the next stage of.")] = "",
    entry: Annotated[
        str, typer.Option(help="With --stage-of, who goes on: all, final (who is in the final ranking) or top.")
    ] = "all",
    top: Annotated[int | None, typer.Option(min=1, help="With --entry top: how many teams.")] = None,
    draft: Annotated[bool, typer.Option("--draft", help="Show it to its organizers only.")] = False,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Make a challenge from a release, or from the truth as small tables."""
    from fieldmark.challenge.running import creating, serving
    from fieldmark.errors import MisuseError

    if (data is None) == (truth is None):
        raise MisuseError("A challenge needs its truth from one place: either --data ROOT or --truth FILE.")
    new = creating.NewChallenge(
        slug=name,
        benchmark=benchmark,
        title=title,
        public_share=None if public == 1 else public,
        seed=creating.secret_seed() if seed is None else seed,
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
        published=not draft,
    )
    material = (
        creating.material_of_release(benchmark, data, seed=seed or 0)
        if data is not None
        else creating.material_of_files(benchmark, _given(truth), classes, media, simulated=simulated)
    )
    with serving.open_platform(folder, database, files, new=True) as platform, material as sources:
        link = serving.first_admin(platform.database)
        made = creating.create_challenge(platform.database, platform.storage, platform.account(actor), new, sources)
        place = link_base(platform, None)
        warnings = creating.warnings_about(platform.database, platform.storage, made)
    for sentence in warnings:
        typer.echo(f"warning: {sentence}", err=True)
    if link:  # the first account: without the link nobody could ever sign in; apart from what a program reads
        typer.echo(f"Set the password of the account 'admin' (works once, for a day): {place}/reset/{link}", err=True)
    _print(made, warnings, folder, as_json=as_json)


def _print(made: Challenge, warnings: list[str], folder: Path, *, as_json: bool) -> None:
    """What was made."""
    from fieldmark.cli.printing import print_json

    if as_json:
        counts = {name: getattr(made, name) for name in ("items", "units", "units_public", "classes", "truth_sha256")}
        print_json({"challenge": made.slug, **counts, "warnings": warnings})
        return
    print(
        f"{made.slug}: {made.items} items in {made.units} independent units ({made.units_public} public), "
        f"{made.classes} classes; see it with `fieldmark serve --folder {folder}`"
    )


def plan(
    units: Annotated[int | None, typer.Option(min=1, help="How many independent units the test set has.")] = None,
    challenge: Annotated[
        str | None, typer.Option(help="Or the short name of a challenge: its units, and its baselines if good enough.")
    ] = None,
    score: Annotated[
        float | None, typer.Option(help="About what score is expected, between 0 and 1; 0.5, or measured.")
    ] = None,
    entries: Annotated[int, typer.Option(min=2, help="How many entries will be compared.")] = 10,
    public: Annotated[float, typer.Option(help="With --units: the public share of them.")] = 0.3,
    difference: Annotated[float, typer.Option(help="A difference of interest.")] = 0.02,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Say what a test set can tell apart, before the challenge opens."""
    from fieldmark.challenge.boards import planner, visibility
    from fieldmark.challenge.boards.leaderboard import deciding_metric
    from fieldmark.challenge.running import serving
    from fieldmark.cli.printing import print_json, print_table
    from fieldmark.errors import MisuseError

    if (units is None) == (challenge is None):
        raise MisuseError("A plan is about so many --units, or about those of a --challenge.")
    spread = planner.assumed_spread(0.5 if score is None else score)
    if challenge is not None:
        with serving.open_platform(folder, database, files) as platform, platform.database.read() as session:
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
    if as_json:
        print_json({"parts": {part: made.to_json() for part, made in plans.items()}, "units_for_difference": needed})
        return
    rows = [
        [part, str(made.units), *(_separable(value) for value in (made.half_width, made.pair, made.among_all))]
        for part, made in plans.items()
    ]
    print_table(["", "units", "interval +-", "two entries apart", f"any of {entries} apart"], rows)
    print(f"smallest differences found with 80 % power at 95 %; a difference of {difference:g} takes {needed} units")
    if any(made.among_all is None for made in plans.values()):
        print("nothing: no difference that two scores can have is large enough to be told apart with so few units")
    print(f"from {spread.source}")


def list_challenges(
    folder: Folder = DEFAULT_FOLDER, database: DatabaseUrl = None, files: FilesUrl = None, as_json: Json = False
) -> None:
    """List the challenges of a platform."""
    from sqlalchemy import select

    from fieldmark.challenge.records.schema import Challenge
    from fieldmark.challenge.running import organizing, serving
    from fieldmark.cli.printing import print_json, print_table

    with serving.open_platform(folder, database, files) as platform, platform.database.read() as session:
        rows = [
            {"challenge": c.slug, "benchmark": c.benchmark, "units": c.units, **organizing.count_states(session, c)}
            for c in session.scalars(select(Challenge).order_by(Challenge.id))
        ]
    if as_json:
        print_json(rows)
    elif rows:
        print_table(list(rows[0]), [[str(value) for value in row.values()] for row in rows])
    else:
        print("no challenges yet")


def _separable(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.3f}"


def _given(path: Path | None) -> Path:
    assert path is not None  # one of the two was checked to be there
    return path
