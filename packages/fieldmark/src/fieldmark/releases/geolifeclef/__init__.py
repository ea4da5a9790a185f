"""GeoLifeCLEF as it was released in 2020, and as it was packed again in 2021 and 2022."""
