"""The way to the mail server: a thread takes mails out of the outbox and hands them over, in its own time.

Pages only ever write into the outbox, so that a mail server that is dead or slow stalls nothing but the mail.
"""

from __future__ import annotations

import logging
import smtplib
import threading
from email.message import EmailMessage
from email.policy import SMTP as WIRE
from email.utils import format_datetime

from sqlalchemy.exc import DBAPIError

from fieldmark.web.rates import Rate
from fieldmark.web.refusals import TooOftenError
from fieldmark_challenge.mail import notices, outbox
from fieldmark_challenge.mail.addresses import make_email_token
from fieldmark_challenge.mail.mail_settings import MailSettings
from fieldmark_challenge.mail.messages import KINDS, Letter, write_letter
from fieldmark_challenge.mail.outbox import TakenMail
from fieldmark_challenge.mail.topics import muted_by, stop_key
from fieldmark_challenge.people import accounts, rates
from fieldmark_challenge.people.names import EMAIL
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import User, utc_now

log = logging.getLogger(__name__)

IDLE_S, SWEEP_S = 1.0, 30.0
# How long the line rests after the mail server did not answer, twice as long each time.
REST_S, REST_MOST_S = 15.0, 300.0


class DropError(Exception):
    """A mail that nobody is going to get, and why."""


class Postman:
    """Sends what is in the outbox.

    Args:
        database: Where the outbox is.
        settings: The mail server.
        public_url: The address of the platform for links. It comes from the settings and never from a request: what a
            stranger sends as the name of the host must not get into somebody's mail.
    """

    def __init__(self, database: Database, settings: MailSettings, public_url: str) -> None:
        self.database, self.settings, self.base = database, settings, public_url.rstrip("/")

    def run(self, stop: threading.Event) -> None:
        """Sends until it is told to stop."""
        rest, wait_s, looked = REST_S, 0.0, None
        while not stop.is_set():
            try:
                if wait_s <= 0:
                    now = utc_now()
                    notices.collect(self.database, now, looked=looked)
                    wait_s, looked = SWEEP_S, now
                reached = self.deliver(stop)
            except DBAPIError as error:
                log.warning("mail waits for the database: %s", type(error).__name__)
                reached = False
            except Exception:  # whatever it is, the next mail must not wait for a thread that is no more
                log.exception("the mail thread stumbled; it goes on in %g seconds", rest)
                reached = False
            pause = IDLE_S if reached else rest
            rest = REST_S if reached else min(2 * rest, REST_MOST_S)
            wait_s -= pause
            stop.wait(pause)

    def deliver(self, stop: threading.Event | None = None) -> bool:
        """Sends everything that is due over one connection.

        Returns:
            Whether the mail server could be reached, as far as there was something to send.
        """
        line: smtplib.SMTP | None = None
        try:
            while not (stop and stop.is_set()) and (taken := outbox.take(self.database)) is not None:
                try:
                    message = self.compose(taken)
                except DropError as error:
                    outbox.settle(self.database, taken, problem=str(error))
                    continue
                try:
                    line = line or self._connect()
                except (smtplib.SMTPException, OSError) as error:
                    log.warning("the mail server cannot be used: %s", _told(error))
                    outbox.postpone(self.database, taken, _told(error))
                    return False
                try:
                    line.send_message(message)
                except (smtplib.SMTPException, OSError) as error:
                    if _is_final(error):
                        log.warning("mail %d was refused: %s", taken.mail_id, _told(error))
                        outbox.settle(self.database, taken, address=str(message["To"]), problem=_told(error))
                        continue
                    log.warning("mail %d could not be sent: %s", taken.mail_id, _told(error))
                    outbox.postpone(self.database, taken, _told(error))
                    if isinstance(error, smtplib.SMTPServerDisconnected) or not isinstance(
                        error, smtplib.SMTPException
                    ):
                        return False
                else:
                    outbox.settle(self.database, taken, address=str(message["To"]))
        finally:
            if line is not None:
                _hang_up(line)
        return True

    def compose(self, taken: TakenMail) -> EmailMessage:
        """The mail as it is sent, with the secrets of its links made now.

        Raises:
            DropError: When it should not be sent.
        """
        user = self._recipient(taken)
        address = taken.address or user.email
        if not EMAIL.fullmatch(address):
            raise DropError("the address is none")
        topic, data, stop = KINDS[taken.kind].topic, dict(taken.data), ""
        if topic is not None:
            self._check_wanted(user, topic)
            stop = f"{self.base}/notices/{stop_key(self.database, user.id, topic)}"
        if taken.kind in ("reset", "changed", "linked"):
            self._count(rates.MAIL_TO, address)
        if taken.kind == "reset":
            data["secret"] = accounts.make_reset(self.database, user.email)
        if taken.kind == "verify":
            with self.database.write() as session:
                data["secret"] = make_email_token(session, user.id, address)
        letter = write_letter(taken.kind, data, self.base, name=user.name, stop=stop)
        return self._message(taken, address, letter, stop)

    def _recipient(self, taken: TakenMail) -> User:
        with self.database.read() as session:
            if taken.user_id is not None:
                user = session.get(User, taken.user_id)
            else:  # asked for by a name or an address, which may be nobody's
                user = accounts.find_user(session, str(taken.data.get("who", "")))
        if user is None or user.disabled_at is not None:
            raise DropError("there is no such account")
        return user

    def _check_wanted(self, user: User, topic: str) -> None:
        with self.database.read() as session:
            if topic in muted_by(session, user.id):
                raise DropError("not wanted")
        if user.email_verified_at is None:
            raise DropError("the address is not verified")
        self._count(rates.NOTICES_TO, user.email)

    def _count(self, rate: Rate, address: str) -> None:
        try:
            rates.count(self.database, rate, accounts.hashed(address))
        except TooOftenError as error:
            raise DropError("too many mails to this address") from error

    def _message(self, taken: TakenMail, address: str, letter: Letter, stop: str) -> EmailMessage:
        message = EmailMessage(policy=WIRE)
        message["From"], message["To"], message["Subject"] = self.settings.sender, address, letter.subject
        message["Date"] = format_datetime(utc_now())
        # The same for each attempt, so that a mail that comes twice can be known as one.
        mark = f"{taken.mail_id}.{int(taken.created_at.timestamp() * 1000)}"
        message["Message-ID"] = f"<fieldmark.{mark}@{self.settings.domain}>"
        message["Auto-Submitted"] = "auto-generated"
        if stop:
            message["List-Unsubscribe"] = f"<{stop}>"
        message.set_content(letter.text)
        return message

    def _connect(self) -> smtplib.SMTP:
        settings = self.settings
        line: smtplib.SMTP
        if settings.security == "tls":
            line = smtplib.SMTP_SSL(
                settings.host, settings.port, timeout=settings.timeout_s, context=settings.context()
            )
        else:
            line = smtplib.SMTP(settings.host, settings.port, timeout=settings.timeout_s)
        try:
            if settings.security == "starttls":
                line.starttls(context=settings.context())
            if settings.user:
                line.login(settings.user, settings.password)
        except BaseException:
            line.close()
            raise
        return line


