"""Labelled passages of one question, edited and put together to sets by named variant."""
