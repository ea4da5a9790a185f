"""Pretrained models: a photo model made of what ImageNet has taught a packaged network."""
