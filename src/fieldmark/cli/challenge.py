"""`fieldmark challenge`: what organizers and admins do from the shell."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli.serve import DEFAULT_FOLDER, DatabaseUrl, FilesUrl, Folder

group = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")
Name = Annotated[str, typer.Argument(help="The short name of the challenge.")]
Actor = Annotated[str | None, typer.Option("--as", help="The account that acts; the first admin if not given.")]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]


def add_to(app: typer.Typer) -> None:
    epilog = "Example: `fieldmark challenge create fungi-2026 --benchmark fungitastic/closed --data FungiTastic`"
    app.add_typer(group, name="challenge", help="Make and run challenges of the platform.", epilog=epilog)


@group.command(epilog="Example: `fieldmark challenge create birds --benchmark birdclef-2020 --data BirdCLEF2020`")
def create(
    name: Name,
    benchmark: Annotated[str, typer.Option(help="The benchmark (`fieldmark list benchmarks`).")],
    data: Annotated[Path | None, typer.Option(help="The release that holds the truth of test.")] = None,
    truth: Annotated[Path | None, typer.Option(help="Or the truth as CSV, as for `fieldmark score`.")] = None,
    classes: Annotated[Path | None, typer.Option(help="With --truth: the classes as CSV.")] = None,
    media: Annotated[Path | None, typer.Option(help="With --truth of soundscapes: the recordings as CSV.")] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="With --truth: say that it is that of a world.")
    ] = False,
    title: Annotated[str, typer.Option(help="The title; the short name if not given.")] = "",
    public: Annotated[float, typer.Option(help="The public share of the independent units.")] = 0.3,
    seed: Annotated[
        int | None, typer.Option(help="Decides which units are public; a secret number if not given.")
    ] = None,
    starts: Annotated[dt.datetime | None, typer.Option(help="When runs are taken from (UTC); now.")] = None,
    ends: Annotated[dt.datetime | None, typer.Option(help="Until when (UTC); 30 days later.")] = None,
    daily: Annotated[int, typer.Option(min=1, help="Runs per team and day.")] = 5,
    total: Annotated[int, typer.Option(min=1, help="Runs per team in all.")] = 100,
    without_external: Annotated[
        bool, typer.Option("--without-external", help="Ask each team for at least one run without external data.")
    ] = False,
    ladder: Annotated[bool, typer.Option("--ladder", help="Release public scores only when clearly better.")] = False,
    draft: Annotated[bool, typer.Option("--draft", help="Show it to its organizers only.")] = False,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Make a challenge from a release, or from the truth as small tables."""
    from fieldmark.challenge import creating, serving
    from fieldmark.challenge.models import utc_now
    from fieldmark.cli.printing import print_json
    from fieldmark.errors import MisuseError

    if (data is None) == (truth is None):
        raise MisuseError("A challenge needs its truth from one place: either --data ROOT or --truth FILE.")
    begins = starts.replace(tzinfo=dt.UTC) if starts else utc_now()
    new = creating.NewChallenge(
        slug=name,
        benchmark=benchmark,
        title=title,
        public_share=public,
        seed=creating.secret_seed() if seed is None else seed,
        starts_at=begins,
        ends_at=ends.replace(tzinfo=dt.UTC) if ends else None,
        daily_limit=daily,
        total_limit=total,
        needs_run_without_external=without_external,
        ladder=ladder,
        published=not draft,
    )
    material = (
        creating.material_of_release(benchmark, data, seed=seed or 0)
        if data is not None
        else creating.material_of_files(benchmark, _given(truth), classes, media, simulated=simulated)
    )
    with serving.open_platform(folder, database, files) as platform, material as found:
        link = serving.first_admin(platform.database)
        made = creating.create_challenge(platform.database, platform.storage, platform.account(actor), new, found)
    if link:  # the first account: without the link nobody could ever sign in; apart from what a program reads
        place = f"http://127.0.0.1:8000/reset/{link}"
        typer.echo(f"Set the password of the account 'admin' (works once, for a day): {place}", err=True)
    about = {
        "challenge": made.slug,
        "items": made.items,
        "units": made.units,
        "units_public": made.units_public,
        "classes": made.classes,
        "truth_sha256": made.truth_sha256,
    }
    if as_json:
        print_json(about)
    else:
        print(
            f"{made.slug}: {made.items} items in {made.units} independent units ({made.units_public} public), "
            f"{made.classes} classes; see it with `fieldmark serve --folder {folder}`"
        )


