"""The invented fungi, and photos of them."""
