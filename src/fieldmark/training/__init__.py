"""The fine-tuning engine: one loop for photos, spectrograms and patches."""
