"""The invented birds, and recordings of them."""
