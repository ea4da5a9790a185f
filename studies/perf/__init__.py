"""Speed and memory, as ratios to a peer or to a limit in the same run; results go to `studies/results/perf-*.json`."""
