"""The process that checks one large run: `python -m fieldmark.challenge.submitting.checking_job FOLDER`.

```
FOLDER/
  job.json     benchmark, items, labels, whether others may be named, and the limits of this process
  run          the run as it was handed in
  out/         refused.json, where there is something wrong with it; exhausted, where it took too much memory
```

It knows no truth. What holds for `scoring_job` holds for it as well.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fieldmark.challenge.scoring.scoring_job import limit
from fieldmark.challenge.submitting.plain_problems import problems_of, read_as_scored
from fieldmark.errors import InputError


def main(folder: Path) -> None:
    """Checks the run of a job folder."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    limit(job["memory_mb"], job["cpu_s"], job["output_mb"])
    try:
        read_as_scored(job["benchmark"], folder / "run", job["items"], job["labels"], closed=job["closed"])
    except InputError as error:
        problems, total = problems_of(error)
        refused = json.dumps({"problems": problems, "total": total})
        (folder / "out" / "refused.json").write_text(refused, encoding="utf-8")
    except MemoryError:
        (folder / "out" / "exhausted").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
