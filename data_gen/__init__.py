"""From question-answer pairs, or from nothing, to labelled Examples: sources, splits and the job that writes them to disk."""
