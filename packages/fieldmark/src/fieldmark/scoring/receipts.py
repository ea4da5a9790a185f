"""Score receipts: what was scored, against what, by which scorer, and what came out; signed by the server.

A receipt holds SHA-256 digests of the run file and of the hidden truth, the version of the benchmark and of the scorer,
and the scores. Anyone with the run and, once it is public, the truth can compute the number without the server.
As long as the truth is hidden its digests are salted: they bind the server, but a guessed truth or a guessed draw of
the parts cannot be held against them. Receipts that are fetched after the reveal name the salt.
The signature (Ed25519, from the optional package `cryptography`) says that a server with this key gave it out; without
the package receipts are unsigned and say so.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, MisuseError
from fieldmark.scoring import Scorecard
from fieldmark.scoring.score_parts import score_parts, truth_files
from fieldmark.scoring.scorer_digest import scorer_digest
from fieldmark.storage.files import sha256_of

FORMAT = "fieldmark-receipt-1"
# Sums may be added up in another order on another machine.
TOLERANCE = 1e-9
KEY_BYTES = 32
NAMED = "a file named in the receipt"


@dataclass(frozen=True)
class Verified:
    """A receipt that holds.

    Args:
        card: The scorecard as it was computed again.
        signed_by: The fingerprint of the key that signed it; None for an unsigned receipt.
        remark: What a reader should know: no signature, or another build of the scorer with the same result.
    """

    card: Scorecard
    signed_by: str | None
    remark: str


def make_receipt(
    card: Scorecard,
    *,
    challenge: str,
    submission: str,
    team: str,
    accepted: datetime,
    run_name: str | None = None,
    key: bytes | None = None,
    salt: str | None = None,
    hidden: bool = False,
    run_hidden: bool = False,
) -> dict[str, Any]:
    """A receipt for a scorecard that `score_parts.score_parts` made.

    Args:
        card: What came out, with what it was computed from; its `split` is the part.
        challenge: Its name.
        submission: Its number.
        team: Whose it is.
        accepted: When the submission was accepted.
        run_name: What the run file was called when it was submitted, if it is kept under another name.
        key: The private key (32 bytes); without it the receipt is unsigned.
        salt: What the digests of the truth are salted with; without it they are plain.
        hidden: Whether the truth, and with it the salt, is still a secret.
        run_hidden: Whether the digest of the run is as secret as that of the truth: a program that wrote it could say
            something by it.
    """
    if hidden and salt is None:
        raise ValueError("a hidden truth needs a salt")
    scored = card.provenance["scored"]
    run = {**scored["run"], **({"name": run_name} if run_name else {})}
    receipt: dict[str, Any] = {
        "format": FORMAT,
        "challenge": challenge,
        "submission": submission,
        "team": team,
        "accepted": accepted.isoformat(),
        "benchmark": {"name": card.benchmark, "version": card.version},
        "part": card.split,
        "scorer": scored["scorer"],
        "run": _commitment(run, salt, hidden=hidden) if run_hidden else run,
        "truth": {what: _commitment(digests, salt, hidden=hidden) for what, digests in scored["truth"].items()},
        **({"salt": salt} if salt is not None and not hidden else {}),
        "items": card.items,
        "units": card.units,
        "scores": {
            name: {"value": _number(score.value), "low": score.low, "high": score.high}
            for name, score in card.metrics.items()
        },
    }
    return receipt if key is None else sign(receipt, key)


def verify(
    path: Path,
    *,
    run: Path | None = None,
    files: Mapping[str, Path] | None = None,
    signer: str | None = None,
    salt: str | None = None,
) -> Verified:
    """Computes the scores of a receipt again, offline.

    Args:
        path: The receipt.
        run: The run file; the one named in the receipt, beside it, if not given.
        files: The truth; the files beside the receipt if not given.
        signer: The fingerprint that must have signed it, as the server publishes it.
        salt: The salt of the challenge, for a receipt that was fetched before the reveal.

    Raises:
        InputError: Says in one sentence what differs.
    """
    receipt = read_receipt(path)
    signed_by = _signed_by(receipt, path, signer)
    run = run or path.parent / receipt["run"]["name"]
    files = dict(files or {}) or truth_files(path.parent)
    _check_commitment(path, run, receipt["run"], salt or receipt.get("salt"), "the run that was scored")
    for what, digests in receipt["truth"].items():
        if what not in files:
            hint = f"Give it with --{what}, or put {digests['name']} beside the receipt."
            raise InputError(path, found=f"no {what}", expected="the files the run was scored against", hint=hint)
        wanted = f"the {what} the run was scored against"
        _check_commitment(path, files[what], digests, salt or receipt.get("salt"), wanted)
    name, version = receipt["benchmark"]["name"], receipt["benchmark"]["version"]
    asked = f"{name}@{version}"
    if asked not in BENCHMARKS:
        now = f"{name} version {', '.join(BENCHMARKS[name].versions)}" if name in BENCHMARKS else "no such benchmark"
        raise InputError(path, found=now, expected=f"{name} version {version}, as the receipt says")
    used = {what: files[what] for what in receipt["truth"]}
    card = score_parts(asked, run, used, parts=[receipt["part"]])[receipt["part"]]
    same_scorer = receipt["scorer"]["sha256"] == scorer_digest()
    _check_scores(path, receipt, card, same_scorer=same_scorer)
    remarks = [] if signed_by else ["the receipt is unsigned"]
    remarks += [] if same_scorer else [f"scored then by another build ({receipt['scorer']['version']})"]
    return Verified(card, signed_by, "; ".join(remarks))


def verify_signature(path: Path, *, run: Path | None = None, signer: str | None = None) -> str:
    """Checks who gave a receipt out, and for which run, while the labels are secret: no score is computed again.

    Args:
        path: The receipt.
        run: The run file, where it is to be the one that was scored.
        signer: The fingerprint that must have signed it, as the server publishes it.

    Returns:
        The fingerprint of the key that signed it.

    Raises:
        InputError: When the receipt is unsigned, was changed, or is about another run.
    """
    receipt = read_receipt(path)
    signed_by = _signed_by(receipt, path, signer)
    if signed_by is None:
        raise InputError(path, found="no signature", expected="a signed receipt")
    if run is not None:
        _check_commitment(path, run, receipt["run"], receipt.get("salt"), "the run that was scored")
    return signed_by


def _signed_by(receipt: Mapping[str, Any], path: Path, signer: str | None) -> str | None:
    """Who signed a receipt.

    Raises:
        InputError: When the signature does not fit, or is not that of the signer.
    """
    signed_by = check_signature(receipt, path)
    if signer is not None and signer != signed_by:
        raise InputError(path, found=f"the signature of {signed_by or 'nobody'}", expected=f"that of {signer}")
    return signed_by


def read_receipt(path: Path) -> dict[str, Any]:
    """Reads a receipt and checks that it is one."""
    try:
        receipt = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(path, found="no such file", expected="a score receipt") from error
    except ValueError as error:
        raise InputError(path, found=f"something else ({error})", expected="a score receipt") from error
    if not isinstance(receipt, dict) or receipt.get("format") != FORMAT:
        raise InputError(path, found="no receipt in a known format", expected=FORMAT)
    needed = {"benchmark", "part", "scorer", "run", "truth", "scores"} - set(receipt)
    if needed:
        raise InputError(path, found=f"no {min(needed)}", expected="all that a receipt names")
    return receipt


def can_sign() -> bool:
    """Whether the package for signatures is installed."""
    try:
        _ed25519()
    except MisuseError:
        return False
    return True


def new_key() -> bytes:
    """A fresh private key: any 32 bytes are one."""
    return secrets.token_bytes(KEY_BYTES)


def challenge_salt(secret: bytes, challenge_id: int) -> str:
    """The salt of a challenge: the same for all its receipts, and of no help with those of another one."""
    return hmac.new(secret, f"challenge {challenge_id}".encode(), hashlib.sha256).hexdigest()


def fingerprint(public: bytes) -> str:
    """How a public key is written: `ed25519:` and the key in base64."""
    return "ed25519:" + base64.b64encode(public).decode()


def public_fingerprint(key: bytes) -> str:
    """What a server publishes about its private key."""
    raw = import_module("cryptography.hazmat.primitives.serialization")
    public = _ed25519().Ed25519PrivateKey.from_private_bytes(key).public_key()
    return fingerprint(public.public_bytes(raw.Encoding.Raw, raw.PublicFormat.Raw))


def sign(receipt: Mapping[str, Any], key: bytes) -> dict[str, Any]:
    """The receipt with the signature over everything else in it."""
    private = _ed25519().Ed25519PrivateKey.from_private_bytes(key)
    signed = {**receipt, "signed_by": public_fingerprint(key)}
    return {**signed, "signature": base64.b64encode(private.sign(_canonical(signed))).decode()}


def check_signature(receipt: Mapping[str, Any], where: object) -> str | None:
    """The fingerprint of the key that signed a receipt, None for an unsigned one.

    Raises:
        InputError: When the signature does not belong to what the receipt says.
    """
    if "signature" not in receipt:
        return None
    signed_by = str(receipt.get("signed_by", ""))
    content = {name: value for name, value in receipt.items() if name != "signature"}
    ed25519 = _ed25519()
    try:
        public = ed25519.Ed25519PublicKey.from_public_bytes(base64.b64decode(signed_by.removeprefix("ed25519:")))
        public.verify(base64.b64decode(receipt["signature"]), _canonical(content))
    except (ValueError, import_module("cryptography.exceptions").InvalidSignature) as error:
        found = "a signature that does not fit what the receipt says"
        raise InputError(where, found=found, expected="an unchanged receipt") from error
    return signed_by


def _canonical(content: Mapping[str, Any]) -> bytes:
    """The same bytes for the same content, whatever the order or the spaces."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def _ed25519() -> Any:
    try:
        return import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
    except ImportError as error:
        raise MisuseError(
            "Signed receipts need cryptography, which is not installed: pip install cryptography."
        ) from error


