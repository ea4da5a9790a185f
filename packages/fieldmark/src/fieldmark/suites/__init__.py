"""Many fits as one study: ablations, episodes, foreground, tables of papers, and the demo."""
