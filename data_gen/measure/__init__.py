"""What simulated documents are like: ranks, relations, effect on answers, and a sheet to look through (paper 002, appendix A)."""
