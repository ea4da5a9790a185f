"""The releases that can be fetched, one module per release: declarations without logic.

An address or a checksum is only written down if a public source states it; where none does, the comment says so.
License and homepage stand in the record of the release.
"""

from __future__ import annotations

from dataclasses import replace

from fieldmark.releases.download.manifest import Manifest
from fieldmark.releases.record import OfRecords, ReleaseRecord


class Manifests(OfRecords[Manifest]):
    """The manifests by name, each under the terms that its record states."""

    def of(self, record: ReleaseRecord) -> Manifest:
        return replace(super().of(record), license=record.conditions, homepage=record.homepage or "")


MANIFESTS = Manifests("release to get", "download")
