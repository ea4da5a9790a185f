"""Naive programs beside `fieldmark.score`, through files alone.

Every benchmark is scored twice: by `fieldmark.score` from files on disk, and by a program written from the papers'
definitions in plain Python floats and loops. The two must agree to 1e-12 for every metric, over hundreds of small
random cases. Nothing here imports the package except `fieldmark.score`, the names of the benchmarks and the class of
its refusals, so that the inside may change while what is promised stays.

What is in which module:

- `tables`: a table as it stands in a file, and a case: run, truth, classes and media of one benchmark.
- `classification`, `retrieval`, `segmentation`: the definitions, each from the document its docstring names.
- `programs`, `edition_programs`, `presence`: for each benchmark, from the tables of a case to every metric.
- `leaving_out`: the same with each unit left out in turn.
- `photos`, `lists`, `pictures`, `editions`: random cases with photos, with scored lists, with masks, of later editions.
- `stored`: random predictions in Parquet, beside the run file that says the same.
- `comparing`: scores a case from files and lists every number that differs from the program's.
- `test_values`, `test_editions`, `test_presence`, `test_masks`, `test_stored_predictions`: the random cases;
  `python -m studies.evidence oracles` draws a hundred of every benchmark.
- `test_silent_faults`: what once changed a number without a word.
- `test_spelling`, `test_names_and_order`, `test_rows`: the same case written otherwise, and with a row too many or
  too few.
- `test_exact_scores`, `test_strict_tables`, `test_strict_masks`, `test_strict_predictions`, `test_strict_runs`,
  `test_conventions`, `test_refusals`: promises that are not kept yet, each marked as strictly expected to fail.

Scores of the random cases are fractions that single precision holds exactly, where `test_exact_scores` asks for more.

A failing case names its benchmark, its seed and the metrics that differ; `draw(benchmark, seed)` makes it again.
"""
