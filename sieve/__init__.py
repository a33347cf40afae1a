"""Stage one: a small encoder that reads the question and its documents and scores P(the set is distracted)."""
