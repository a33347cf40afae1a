"""The ground floor: records, text, render, citations and checkpoints that every other package speaks."""
