"""From which size on a run is submitted in parts, by pages and by the client alike."""

IN_PARTS_FROM = 8 << 20  # smaller files are sent again as quickly as they are resumed