@group.command(epilog="Example: `fieldmark challenge plan --units 638 --score 0.18 --entries 20`")
def plan(
    units: Annotated[int, typer.Option(min=1, help="How many independent units the test set has.")],
    score: Annotated[float, typer.Option(help="About what score is expected, between 0 and 1.")] = 0.5,
    entries: Annotated[int, typer.Option(min=2, help="How many entries will be compared.")] = 10,
    public: Annotated[float, typer.Option(help="The public share of the units.")] = 0.3,
    difference: Annotated[float, typer.Option(help="A difference of interest.")] = 0.02,
    as_json: Json = False,
) -> None:
    """Say what a test set can tell apart, before the challenge opens."""
    from fieldmark.challenge import planner
    from fieldmark.cli.printing import print_json, print_table

    spread = planner.assumed_spread(score)
    parts = {"all": units, "public": round(public * units), "private": units - round(public * units)}
    plans = {part: planner.plan(count, spread, entries=entries) for part, count in parts.items()}
    needed = planner.units_for(difference, spread, entries=entries)
    if as_json:
        print_json({"parts": {part: made.to_json() for part, made in plans.items()}, "units_for_difference": needed})
        return
    rows = [
        [part, str(made.units), *(f"{value:.3f}" for value in (made.half_width, made.pair, made.among_all))]
        for part, made in plans.items()
    ]
    print_table(["", "units", "interval +-", "two entries apart", f"any of {entries} apart"], rows)
    print(f"smallest differences found with 80 % power at 95 %; a difference of {difference:g} takes {needed} units")


@group.command("list", epilog="Example: `fieldmark challenge list --json`")
def list_challenges(
    folder: Folder = DEFAULT_FOLDER, database: DatabaseUrl = None, files: FilesUrl = None, as_json: Json = False
) -> None:
    """List the challenges of a platform."""
    from sqlalchemy import select

    from fieldmark.challenge import organizing, serving
    from fieldmark.challenge.models import Challenge
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


@group.command(epilog="Example: `fieldmark challenge freeze birds`")
def freeze(
    name: Name,
    undo: Annotated[bool, typer.Option("--undo", help="Let the board go on.")] = False,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
) -> None:
    """Stop the public board where it stands; runs are taken and scored all the same."""
    from fieldmark.challenge import phases, serving

    with serving.open_platform(folder, database, files) as platform:
        challenge = platform.challenge(name)
        phases.freeze(platform.database, platform.organizer(actor, challenge), challenge, frozen=not undo)
    print(f"the board of {name} {'goes on' if undo else 'is frozen'}")


@group.command(epilog="Example: `fieldmark challenge reveal birds`")
def reveal(
    name: Name,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
) -> None:
    """Show the private scores to everybody, for good."""
    from fieldmark.challenge import phases, serving

    with serving.open_platform(folder, database, files) as platform:
        challenge = platform.challenge(name)
        phases.reveal(platform.database, platform.organizer(actor, challenge), challenge)
    print(f"the private scores of {name} are revealed")


