"""The releases that can be fetched, one module per release: declarations without logic.

An address or a checksum is only written down if a public source states it; where none does, the comment says so.
"""

from __future__ import annotations

from fieldmark.foundation.registry import Registry
from fieldmark.getting.manifest import Manifest

MANIFESTS: Registry[Manifest] = Registry(
    "release to get",
    {
        "fungitastic": (
            "fieldmark.getting.releases.fungitastic:FUNGITASTIC",
            "FungiTastic: 350,000 observations of fungi with photos, metadata, masks, climate and satellite images",
        ),
        "fgvcx-fungi-2018": (
            "fieldmark.getting.releases.fgvcx_fungi_2018:FGVCX_FUNGI_2018",
            "FGVCx Fungi 2018: 1,394 species of Danish fungi, 100,000 photos",
        ),
        "semi-inat-2021": (
            "fieldmark.getting.releases.semi_inat_2021:SEMI_INAT_2021",
            "Semi-iNat 2021: 810 species of three kingdoms, 9,721 labeled and 313,248 unlabeled photos",
        ),
        "semi-aves-2020": (
            "fieldmark.getting.releases.semi_aves_2020:SEMI_AVES_2020",
            "Semi-Aves 2020: 200 species of birds, 3,959 labeled and 148,848 unlabeled photos",
        ),
    },
)
