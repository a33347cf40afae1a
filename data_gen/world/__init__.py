"""The invented world of the demo data."""
