"""Semi-iNat 2021 and Semi-Aves 2020: few labeled photos, many unlabeled ones, some of other species."""
