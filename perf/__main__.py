"""`python -m perf [job ...]`: measures, and renews the tables made from the results."""

from __future__ import annotations

import argparse
from importlib import import_module

from evidence.results import write_result
from evidence.tables import write_tables

JOBS = {
    "scoring": "macro-F1 with its interval beside scikit-learn's value alone, and a run file read and scored",
    "photos": "decoding at the scale that is needed beside decoding in full",
    "metrics_retrieval": "cmAP over 18,360 segments and 960 classes beside scikit-learn",
    "metrics_geo": "adaptive top-30 over 42,405 places and 31,435 species, streamed",
    "sound": "an hour of sound in constant memory, and mel spectrograms beside librosa's",
    "occurrences": "a Darwin Core Archive of a million records beside python-dwca-reader",
    "masks": "run lengths of masks beside pycocotools",
    "rasters": "a million points through 27 rasters beside a loop over rasterio's sample",
    "random_forest": "a forest of 31,435 species and 200,000 places: memory, and time beside scikit-learn",
    "packages": "the wheel: size, installation into empty environments, core alone and with [vision,report]",
    "startup": "commands from the shell beside an empty Python and beside `import torch`",
    "identifying": "one photo in a loaded process, and a folder beside the extractor alone",
    "boards": "boards of 300 and 3,000 entries: first page, first after a new score, 50 and 200 readers",
    "store": "features from the store beside computing them",
}


def main() -> None:
    """Runs the named jobs, or all."""
    parser = argparse.ArgumentParser(prog="python -m perf", description=__doc__)
    parser.add_argument("jobs", nargs="*", choices=[*JOBS, []], help="which jobs; all of them if none is named")
    for name in parser.parse_args().jobs or JOBS:
        print(f"== {name}: {JOBS[name]}", flush=True)
        result = import_module(f"perf.{name}").run()
        print(result)
        print("written to", write_result(f"perf-{name}", result))
    print("written to", write_tables())


if __name__ == "__main__":
    main()
