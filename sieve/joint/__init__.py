"""The paper's form of Sieve: the whole set, or each pair of its documents, is one sequence."""
