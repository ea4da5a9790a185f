"""What takes minutes: claims (`studies.evidence`), speed (`studies.perf`), and their results."""

import sys
from pathlib import Path

# Studies take helpers of the tests, which are installed nowhere.
sys.path += [str(Path(__file__).parents[1] / "packages" / name) for name in ("fieldmark", "fieldmark-challenge")]
