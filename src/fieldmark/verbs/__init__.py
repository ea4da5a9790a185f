"""What the library offers besides fitting: things by name, scores of runs, comparisons, episodes, the demo."""
