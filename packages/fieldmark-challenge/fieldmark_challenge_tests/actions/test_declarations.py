"""One declaration is a form, a route of the API and a verb, with the same rights and the same words."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

import pytest
import typer
from pydantic import Field
from starlette.testclient import TestClient
from typer.testing import CliRunner

from fieldmark.errors import MisuseError
from fieldmark.web.refusals import RefusalError
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.actions import ORGANIZING, api, forms
from fieldmark_challenge.actions.course import NewPhaseIn
from fieldmark_challenge.actions.declarations import ActingOrganizer, Actions, FieldShown, Request, Told
from fieldmark_challenge.actions.fields import form_rows, read_form
from fieldmark_challenge.cli.verbs import Verbs
from fieldmark_challenge.people import accounts
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.web.replies import Done
from fieldmark_challenge_tests.platform import PASSWORD, Platform

declared = Actions()


class GreetIn(Request):
    """Whom to greet."""

    who: Annotated[str, FieldShown("Name", argument=True)] = Field(max_length=20, description="Who is greeted.")
    times: Annotated[int, FieldShown("How often", form="often", least=1)] = Field(1, le=3)
    loud: Annotated[bool, FieldShown(undo="Softly.")] = True


@declared.add(api="POST /greet", page="/greet", verb="greet birds Ada")
def greet(by: ActingOrganizer, given: GreetIn) -> Told[Done]:
    """Greet somebody."""
    if given.who == "nobody":
        raise RefusalError("Nobody is not greeted.")
    said = f"{'HELLO' if given.loud else 'hello'} {given.who}"
    return Told(Done(done=said, count=given.times), f"{by.user.name} says {said}", done="saved")


@pytest.fixture
def client(small_platform: Platform) -> TestClient:
    app = create_app(small_platform.database, small_platform.storage)
    app.include_router(api.make_router(declared), prefix="/api/v1")
    app.include_router(forms.make_router(declared), include_in_schema=False)
    return TestClient(app, base_url="http://x", follow_redirects=False)


def test_one_declaration_is_a_route_with_its_rights_and_its_entry_in_openapi(
    client: TestClient, small_platform: Platform
):
    slug, sent = small_platform.challenge.slug, {"who": "Ada", "times": 2}
    tokens = {
        user.name: accounts.make_token(small_platform.database, user, "all", accounts.SCOPES)
        for user in (small_platform.admin, small_platform.person("stranger"))
    }
    asked = {"url": f"/api/v1/challenges/{slug}/greet", "headers": {"authorization": f"Bearer {tokens['admin']}"}}
    assert client.post(**asked, data=sent).json() == {"done": "HELLO Ada", "count": 2}
    assert client.post(**asked, data={"who": "nobody"}).status_code == 400
    assert client.post(**asked, data={"who": "Ada", "times": 4}).status_code == 422
    other = asked | {"headers": {"authorization": f"Bearer {tokens['stranger']}"}}
    assert client.post(**other, data=sent).status_code == client.post(**other).status_code == 404
    described = client.app.openapi()
    route = described["paths"]["/api/v1/challenges/{slug}/greet"]["post"]
    assert route["description"] == "Greet somebody."
    form = route["requestBody"]["content"]["application/x-www-form-urlencoded"]["schema"]["$ref"].rpartition("/")[2]
    fields = described["components"]["schemas"][form]
    assert fields["required"] == ["who"] and fields["properties"]["who"]["description"] == "Who is greeted."
    assert fields["properties"]["times"]["maximum"] == 3


def test_one_declaration_is_a_form_that_says_what_is_wrong_with_it(client: TestClient, small_platform: Platform):
    secret = accounts.sign_in(small_platform.database, "admin", PASSWORD)[1]
    client.cookies.set(SESSION_COOKIE, secret)
    page, csrf = f"/c/{small_platform.challenge.slug}/organize", client.app.state.guard.token_for(secret)
    done = client.post(f"{page}/greet", data={"csrf": csrf, "who": "Ada", "often": "2"})
    assert done.status_code == 303 and done.headers["location"] == f"{page}?done=saved"
    for often, sentence in (("many", "How often: found &#39;many&#39;, expected a whole number."), ("4", "How often")):
        wrong = client.post(f"{page}/greet", data={"csrf": csrf, "who": "Ada", "often": often})
        assert wrong.status_code == 400 and sentence in wrong.text
    assert client.post(f"{page}/greet", data={"who": "Ada", "often": "2"}).status_code == 403


def test_one_declaration_is_a_verb(small_platform: Platform):
    group = typer.Typer()
    Verbs(declared).add_to(group)
    group.command("other")(lambda: None)
    place = ["--folder", str(small_platform.folder)]
    slug, run = small_platform.challenge.slug, CliRunner()
    assert run.invoke(group, ["greet", slug, "Ada", "--undo", *place]).stdout == "admin says hello Ada\n"
    told = run.invoke(group, ["greet", slug, "Ada", "--json", *place]).stdout
    assert '"done": "HELLO Ada"' in told
    many = run.invoke(group, ["greet", slug, "Ada", "--times", "4", *place]).exception
    assert isinstance(many, RefusalError) and str(many).startswith("How often: found '4', expected less than or equal")
    small_platform.person("stranger")
    stranger = run.invoke(group, ["greet", slug, "Ada", "--as", "stranger", *place]).exception
    assert isinstance(stranger, MisuseError) and "stranger does not run" in str(stranger)
    shown = " ".join(run.invoke(group, ["greet", "--help"]).stdout.split())
    assert "Greet somebody." in shown and "Who is greeted." in shown and "Example: `fieldmark challenge greet" in shown


def test_a_form_begins_with_the_defaults_of_its_request():
    by_name = {one.of: one for row in form_rows(NewPhaseIn) for one in row}
    assert (by_name["daily_limit"].value, by_name["total_limit"].value) == (5, 100)
    assert [[one.name for one in row] for row in form_rows(NewPhaseIn)] == [
        ["name"],
        ["starts", "ends"],
        ["daily", "total"],
    ]


def test_a_form_that_is_filled_in_is_a_request():
    from starlette.datastructures import FormData

    filled = {"name": "main", "starts": "2026-01-01T00:00", "ends": "2026-02-01T00:00", "daily": "1", "total": "9"}
    read = read_form(NewPhaseIn, FormData(filled), {})
    assert read == NewPhaseIn(
        name="main",
        starts_at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        ends_at=dt.datetime(2026, 2, 1, tzinfo=dt.UTC),
        daily_limit=1,
        total_limit=9,
    )


def test_every_action_says_what_it_does_and_takes_the_rows_of_its_address():
    for action in (one for module in ORGANIZING for one in module):
        assert action.about and action.right is ActingOrganizer, action.name
        for path in (action.api, *action.pages):
            assert not path or {part.strip("{}") for part in path.split("/") if "{" in part} == set(action.ids), path