def _check_digest(path: Path, expected: str, what: str) -> None:
    digest = sha256_of(path, NAMED)
    if digest != expected:
        found = f"another file (SHA-256 {digest[:12]}...)"
        raise InputError(path, found=found, expected=f"{what} ({expected[:12]}...)")


def _commitment(digests: Mapping[str, str], salt: str | None, *, hidden: bool) -> dict[str, str]:
    """What a receipt says about a file that is hidden, or was."""
    plain = {} if hidden else {"sha256": digests["sha256"]}
    salted = {} if salt is None else {"salted_sha256": salted_digest(digests["sha256"], salt)}
    return {"name": digests["name"], **plain, **salted}


def salted_digest(sha256: str, salt: str) -> str:
    """The digest of a file as it stands in a receipt while the file is hidden: HMAC-SHA256 with the salt as the key."""
    return hmac.new(salt.encode(), sha256.encode(), hashlib.sha256).hexdigest()


def _check_commitment(receipt: Path, file: Path, digests: Mapping[str, str], salt: str | None, wanted: str) -> None:
    if "sha256" in digests:
        _check_digest(file, digests["sha256"], wanted)
    elif salt is None:
        hint = "Fetch the receipt again now that the truth is out, or give the salt from another one with --salt."
        raise InputError(receipt, found="no salt", expected="a receipt from after the reveal", hint=hint)
    salted = digests.get("salted_sha256")
    if salted is not None and salt is not None and salted_digest(sha256_of(file, NAMED), salt) != salted:
        raise InputError(file, found="another file, or another salt", expected=wanted)


def _check_scores(path: Path, receipt: Mapping[str, Any], card: Scorecard, *, same_scorer: bool) -> None:
    hint = None if same_scorer else f"It was scored by Fieldmark {receipt['scorer']['version']}, another build."
    for name, said in receipt["scores"].items():
        if name not in card.metrics:
            raise InputError(
                path, found=f"no {name} on the scorecard", expected="every score of the receipt", hint=hint
            )
        score = card.metrics[name]
        for part, now in (("value", score.value), ("low", score.low), ("high", score.high)):
            then = said[part]
            if _number(now) != _number(then) and not math.isclose(
                _number(now) or 0, _number(then) or 0, rel_tol=TOLERANCE, abs_tol=TOLERANCE
            ):
                what = name if part == "value" else f"{name}, {part} end of the interval,"
                raise InputError(path, found=f"{what} {now}", expected=f"{then}, as the receipt says", hint=hint)


def _number(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)
