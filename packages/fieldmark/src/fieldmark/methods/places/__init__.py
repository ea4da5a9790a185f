"""Which species live at a place: methods that read coordinates and covariates."""
