"""What writes the generated pages of the documentation: commands, settings, benchmarks, and an index of all names."""
