"""Show what an evaluation found: in the terminal, as report.md and report.json, and as one page that opens offline."""

from eval.report.content import write_report
from eval.report.tables import render_table
from eval.report.words import METRIC_TITLES, REASON_TITLES, example_lines

__all__ = ["METRIC_TITLES", "REASON_TITLES", "example_lines", "render_table", "write_report"]
