"""What the library offers beside fitting: things by name, scores of runs, comparisons, episodes, the demo."""
