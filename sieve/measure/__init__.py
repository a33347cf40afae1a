"""How Sieves are measured: scores on disk, intervals, what is flagged and why, pictures."""
