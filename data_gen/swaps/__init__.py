"""One entity for another in a text, with nothing of the old one left."""
