"""The kingdom of the invented fungi: caps on stems, told apart by color, shape, surface and what is under the cap."""

from __future__ import annotations

from fieldmark_worlds.nature.kingdom import Categorical, Continuous, Kingdom

FUNGI = Kingdom(
    name="Fungi",
    suffixes={"phylum": "mycota", "class": "mycetes", "order": "ales", "family": "aceae"},
    habitats=(
        "deciduous woodland",
        "mixed woodland",
        "coniferous woodland",
        "grassland",
        "heath",
        "dunes",
        "park or garden",
        "bog",
    ),
    substrates=("soil", "dead wood", "living wood", "leaf litter", "dung", "moss"),
    # Color, proportions and surface tell species apart; the small characters at the end vary as much from one
    # individual to the next as from one species to another, and help only together.
    continuous=(
        Continuous("cap_hue", drift=1.3, within=0.7),
        Continuous("cap_saturation", mean=0.5),
        Continuous("cap_lightness", drift=1.2),
        Continuous("cap_convexity", drift=1.3),
        Continuous("cap_width", drift=0.9),
        Continuous("stem_length", drift=1.2),
        Continuous("stem_width", drift=1.3),
        Continuous("texture_density", drift=1.1),
        Continuous("texture_contrast", mean=0.6, drift=0.7),
        Continuous("underside_color", mean=-0.6),
        Continuous("cap_center_darkness", drift=0.8),
        Continuous("cap_margin_paleness", mean=-0.2, drift=0.8),
        Continuous("cap_umbo", mean=-0.2, drift=0.8),
        Continuous("cap_waviness", mean=-0.6, drift=0.6, within=1.2),
        Continuous("cap_gloss", drift=0.6, within=1.2),
        Continuous("underside_spacing", drift=0.6, within=1.2),
        Continuous("stem_taper", drift=0.6, within=1.2),
        Continuous("stem_tint", mean=-0.5, drift=0.7, within=1.2),
        Continuous("stem_lightness", mean=0.3, drift=0.6, within=1.2),
    ),
    categorical=(
        Categorical("underside", ("gills", "pores", "teeth", "ridges"), (0.6, 0.22, 0.08, 0.1)),
        Categorical("texture", ("smooth", "scaly", "spotted", "striate"), (0.4, 0.22, 0.16, 0.22)),
        Categorical("ring", ("absent", "present"), (0.68, 0.32)),
        Categorical("base", ("plain", "bulb", "volva"), (0.6, 0.25, 0.15)),
    ),
    peak_day=268.0,
    peak_spread_days=42.0,
)
