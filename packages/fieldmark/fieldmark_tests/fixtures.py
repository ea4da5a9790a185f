"""Small real parts for the tests: releases made in milliseconds, a cache of their own, real data where given."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from PIL import Image

from fieldmark.cli.main import main
from fieldmark.work.blocks import LocalExecutor
from fieldmark_tests.kinds import Kinds
from fieldmark_tests.made_once import MadeFolder, made_once
from fieldmark_tests.system_programs import CHROMIUM, absent

# No example may fail because a machine is busy.
settings.register_profile("fieldmark", deadline=None)
settings.load_profile("fieldmark")

COLORS = {"Alba alba": (220, 210, 200), "Alba nigra": (40, 40, 60), "Rubra vera": (200, 60, 50)}


def pytest_configure(config: pytest.Config) -> None:
    """Marks tests by kind; a plugin of its own, so that it sees the doctests of the package too."""
    config.pluginmanager.register(Kinds(), "fieldmark-kinds")


def pytest_collection_finish() -> None:
    """Takes what importing and collecting made out of the garbage collector's rounds: it lives to the end anyway."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["FIELDMARK_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with small real data, where it is given."""
    root = os.environ.get("FIELDMARK_REAL_DATA")
    if not root:
        pytest.skip("FIELDMARK_REAL_DATA is not set")
    return Path(root)


def save_photo(path: Path, color: tuple[int, int, int], seed: int, size: tuple[int, int] = (48, 40)) -> None:
    """A small noisy photo of one color."""
    rng = np.random.default_rng(seed)
    pixels = np.clip(np.array(color) + rng.normal(0, 12, (size[1], size[0], 3)), 0, 255).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, quality=90)


MakeRelease = Callable[..., Path]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium that tests drive."""
    if CHROMIUM is None:
        absent("there is no Chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture
def make_release(tmp_path: Path) -> MakeRelease:
    """Makes a folder release: `make_release(flat=False, per_class=8)`."""

    def make(*, flat: bool = False, per_class: int = 8, name: str = "photos") -> Path:
        return write_release(tmp_path / name, flat=flat, per_class=per_class)

    return make


def write_release(root: Path, *, flat: bool = False, per_class: int = 8) -> Path:
    """Writes a folder release."""
    for label_number, (label, color) in enumerate(COLORS.items()):
        for number in range(per_class):
            part = "" if flat else ("train" if number < per_class // 2 else "val" if number % 2 else "test")
            save_photo(root / part / label / f"{label_number}-{number}.jpg", color, 100 * label_number + number)
    return root


@pytest.fixture(scope="session")
def plant_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A tiny world of plants, made once: sheets, and photos in the field."""
    from fieldmark_worlds.layouts import plantclef

    write = partial(plantclef.write, size="tiny", seed=2, executor=LocalExecutor(1))
    with made_once(tmp_path_factory, "plants", write) as made:
        yield made.root


@pytest.fixture(scope="session")
def bird_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A tiny world of birds, made once: focal recordings and soundscapes."""
    from fieldmark_worlds.layouts import birdclef

    write = partial(birdclef.write, size="tiny", seed=1, executor=LocalExecutor(1))
    with made_once(tmp_path_factory, "birds", write) as made:
        yield made.root


FUNGI_SEED = 0


@pytest.fixture(scope="session")
def made_fungi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeFolder]:
    """A tiny world of fungi with every layer, made once, and what was said of it."""
    from fieldmark_worlds.layouts import fungitastic

    write = partial(fungitastic.write, size="tiny", seed=FUNGI_SEED, executor=LocalExecutor(1))
    with made_once(tmp_path_factory, "fungi", write) as made:
        yield made


@pytest.fixture(scope="session")
def made_unlabeled_fungi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeFolder]:
    """The same world as the release of 2024 shows it, without labels of its test; its photos are smaller."""
    from fieldmark_worlds.layouts import fungitastic, fungitastic_photos

    def write(root: Path) -> object:
        # They are those of the other release; painting them that large a second time would only take time.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fungitastic_photos, "FULL_PX", 40)
            patch.setattr(fungitastic_photos, "SMALL_PX", 32)
            return fungitastic.write(root, size="tiny", seed=FUNGI_SEED, release="2024", executor=LocalExecutor(1))

    with made_once(tmp_path_factory, "unlabeled-fungi", write) as made:
        yield made


@pytest.fixture(scope="session")
def fungi_world(made_fungi: MadeFolder) -> Path:
    """A tiny world of fungi with every layer, made once."""
    return made_fungi.root


@pytest.fixture(scope="session")
def snake_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A world of snakes with a hundred photos, made once: eight species, two continents, boxes."""
    from fieldmark_worlds.layouts import snakeclef
    from fieldmark_worlds.snakes.snake_nature import SnakeSettings

    little = snakeclef.SnakeExtent(SnakeSettings(8, 4, continents=2, countries=4, zipf=0.3), (56, 24, 24))
    write = partial(snakeclef.write_extent, extent=little, size="little", seed=2, executor=LocalExecutor(1))
    with made_once(tmp_path_factory, "snakes", write) as made:
        yield made.root


@pytest.fixture(scope="session")
def land_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A land of two countries with 160 observations of 40 species, made once: rasters, patches, quadrats."""
    from fieldmark_worlds.layouts import geolifeclef

    little = geolifeclef.LandExtent(40, (80, 80), (4, 4), (0.5, 1.0), 8, 0.15)
    write = partial(geolifeclef.write_extent, extent=little, size="little", seed=4)
    with made_once(tmp_path_factory, "land", write) as made:
        yield made.root


@pytest.fixture(scope="session")
def color_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a linear model on small photos of three colors."""
    from fieldmark.fitting import fit

    root = tmp_path_factory.mktemp("colors")
    for label_number, (label, color) in enumerate(COLORS.items()):
        for number in range(12):
            part = ("train", "train", "val", "test")[number % 4]
            save_photo(
                root / "photos" / part / label / f"{label_number}-{number}.jpg", color, 50 * label_number + number
            )
    (root / "photos" / "taxa.csv").write_text(
        "label,genus,species,poisonous\nAlba alba,Alba,Alba alba,false\n"
        "Alba nigra,Alba,Alba nigra,true\nRubra vera,Rubra,Rubra vera,false\n"
    )
    settings = {"size": 32, "l2": 0.01}
    fit("folder", root / "photos", "linear", root / "run", settings=settings)
    return root / "run"


@pytest.fixture
def run_main(monkeypatch, capsys):
    """The command line in this process, which is quicker: its exit code and what it printed."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fieldmark", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return run


AddEntry = Callable[[str, str, str], None]


@pytest.fixture
def add_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AddEntry:
    """Adds to a registry as an installed package does: `add_entry("fieldmark.methods", "name", "module:Class")`."""

    def add(group: str, name: str, place: str) -> None:
        packages = tmp_path / "packages"
        about = packages / f"{name.replace('-', '_')}-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[{group}]\n{name} = {place}\n")
        monkeypatch.syspath_prepend(str(packages))

    return add


@pytest.fixture(scope="session")
def region_run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A model of a small region of three plants, with maps and surveyed sites."""
    import fieldmark
    from fieldmark_tests.suites.region_of_three import write_region

    root = tmp_path_factory.mktemp("region")
    data = write_region(root / "data")
    return fieldmark.fit("occurrences/presence", data, "spline-logistic", root / "run", settings={"least": "3"})
