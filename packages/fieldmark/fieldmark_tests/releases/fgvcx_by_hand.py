"""A release of FGVCx Fungi 2018 by hand: five categories, every quirk, photos of a few pixels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fieldmark_tests.fixtures import save_photo

# Two of them bear the same name; one name ends in a space, and so does its folder.
CATEGORIES = {
    0: ("10021", "Inocybe rimosa"),
    1: ("10022", "Inocybe rimosa"),
    2: ("15809", "Lactarius azonites f. azonites "),
    3: ("17002", "Hygrocybe conica var. conica"),
    4: ("20417", "Xylodon flaviporus (Berk. & M.A. Curtis) Riebesehl & E. Langer"),
}
COLORS = [(220, 210, 200), (40, 40, 60), (200, 60, 50), (60, 160, 60), (60, 80, 200)]
PHOTOS = {"train": 4, "val": 2, "test": 2}
LICENSE = {"id": 1, "name": "CC BY-NC 4.0", "url": "https://creativecommons.org/licenses/by-nc/4.0/"}
FIRST_ID, STEP, SIZE = 8192, 37, (48, 40)


def folder_of(category: int) -> str:
    taxon, name = CATEGORIES[category]
    genus, _, rest = name.partition(" ")
    return f"{taxon}_{genus}_{rest}"


def release_files() -> tuple[dict[str, dict[str, Any]], dict[str, int]]:
    """The three JSON files, and the category of each photo."""
    files: dict[str, dict[str, Any]] = {}
    label_of: dict[str, int] = {}
    number = FIRST_ID
    for part, photos in PHOTOS.items():
        images, annotations = [], []
        for category in CATEGORIES:
            for photo in range(photos):
                number += STEP
                image: dict[str, Any] = {"license": 1, "id": number}
                if part == "test":
                    image["file_name"] = f"test/{number:08x}-31ea-11e8-9415-989096c07a70.JPG"
                else:
                    image["file_name"] = f"images/{folder_of(category)}/{part}-{photo}.JPG"
                    image |= {"width": SIZE[0], "height": SIZE[1], "rights_holder": f"Holder {photo}"}
                    annotations.append({"id": number + 1, "image_id": number, "category_id": category})
                label_of[image["file_name"]] = category
                images.append(image)
        files[part] = {"info": {"year": 2018}, "images": images, "licenses": [LICENSE]}
        if part != "test":
            categories = [{"id": key, "name": name, "supercategory": "Fungi"} for key, (_, name) in CATEGORIES.items()]
            files[part] |= {"categories": categories, "annotations": annotations}
    return files, label_of


def write_fgvcx(root: Path, *, solution: bool = True, photos: bool = True) -> Path:
    """Writes the release."""
    files, label_of = release_files()
    root.mkdir(parents=True)
    for part, content in files.items():
        (root / f"{part}.json").write_text(json.dumps(content))
    if photos:
        for seed, (file, category) in enumerate(label_of.items()):
            save_photo(root / file, COLORS[category], seed, SIZE)
    if solution:
        lines = [
            f"{image['id']},{label_of[image['file_name']]},{'Public' if row % 3 == 0 else 'Private'}"
            for row, image in enumerate(files["test"]["images"])
        ]
        (root / "solution.csv").write_text("\n".join(["id,expected,usage", *lines, ""]))
    return root


def edit_json(path: Path, change: Any) -> None:
    """Changes a JSON file in place."""
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
