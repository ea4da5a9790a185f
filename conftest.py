"""Fixtures of all distributions: small releases made once, real data where given."""

import os
from pathlib import Path

pytest_plugins = ["fieldmark_tests.fixtures"]

# Processes that tests start import from the tests as well.
HERE = Path(__file__).parent
TESTS = [HERE / "packages" / "fieldmark", HERE / "packages" / "fieldmark-challenge", HERE]
os.environ["PYTHONPATH"] = os.pathsep.join([*map(str, TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
