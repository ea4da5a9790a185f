"""`fieldmark score`: a run against the truth, or a score receipt against both."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fieldmark.cli import completion
from fieldmark.cli.options import AddressOption, EngineOption, Overwrite
from fieldmark.errors import MisuseError


def add_to(app: typer.Typer) -> None:
    app.command("score", epilog="Example: `fieldmark score folder my-run.csv --truth truth.csv --classes classes.csv`")(
        score
    )


def score(
    benchmark: Annotated[
        str | None,
        typer.Argument(help="The benchmark (`fieldmark list benchmarks`).", autocompletion=completion.benchmarks),
    ] = None,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN...]", help="A run file, or the folder of a run; several are scored one by one."),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="The release that holds the truth.")] = None,
    truth: Annotated[Path | None, typer.Option(help="Or the truth as CSV: id,label and optionally unit.")] = None,
    classes: Annotated[
        Path | None, typer.Option(help="With --truth: the classes as CSV: label. Else those of truth and run.")
    ] = None,
    media: Annotated[
        Path | None, typer.Option(help="With --truth of soundscapes: the recordings as CSV: MediaId,seconds,site.")
    ] = None,
    split: Annotated[str, typer.Option(help="With --data: the part that is scored.")] = "test",
    seed: Annotated[
        int | None, typer.Option(min=0, help="With --data: the seed of drawn parts, if not the run's.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Metrics instead of those of the benchmark: roc_auc, roc_auc:ties=zero; repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="With --data: save the run file as a run folder."),
    ] = None,
    external_data: Annotated[
        list[str] | None,
        typer.Option(
            "--external-data",
            metavar="TEXT",
            help="With --out: external data used, or none; unknown if not given.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    receipt: Annotated[
        Path | None,
        typer.Option(
            "--verify", help="A score receipt to verify by recomputing; RUN and the truth, or the files beside it."
        ),
    ] = None,
    parts: Annotated[
        Path | None, typer.Option(help="With --verify: which units are public and private, as CSV: unit,part.")
    ] = None,
    signer: Annotated[str | None, typer.Option(help="With --verify: the key that must have signed it.")] = None,
    signature_only: Annotated[
        bool,
        typer.Option(
            "--signature-only", help="With --verify: check only the signature and the RUN, while the labels are secret."
        ),
    ] = False,
    salt: Annotated[str | None, typer.Option(help="With --verify: the salt, if the receipt is an early one.")] = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scorecard as JSON.")] = False,
) -> None:
    """Score a run file as the organizers do, with intervals; or verify a receipt."""
    from fieldmark.cli.output import print_external_data, print_json, print_scorecards
    from fieldmark.storage.local_inputs import local_input
    from fieldmark.views.score_run import score_many

    if receipt is not None:
        given = {"truth": truth, "classes": classes, "media": media, "parts": parts}
        # With a receipt the benchmark is known, so that the one name on the command line is the run.
        named = runs[0] if runs else benchmark
        files = {what: local_input(path) for what, path in given.items() if path is not None}
        if signature_only:
            _verify_signature(receipt, None if named is None else local_input(named), signer, as_json)
            return
        _verify(receipt, None if named is None else local_input(named), files, signer, salt, as_json)
        return
    if benchmark is None or not runs:
        raise MisuseError("A score needs a benchmark and a run: fieldmark score BENCHMARK RUN --truth truth.csv.")
    tables = {"data": data, "truth": truth, "classes": classes, "media": media}
    how: dict[str, Any] = {**tables, "split": split, "seed": seed, "metrics": metric or None}
    if out is not None or external_data:
        if len(runs) > 1:
            raise MisuseError("--out is the folder of one run: score the files one by one.")
        how |= {"out": out, "external_data": external_data or (), "overwrite": overwrite}
    cards = score_many(benchmark, runs, engine=engine, address=address, **how)
    if len(cards) > 1:
        if as_json:
            print_json({path: card.to_json() for path, card in cards.items()})
        else:
            print_scorecards(cards)
        return
    (card,) = cards.values()
    if as_json:
        print_json(card.to_json())
    else:
        print_scorecards({runs[0].name: card})
        print_external_data(card)
        if out is not None:
            print(f"run in {out}; next: fieldmark report {out}")


def _verify_signature(receipt: Path, run: Path | None, signer: str | None, as_json: bool) -> None:
    from fieldmark.cli.output import print_json
    from fieldmark.scoring.receipts import verify_signature

    signed_by = verify_signature(receipt, run=run, signer=signer)
    if as_json:
        print_json({"verified": False, "signature": True, "signed_by": signed_by})
        return
    print(f"the signature holds: {signed_by} gave this receipt out{'' if run is None else f' for {run.name}'}")
    print("note: no score was recomputed; that needs the labels (--verify without --signature-only)")


def _verify(
    receipt: Path, run: Path | None, files: dict[str, Path], signer: str | None, salt: str | None, as_json: bool
) -> None:
    from fieldmark.cli.output import print_json, print_scorecards
    from fieldmark.scoring.receipts import verify

    verified = verify(receipt, run=run, files=files, signer=signer, salt=salt)
    if as_json:
        answer = {"verified": True, "signed_by": verified.signed_by, "remark": verified.remark}
        print_json({**answer, "scorecard": verified.card.to_json()})
        return
    print_scorecards({receipt.name: verified.card})
    signed = f", signed by {verified.signed_by}" if verified.signed_by else ""
    print(f"verified: every score and interval of the receipt was recomputed{signed}")
    if verified.remark:
        print(f"note: {verified.remark}")
