"""One file for each place that runs are reported to (`rag.tracking.Tracker`), and for each library that reports."""
