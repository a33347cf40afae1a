"""The composed system and its faces: what an application calls."""
