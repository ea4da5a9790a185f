"""What a model records of methods and backbones that were given as objects, and what is needed to load it again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fieldmark.errors import InputError
from fieldmark.features.given_backbones import GivenBackbone
from fieldmark.methods.base import Method
from fieldmark.methods.estimators import Estimator, is_estimator

if TYPE_CHECKING:
    from fieldmark.models.model import Model


def own_record(model: Model, folder: Path) -> dict[str, Any]:
    """What `model.json` says of own objects; empty for a model that has none. An estimator is written beside it."""
    record: dict[str, Any] = {}
    method = model.fitted.method
    if isinstance(method, Estimator):
        file = method.save(folder)
        how = "load_model(path, trust_code=True), or " if file else ""
        record["method"] = {"kind": "estimator", "class": method.options["estimator"], "file": file}
        record["to_load"] = f"{how}load_model(path, method=FITTED_ESTIMATOR)"
    elif model.own:
        kind = type(method)
        record["method"] = {"kind": "method", "class": f"{kind.__module__}.{kind.__qualname__}"}
        record["to_load"] = f"load_model(path, method={kind.__qualname__})"
    if (own := model.own_backbone) is not None:
        record["backbone"] = {"name": own.name, "class": own.made_by, "digest": own.fingerprint}
        needed = f"load_model(path, backbone={own.made_by.rpartition('.')[2]})"
        record["to_load"] = f"{record['to_load']}, with backbone=OBJECT" if "to_load" in record else needed
    return record


def own_method(own: Mapping[str, Any], data: Mapping[str, Any], given: Any, folder: Path) -> Method:
    """The method of a model that was fitted with an object.

    Raises:
        InputError: When the object is needed and was not given, or is another one.
    """
    record = own["method"]
    if record["kind"] == "estimator":
        if given is None and record["file"]:
            return Estimator.load(folder)
        if is_estimator(given):
            return Estimator(given, given)
    elif isinstance(given, type) and issubclass(given, Method):
        made: Method = given(**data["options"])
        return made
    elif isinstance(given, Method):
        again: Method = type(given)(**data["options"])
        return again
    raise InputError(
        folder,
        found=f"a model of {record['class']}, which is not part of Fieldmark",
        expected="that object",
        hint=f"Load it with fieldmark.{own['to_load']}.",
    )


def refuse_other_backbone(own: Mapping[str, Any], given: GivenBackbone | None, folder: Path) -> None:
    """Refuses a model without the backbone that its features came from, or with another one.

    Raises:
        InputError: Says which it is.
    """
    record = own.get("backbone")
    if record is None:
        return
    if given is None:
        hint = f"Load it with fieldmark.{own['to_load']}."
        found = f"features of {record['name']} ({record['class']}), a backbone that was given as an object"
        raise InputError(folder, found=found, expected="that object", hint=hint)
    same = record["digest"] == given.fingerprint if record["digest"] else record["class"] == given.made_by
    if not same:
        raise InputError(
            folder,
            found=f"a model fitted on features of {record['name']} (digest {record['digest']})",
            expected=f"the same weights and preprocessing, not those given ({given.made_by}, {given.fingerprint})",
        )


__all__ = ["own_method", "own_record", "refuse_other_backbone"]
