"""Hydra's room: one root yaml for each job, one folder for each choice, and `job`, which runs a function under them."""
