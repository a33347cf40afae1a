"""Retrievers: from a question to ranked documents."""
