"""What is known about a photo besides itself must be possible."""

from __future__ import annotations

import math

import pytest
from typer.testing import CliRunner

from fieldmark.cli.main import app
from fieldmark.errors import MisuseError
from fieldmark.identification.results import Circumstances


@pytest.mark.parametrize(
    ("lat", "lon", "called"), [(90.5, 0, "latitude"), (0, -181, "longitude"), (math.nan, 0, "latitude")]
)
def test_a_place_off_the_globe_is_refused(lat, lon, called):
    with pytest.raises(MisuseError, match=rf"A {called} lies between .* degrees: found"):
        Circumstances(lat=lat, lon=lon)
    assert Circumstances(lat=-90.0, lon=180.0).known == {"lat": -90.0, "lon": 180.0}


@pytest.mark.parametrize("lat", ["nan", "95"])
def test_the_command_line_refuses_such_places_as_misuse(tmp_path, lat):
    result = CliRunner().invoke(app, ["identify", str(tmp_path / "photo.jpg"), "--lat", lat, "--lon", "0"])
    assert result.exit_code == 2 and "--lat" in result.output
