"""What leaves Fieldmark in the formats of others, one module per format."""
