"""The process that unpacks the archive of a program: `python -m fieldmark_challenge.programs.unpack_job FOLDER`.

```
FOLDER/
  job.json     the limits this process puts on itself before it reads anything
  archive      the archive as it was submitted
  out/code/    what was in it; out/home says which folder in it holds run.sh; or out/refused.json
```

It is walled in as a scorer is: it runs nothing of what it unpacks, but it reads what others packed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fieldmark_challenge.scoring.scoring_job import limit
from fieldmark_challenge.submissions.archives import ArchiveRefusedError, unpack


def main(folder: Path) -> None:
    """Unpacks the archive of a job folder."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    limit(job["memory_mb"], job["cpu_s"], job["output_mb"])
    out = folder / "out"
    (out / "code").mkdir()
    try:
        home = unpack(folder / "archive", out / "code")
    except (ArchiveRefusedError, MemoryError) as error:
        said = str(error) if isinstance(error, ArchiveRefusedError) else "The archive takes too much memory to unpack."
        (out / "refused.json").write_text(json.dumps(said), encoding="utf-8")
        return
    (out / "home").write_text(str(home.relative_to(out)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
