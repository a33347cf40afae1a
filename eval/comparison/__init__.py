"""Two runs set against each other: whether they may be, and what moved."""
