"""Networks that others have trained and published: nothing is learned, they only answer."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import timm
import torch
from numpy.typing import NDArray

from fieldmark.errors import InputError, MisuseError
from fieldmark.methods.base import Arrays, Fitted, Method, Need
from fieldmark.methods.photo_networks import PhotoReading, on_device
from fieldmark.runs.label_scores import Scale
from fieldmark.tables.labels import Labels
from fieldmark.training.boxes import Crops
from fieldmark.training.networks import normalization
from fieldmark.training.photos import PhotoTransform
from fieldmark.views.parts import Part, View

# Checkpoints of the organizers of FungiTastic that are known by name; any other of theirs is named owner/name.
ORGANIZERS = {
    "fungitastic-mini-beit_base-224": "BVRA/beit_base_patch16_224.in1k_ft_fungitastic-mini_224",
}


ORGANIZERS_LICENSE, UNKNOWN = "cc-by-nc-4.0", "see the page of the checkpoint"
ORDER = "label_order"


@dataclass(frozen=True)
class Published(Method):
    """Answers with a checkpoint in timm's format (config.json with model.safetensors or pytorch_model.bin).

    Which output means which label: where config.json lists `label_names`, they are matched with the labels of the
    benchmark or the names of its taxa; where it does not, output i is label i, as in the code of the organizers.

    Args:
        checkpoint: A name in `ORGANIZERS`, owner/name on the hub, or a folder.
        size: The side of the photo in pixels; 0 takes what the checkpoint was trained for.
        eval_crop: "squash" shows the whole photo made square, as the organizers do; "center" its middle.
        batch: How many photos are answered at once.
        config: The config.json of the checkpoint, as text; a fitted model keeps it, and nobody need give it.
    """

    checkpoint: str
    size: int = 0
    eval_crop: Literal["squash", "center"] = "squash"
    batch: int = 64
    config: str = ""

    scale: ClassVar[Scale] = "logit"
    exportable: ClassVar[bool] = True

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("pixels"),)

    @property
    def learns_from_val(self) -> bool:
        return False

    @property
    def network_name(self) -> str:
        return self.checkpoint

    @property
    def external_data(self) -> tuple[str, ...]:
        return (f"a network that others have trained: {self.checkpoint}",)

    @property
    def license(self) -> str:
        """The terms of the checkpoint, as far as they are known."""
        theirs = ORGANIZERS.get(self.checkpoint, self.checkpoint).startswith("BVRA/")
        usual = ORGANIZERS_LICENSE if theirs else UNKNOWN
        return str(json.loads(self.config).get("license", usual)) if self.config else usual

    def fit(self, view: View) -> Fitted:
        config, network = _open(self.checkpoint, self.size)
        order = output_order(config, view.labels, _names(view), self.checkpoint)
        fixed = replace(self, size=self.size or network.default_cfg["input_size"][1], config=json.dumps(config))
        arrays = {name: tensor.cpu().numpy() for name, tensor in network.state_dict().items()}
        remark = f"Predictions come from {self.checkpoint} (license: {fixed.license})."
        return Fitted(fixed, arrays | {ORDER: order}, (remark,))

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        network = self.load(arrays)
        return self.reading.answer(network, self.transform(network), part)[:, arrays[ORDER]]

    def load(self, arrays: Arrays) -> Any:
        """The network, ready to answer; its outputs are in the order of the checkpoint."""
        config = json.loads(self.config)
        pooled = {"global_pool": config["global_pool"]} if config.get("global_pool") else {}
        options = {**pooled, **config.get("model_args", {}), **_size_of(config["architecture"], self.size)}
        network = timm.create_model(config["architecture"], num_classes=config["num_classes"], **options)
        weights = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items() if name != ORDER}
        network.load_state_dict(weights)
        return on_device(network)

    def transform(self, network: Any) -> PhotoTransform:
        """What happens to a photo on its way into the network."""
        pretrained = json.loads(self.config).get("pretrained_cfg", {})
        mean, std = normalization(network)
        return PhotoTransform(self.size, tuple(pretrained.get("mean", mean)), tuple(pretrained.get("std", std)))

    @property
    def reading(self) -> PhotoReading:
        """How photos are read."""
        return PhotoReading(self.size, "none", Crops(self.eval_crop), self.batch, 0)


def output_order(config: dict[str, Any], labels: Labels, names: dict[str, str], checkpoint: str) -> NDArray[np.int64]:
    """For every label of the benchmark the output of the checkpoint that means it.

    Raises:
        InputError: When the checkpoint does not answer every label.
    """
    outputs = list(config.get("label_names") or ())
    if outputs:
        number = {name: place for place, name in enumerate(outputs)}
        output_of = [number.get(label, number.get(names.get(label, ""), -1)) for label in labels.names]
        if -1 in output_of:
            missing = labels.names[output_of.index(-1)]
            raise InputError(checkpoint, found=f"no output for {missing}", expected="one for every label")
        if len(set(output_of)) < len(output_of):
            raise InputError(
                checkpoint,
                found="two labels of the benchmark with one name",
                expected="an output for each",
                hint="Names do not tell them apart: list the labels themselves as label_names in config.json.",
            )
        return np.array(output_of, dtype=np.int64)
    if config["num_classes"] != len(labels):
        raise InputError(
            checkpoint,
            found=f"{config['num_classes']} outputs",
            expected=f"{len(labels)}, one for every label of the benchmark",
            hint="Was it trained on another subset or edition?",
        )
    return np.array([int(label) if label.isdigit() else place for place, label in enumerate(labels.names)])


def _names(view: View) -> dict[str, str]:
    """The scientific name of each label, as far as the taxonomy knows it."""
    taxonomy = view.taxonomy
    return {label: taxonomy.taxon(code, "species") or "" for code, label in enumerate(view.labels.names)}


def _open(checkpoint: str, size: int) -> tuple[dict[str, Any], Any]:
    """The configuration and the network of a checkpoint, for photos of another size where one is given."""
    name = ORGANIZERS.get(checkpoint, checkpoint)
    folder = Path(name)
    try:
        if not folder.is_dir():
            from huggingface_hub import snapshot_download

            folder = Path(snapshot_download(name, allow_patterns=["*.json", "*.safetensors", "*.bin"]))
    except Exception as error:  # the hub fails in many ways, all of which mean the same to the caller
        raise MisuseError(
            f"The checkpoint {name} could not be downloaded from the hub ({type(error).__name__}). Download it where "
            "there is a network, and pass --set checkpoint=FOLDER."
        ) from error
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        options = _size_of(config["architecture"], size) if size else {}
        network = timm.create_model(f"local-dir:{folder}", pretrained=True, **options)
        config["num_classes"] = network.num_classes
        return config, network
    except (OSError, KeyError, RuntimeError, json.JSONDecodeError) as error:
        raise InputError(
            folder,
            found=f"something else ({error})",
            expected="a checkpoint in timm's format (config.json and weights)",
        ) from error


def _size_of(architecture: str, size: int) -> dict[str, int]:
    """The setting for networks that are built for one size of photo."""
    return {"img_size": size} if timm.get_pretrained_cfg_value(architecture, "fixed_input_size") else {}
