"""The Sieve as a reader: each document is read alone, and the answers that they give to the question are compared."""
