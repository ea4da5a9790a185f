"""Files, here or at an address: written whole or not at all, cached, and archives that are not trusted."""