def start_postman(
    database: Database, settings: MailSettings, public_url: str, stop: threading.Event
) -> threading.Thread:
    """Starts the thread that sends mail."""
    postman = Postman(database, settings, public_url)
    thread = threading.Thread(target=postman.run, args=(stop,), name="mail", daemon=True)
    thread.start()
    return thread


def _is_final(error: Exception) -> bool:
    """Whether the mail server will never take this mail, whatever becomes of it; a wrong sender can be mended."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(code >= 500 for code, _ in error.recipients.values())
    if isinstance(error, smtplib.SMTPDataError):
        return error.smtp_code >= 500
    return isinstance(error, smtplib.SMTPNotSupportedError)  # an address with letters that the server does not know


def _told(error: Exception) -> str:
    """What went wrong, in one line, for the log and for admins; the text of the mail is not in it."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return _reply(*next(iter(error.recipients.values())))
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"{error.smtp_code} the mail server does not accept the user and password"
    if isinstance(error, smtplib.SMTPResponseException):
        return _reply(error.smtp_code, error.smtp_error)
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


def _reply(code: int, reply: bytes | str) -> str:
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    return f"{code} {' '.join(text.split())}"[:200]


def _hang_up(line: smtplib.SMTP) -> None:
    try:
        line.quit()
    except (smtplib.SMTPException, OSError):
        line.close()
