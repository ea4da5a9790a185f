"""What mails say. Plain text, and never a score: what somebody may see is decided where pages are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TOPICS = {
    "runs": "When a run of your team is scored, refused or has failed, and when a program has ended",
    "phases": "When a phase opens, and a day before it ends",
    "announcements": "Announcements of challenges you take part in",
    "admissions": "When organizers decide whether you take part",
}


@dataclass(frozen=True)
class Letter:
    """A mail before it is addressed."""

    subject: str
    text: str


@dataclass(frozen=True)
class LetterKind:
    """A kind of mail: the topic by which it can be turned off (None for none), and how it is written."""

    topic: str | None
    write: Callable[[dict[str, Any], str], Letter]


def write_letter(kind: str, data: dict[str, Any], base: str, *, name: str, stop: str = "") -> Letter:
    """The mail of a kind.

    Args:
        kind: One of `KINDS`.
        data: What it is about.
        base: The address of the platform.
        name: Whom it is for.
        stop: The link that turns such mails off.
    """
    letter = KINDS[kind].write(data, base)
    end = f"\n\nYou get this because you have an account at {base}."
    if stop:
        end += f"\nTurn such mails off: {stop}"
    subject = " ".join(letter.subject.split())[:150]  # one line: a name must not begin another header
    return Letter(subject, f"Hello {name},\n\n{letter.text}{end}\n")


def _verify(data: dict[str, Any], base: str) -> Letter:
    return Letter(
        "Confirm your e-mail address",
        "please confirm that this is your address. Sign in and press the button on this page:\n\n"
        f"{base}/verify/{data['secret']}\n\n"
        "The link works once, for a day. If you did not ask for it, do nothing.",
    )


def _changed(data: dict[str, Any], base: str) -> Letter:
    return Letter(
        "Your e-mail address was changed",
        f"your account now has the address {data['new']}. If it was not you, ask the people who run {base} for help.",
    )


def _linked(data: dict[str, Any], base: str) -> Letter:
    return Letter(
        "Another way to sign in to your account",
        f"{data['shown']} at {data['issuer']} can sign in to your account from now on. If it was not you, remove it on "
        f"your account page and set a new password:\n\n{base}/account",
    )


def _reset(data: dict[str, Any], base: str) -> Letter:
    return Letter(
        "Set a new password",
        "somebody, probably you, asked for a new password. This link sets one, once, within a day:\n\n"
        f"{base}/reset/{data['secret']}\n\n"
        "If it was not you, do nothing: your password stays as it is.",
    )


def _run(data: dict[str, Any], base: str) -> Letter:
    counts = "counts" if data.get("counted") else "does not count"  # that of a program counts
    said = {
        "scored": "is scored",
        "refused": f"was refused; it {counts} against your limits",
        "failed": f"could not be scored by a fault of the platform; it {counts} against your limits",
    }[data["state"]]
    called = f"{data['title']} (run {data['run']})" if data["title"] else f"run {data['run']}"
    return Letter(
        f"{data['challenge']}: {called} {data['state'] if data['state'] != 'failed' else 'not scored'}",
        f"{called} of team {data['team']} in {data['challenge']} {said}.\n\n"
        f"{base}/c/{data['slug']}/submissions/{data['run']}",
    )


def _program(data: dict[str, Any], base: str) -> Letter:
    """A debug run, or a program without a run to score: of one that ended well the run is told when it is scored."""
    debug = data["run"] is None
    counts = "counts" if data.get("counted") else "does not count"  # that was started on hidden items
    ended, said = {
        "done": ("ended well", "ended well, and its answers pass the check"),
        "refused": ("failed", "failed" + ("" if debug else "; it counts against your limits")),
        "failed": ("not run", f"could not be run by a fault of the platform; it {counts} against your limits"),
    }[data["state"]]
    called = f"debug run {data['program']}" if debug else f"program of run {data['run']}"
    where = f"debug/{data['program']}" if debug else f"submissions/{data['run']}"
    return Letter(
        f"{data['challenge']}: {called} {ended}",
        f"{called} ({data['file']}) of team {data['team']} in {data['challenge']} {said}.\n\n"
        f"{base}/c/{data['slug']}/{where}",
    )


def _admission(data: dict[str, Any], base: str) -> Letter:
    if data["admitted"]:
        return Letter(
            f"{data['challenge']}: you may take part",
            f"the organizers of {data['challenge']} have let you in. Accept the rules and make or join a team:\n\n"
            f"{base}/c/{data['slug']}",
        )
    return Letter(
        f"{data['challenge']}: you do not take part",
        f"the organizers of {data['challenge']} have decided that you do not take part.",
    )


def _phase_opens(data: dict[str, Any], base: str) -> Letter:
    return Letter(
        f"{data['challenge']}: {data['phase']} is open",
        f"the phase {data['phase']} of {data['challenge']} is open until {data['ends']} UTC.\n\n"
        f"{base}/c/{data['slug']}",
    )


def _phase_ends(data: dict[str, Any], base: str) -> Letter:
    return Letter(
        f"{data['challenge']}: {data['phase']} ends soon",
        f"the phase {data['phase']} of {data['challenge']} ends {data['ends']} UTC. What counts is when an upload "
        f"begins.\n\n{base}/c/{data['slug']}",
    )


def _announcement(data: dict[str, Any], base: str) -> Letter:
    return Letter(f"{data['challenge']}: {data['subject']}", f"{data['text']}\n\n{base}/c/{data['slug']}")


def _trial(data: dict[str, Any], base: str) -> Letter:
    return Letter("A mail to try the settings", f"{base} can send mail.")


KINDS: dict[str, LetterKind] = {
    "verify": LetterKind(None, _verify),
    "changed": LetterKind(None, _changed),
    "linked": LetterKind(None, _linked),
    "reset": LetterKind(None, _reset),
    "run": LetterKind("runs", _run),
    "program": LetterKind("runs", _program),
    "admission": LetterKind("admissions", _admission),
    "phase-opens": LetterKind("phases", _phase_opens),
    "phase-ends": LetterKind("phases", _phase_ends),
    "announcement": LetterKind("announcements", _announcement),
    "trial": LetterKind(None, _trial),
}
