"""What other packages import by the names of before."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from fieldmark.moved import MODULES, PACKAGES
from fieldmark.releases import DATASETS


@pytest.mark.parametrize("name", [*PACKAGES, *MODULES])
def test_a_module_is_found_by_the_name_it_had_before_with_a_warning(name, monkeypatch):
    new = import_module({**PACKAGES, **MODULES}[name])
    for loaded in [one for one in sys.modules if one in MODULES or one in PACKAGES]:
        monkeypatch.delitem(sys.modules, loaded)
    with pytest.warns(DeprecationWarning, match=f"{name} is {new.__name__} now"):
        old = import_module(name)
    public = [key for key in vars(new) if not key.startswith("_")]
    assert public and all(vars(old)[key] is vars(new)[key] for key in public)


def test_names_that_a_room_itself_had_are_found():
    from fieldmark import tables, views

    with pytest.warns(DeprecationWarning, match=r"fieldmark\.tables\.schema\.ITEMS"):
        assert tables.ITEMS.key == "item_id"
    with pytest.warns(DeprecationWarning, match=r"fieldmark\.views\.parts\.Part"):
        assert views.Part.__name__ == "Part"
    with pytest.raises(AttributeError, match="nothing"):
        _ = tables.nothing


def test_another_package_adds_a_dataset(add_entry):
    add_entry("fieldmark.datasets", "mine", "fieldmark.releases.folder:open_folder")
    assert "mine" in DATASETS and DATASETS.is_added("mine")
