"""A truth with unknown species, and a run, typed by hand."""

from __future__ import annotations

OPEN_TRUTH = {
    "id": list("123456"),
    "label": ["a", "a", "-1", "b", "c", "-1"],
    "unit": ["o1", "o1", "o2", "o3", "o4", "o5"],
    "date": ["2023-09-01", "2023-09-02", "2023-10-01", "2023-10-05", "2023-10-06", "2023-11-06"],
}


CLASSES = {"label": ["a", "b", "c"], "poisonous": ["1", "0", "0"]}


OPEN_RUN = "id,predicted,unknown_score\n1,a b,0.1\n2,b a,0.3\n3,-1 a,0.9\n4,b,0.2\n5,-1 c,0.7\n6,a b,0.5\n"