@group.command(epilog="Example: `fieldmark challenge rescore birds --truth mended.csv`")
def rescore(
    name: Name,
    truth: Annotated[Path | None, typer.Option(help="A mended truth, about the same items.")] = None,
    classes: Annotated[Path | None, typer.Option(help="With --truth: the classes.")] = None,
    media: Annotated[Path | None, typer.Option(help="With --truth of soundscapes: the recordings.")] = None,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
) -> None:
    """Score all runs anew after a fix; acceptance times stay, old scores stand until new ones replace them."""
    from fieldmark.challenge import creating, queue, serving

    with serving.open_platform(folder, database, files) as platform:
        challenge = platform.challenge(name)
        user = platform.organizer(actor, challenge)
        if truth is not None:
            mended = (truth, classes, media)
            count = creating.replace_truth(platform.database, platform.storage, user, challenge, *mended)
        else:
            count = queue.rescore(platform.database, user, challenge)
    print(f"{count} runs of {name} wait to be scored anew")


@group.command(epilog="Example: `fieldmark challenge export birds --out birds.csv`")
def export(
    name: Name,
    out: Annotated[Path, typer.Option(help="The file to write: .csv, safe in a spreadsheet, or .json.")],
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
) -> None:
    """Write every submission with all its scores."""
    from fieldmark.challenge import exports, serving
    from fieldmark.errors import MisuseError
    from fieldmark.files import appearing_file, write_json

    if out.suffix not in (".csv", ".json"):
        raise MisuseError(f"--out {out}: expected a name that ends with .csv or .json.")
    with serving.open_platform(folder, database, files) as platform, platform.database.read() as session:
        rows = exports.export_rows(session, platform.challenge(name))
    if out.suffix == ".json":
        write_json(out, {"challenge": name, "submissions": rows})
    else:
        with appearing_file(out) as partial:
            partial.write_text(exports.to_csv(rows), encoding="utf-8", newline="")
    print(f"{len(rows)} submissions in {out}")


@group.command("reset-link", epilog="Example: `fieldmark challenge reset-link ada --url https://challenge.example.org`")
def reset_link(
    who: Annotated[str, typer.Argument(help="The name or address of the account.")],
    url: Annotated[str, typer.Option(help="The address of the platform.")] = "http://127.0.0.1:8000",
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
) -> None:
    """Print a link that sets a new password, once, within a day."""
    from fieldmark.challenge import accounts, serving
    from fieldmark.errors import MisuseError

    with serving.open_platform(folder, database, files) as platform:
        secret = accounts.make_reset(platform.database, who)
    if secret is None:
        raise MisuseError(f"There is no open account called {who!r}.")
    print(f"{url.rstrip('/')}/reset/{secret}")


@group.command(epilog="Example: `fieldmark challenge role ada organizer`")
def role(
    who: Annotated[str, typer.Argument(help="The name or address of the account.")],
    new: Annotated[str, typer.Argument(help="participant, organizer or admin.")],
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
) -> None:
    """Give an account another role."""
    from fieldmark.challenge import accounts, serving

    with serving.open_platform(folder, database, files) as platform:
        user = platform.account(who)
        accounts.set_role(platform.database, None, user.id, new)
    print(f"{user.name}: {user.role} -> {new}")


@group.command(epilog="Example: `fieldmark challenge backup monday.zip`")
def backup(
    out: Annotated[Path, typer.Argument(help="The zip file to write.")],
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
) -> None:
    """Write the whole platform, files included, into one zip file."""
    from fieldmark.challenge import backup as backups
    from fieldmark.challenge import serving

    with serving.open_platform(folder, database, files) as platform:
        counts = backups.backup(platform.database, platform.storage, out)
    print(f"{counts['submissions']} submissions, {counts['users']} accounts and {counts['files']} files in {out}")


@group.command(epilog="Example: `fieldmark challenge restore monday.zip --folder restored`")
def restore(
    source: Annotated[Path, typer.Argument(help="The zip file of a backup.")],
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
) -> None:
    """Put a backup back into an empty platform, on either database."""
    from fieldmark.challenge import backup as backups
    from fieldmark.challenge import serving

    with serving.open_platform(folder, database, files) as platform:
        counts = backups.restore(platform.database, platform.storage, source)
    print(f"{counts['submissions']} submissions, {counts['users']} accounts and {counts['files']} files restored")


def _given(path: Path | None) -> Path:
    assert path is not None  # one of the two was checked to be there
    return path
