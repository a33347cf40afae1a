"""Frozen third-party models, behind one small protocol for each job; the only part of `rag`, beside retrieval, that imports torch."""
