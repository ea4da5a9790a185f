"""What can be measured: each job, what it needs, and the packages whose versions it depends on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec


def cuda_device() -> str:
    """Why a GPU cannot be used here; empty where there is one."""
    if find_spec("torch") is None:
        return "torch is not installed"
    import torch

    return "" if torch.cuda.is_available() else "this machine has no GPU that torch can use"


def installed(*modules: str) -> Callable[[], str]:
    """Why a job that imports some modules cannot run; empty where all of them are installed."""

    def missing() -> str:
        names = [name for name in modules if find_spec(name) is None]
        return f"not installed: {', '.join(names)}" if names else ""

    return missing


@dataclass(frozen=True)
class Job:
    """One measurement, `perf.<name>.run`.

    Args:
        about: What is measured beside what.
        packages: Whose versions are written down.
        cannot_run: Why it cannot run here, in a few words; empty where it can.
        minutes: About how long it takes on two cores.
    """

    about: str
    packages: tuple[str, ...] = ("numpy",)
    cannot_run: Callable[[], str] = str
    minutes: int = 1


VISION = ("pillow", "torch", "torchvision")
JOBS = {
    "photos": Job(
        "photos from files to batches beside libjpeg-turbo alone and torchvision's ImageFolder",
        (*VISION, "simplejpeg", "numba"),
        installed("simplejpeg", "numba", "torchvision"),
        minutes=3,
    ),
    "growth": Job("time and memory of the stages at 1, 4 and 16 times the items", ("numpy", "polars"), minutes=12),
    "scale": Job("what 16 times the items took, beside what 1 and 4 times predict"),
    "method_memory": Job(
        "what methods on features hold themselves when these lie in files, as a share of their size", minutes=4
    ),
    "real_sizes": Job(
        "methods on 433,701 generated items of 1,280 features and 2,829 labels: time, and memory of 8 GiB", minutes=20
    ),
    "large_tables": Job(
        "GeoLifeCLEF with 1.9 million records and 300,000 images in COCO's format, opened beside the raw files read",
        ("polars",),
        minutes=2,
    ),
    "extraction_cpu": Job(
        "extraction on a CPU from files to the store beside the bare engine",
        ("openvino", "onnxruntime", "simplejpeg", "numba"),
        installed("openvino", "onnxruntime", "simplejpeg", "numba"),
        minutes=4,
    ),
    "large_folder": Job(
        "a folder of 100,000 photos from the shell: extraction, fit, near-duplicates, report",
        ("openvino", "onnxruntime", "polars"),
        installed("simplejpeg", "numba"),
        minutes=35,
    ),
    "networks": Job("multiply-adds of the networks of FungiTastic's Table 4", ("torch", "timm")),
    "scoring": Job(
        "macro-F1 with its interval beside scikit-learn's value alone, and a run file read and scored",
        ("numpy", "polars", "scikit-learn"),
    ),
    "metrics_retrieval": Job(
        "cmAP over 18,360 segments and 960 classes beside scikit-learn", ("numpy", "scikit-learn"), minutes=2
    ),
    "metrics_geo": Job("adaptive top-30 over 42,405 places and 31,435 species, streamed"),
    "sound": Job(
        "an hour of sound in constant memory, and mel spectrograms beside librosa's",
        ("numpy", "librosa", "torch"),
        installed("librosa", "ai_edge_litert"),
        minutes=2,
    ),
    "occurrences": Job(
        "a Darwin Core Archive of a million records beside python-dwca-reader",
        ("polars", "python-dwca-reader"),
        installed("dwca"),
        minutes=4,
    ),
    "masks": Job("run lengths of masks beside pycocotools", ("numpy", "pycocotools"), installed("pycocotools")),
    "rasters": Job(
        "a million points through 27 rasters beside a loop over rasterio's sample",
        ("numpy", "rasterio"),
        installed("rasterio"),
        minutes=5,
    ),
    "random_forest": Job(
        "a forest of 31,435 species and 200,000 places: memory, and time beside scikit-learn",
        ("numpy", "scikit-learn"),
        minutes=4,
    ),
    "packages": Job(
        "the wheel: size, installation into empty environments, core alone and with [vision,report]", ("uv",), minutes=6
    ),
    "suites": Job("a suite killed twice and merged, beside the sum of its single fits", ("onnxruntime",), minutes=20),
    "suite_page": Job(
        "the page of a suite with 300 models by 60 cells in a browser", ("playwright",), installed("playwright")
    ),
    "startup": Job("commands from the shell beside an empty Python and beside `import torch`", ("torch",), minutes=3),
    "identifying": Job(
        "one photo in a loaded process, and a folder beside the extractor alone", ("onnxruntime",), minutes=2
    ),
    "boards": Job(
        "boards of 300 and 3,000 entries: first page, first after a new score, 50 and 200 readers",
        ("fastapi", "sqlalchemy"),
        minutes=4,
    ),
    "submissions": Job(
        "500 submissions of 20,000 rows, handed in through the API and scored by two workers on PostgreSQL",
        ("fastapi", "sqlalchemy", "psycopg"),
        minutes=25,
    ),
    "store": Job("features from the store beside computing them", ("onnxruntime",)),
    "gpu": Job(
        "extraction and training on a GPU, loader included, beside plain loops; its JPEG decoder beside ours",
        ("numpy", *VISION, "simplejpeg", "numba"),
        cuda_device,
        minutes=25,
    ),
    "table4": Job(
        "the sixteen cells of FungiTastic's Table 4 on a GPU, as their recipes say and compiled",
        VISION,
        cuda_device,
        minutes=30,
    ),
    "sharing": Job("small trainings that share a GPU, beside one alone", VISION, cuda_device, minutes=2),
}
