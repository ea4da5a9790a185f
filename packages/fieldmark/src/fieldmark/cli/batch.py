"""`fieldmark identify FOLDER`: many observations at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fieldmark.errors import MisuseError

if TYPE_CHECKING:
    from fieldmark.identification.review.batch import BatchDone, BatchSettings

SHOWN = 10


@dataclass(frozen=True)
class BatchForms:
    """What is written besides the folder of answers.

    Args:
        forms: csv, parquet, darwin-core, camtrap.
        title, contributor, zone: What a package says about itself; the time zone of camera clocks.
    """

    forms: Sequence[str] = ()
    title: str = ""
    contributor: str = ""
    zone: str = ""


def identify_batch(
    place: Path,
    model: str | None,
    out: Path | None,
    settings: BatchSettings,
    forms: BatchForms,
    *,
    engine: str | None = None,
    address: str | None = None,
    as_json: bool,
) -> None:
    """Names all observations of a folder or a table, and says what was written.

    Where no model is named, photos and recordings are answered by the pretrained model of each; a folder that holds
    both becomes two folders of answers, `photos` and `recordings`.
    """
    from fieldmark.cli.output import print_json
    from fieldmark.identification.review.batch import identify_many
    from fieldmark.identification.review.observations import media_in

    if out is None:
        raise MisuseError("For many files, name a folder for the answers: add --out ANSWERS.")
    media = media_in(place)
    where = {"engine": engine, "address": address}
    if model is not None or len(media) == 1:
        done = identify_many(place, model or media[0].pretrained, out, settings, **where)
        told = _report(done, out, forms, quiet=as_json)
        if as_json:
            print_json(told)
        return
    parts = {}
    for medium in media:
        if not as_json:
            print(f"{medium.plural.capitalize()}, answered by {medium.pretrained}:")
        done = identify_many(place, medium.pretrained, out / medium.plural, settings, **where)
        parts[medium.plural] = _report(done, out / medium.plural, forms, quiet=as_json)
    if as_json:
        print_json(parts)


def _report(done: BatchDone, out: Path, forms: BatchForms, *, quiet: bool) -> dict[str, Any]:
    """Writes the further forms of some answers, says what came of them unless it is to be quiet, and returns it."""
    from fieldmark.cli.output import print_table
    from fieldmark.identification.review.answer_tables import as_list, dangers_in

    written = write_forms(out, forms)
    table = as_list(done.answers)
    unread = int(table["problem"].is_not_null().sum())
    unknown = int((table["verdict"] == "possibly unknown").sum())
    dangers = dangers_in(done.answers)
    told = {
        "out": str(out),
        "observations": done.asked + done.before,
        "asked": done.asked,
        "entries": len(table),
        "possibly_unknown": unknown,
        "unreadable": unread,
        "dangers": dangers,
        "simulated": done.answers.simulated,
        "written": [str(path) for path in written],
    }
    if quiet:
        return told
    counts = table.filter(table["name"] != "")["name"].value_counts(sort=True).head(SHOWN)
    print_table(["name", "entries"], [[name, f"{number:,}"] for name, number in counts.iter_rows()])
    for line in danger_lines(dangers):
        print(line)
    before = f" ({done.before:,} had been answered before)" if done.before else ""
    print(f"{done.asked + done.before:,} observations{before}, {len(table):,} entries, {unknown:,} possibly unknown")
    if unread:
        print(f"note: {unread:,} could not be read; the column problem says why")
    for remark in done.answers.about.get("remarks", ()):
        print(f"note: {remark}")
    for path in (out, *written):
        print(f"written: {path}")
    print(f"check them, the least certain first: fieldmark review {out}")
    if done.answers.simulated:
        print("The model was trained on simulated data.")
    return told


def danger_lines(dangers: Mapping[str, Any]) -> Iterator[str]:
    """The dangers of a batch, a line each.

    >>> print(*danger_lines({"observations": 3, "improbable": 0, "names": {"Amanita phalloides": 2}}))
    BE CAREFUL with 3 observations (column danger): they could be Amanita phalloides, 2 times.
    """
    if dangers["observations"]:
        names = [f"{name}, {number:,} times" for name, number in dangers["names"].items()]
        more = f"; and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
        could_be = f": they could be {'; '.join(names[:SHOWN])}{more}" if names else ""
        yield f"BE CAREFUL with {dangers['observations']:,} observations (column danger){could_be}."
    if dangers["improbable"]:
        yield f"For {dangers['improbable']:,} observations danger is unlikely, but not ruled out (column danger)."


def write_forms(out: Path, forms: BatchForms) -> list[Path]:
    """Writes the answers of a folder, with what a person said, in other forms."""
    from fieldmark.identification.review.answer_tables import FILES, write_form
    from fieldmark.identification.review.camera_traps import PackageAbout
    from fieldmark.identification.review.session import Review

    written = []
    for form in dict.fromkeys(forms.forms):
        review = Review(out)
        about = PackageAbout(forms.title or out.name, forms.contributor or "not stated", forms.zone)
        write_form(review.answers, form, out / FILES[form], review.looks, about)
        written.append(out / FILES[form])
    return written
