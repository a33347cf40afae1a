"""What all tests share."""

import os

# Tiny models gain nothing from threads, and lose a factor of ten where the cores are busy. Read by torch when it is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
