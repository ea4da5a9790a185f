"""Many answers and the person who checks them: batches, the order of looks, corrections, doubted labels, search."""
