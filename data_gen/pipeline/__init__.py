"""From questions and their retrieved documents to labelled sets (paper 002, sections 3.1 and 4.1)."""
