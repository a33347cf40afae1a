"""Evaluation: predictions in, the paper's metrics with n and intervals out."""
