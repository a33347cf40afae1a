"""The Sieve as an extractive reader: a small encoder finds each document's answer, and answers that contradict one another are judged."""
