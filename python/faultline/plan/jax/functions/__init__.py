"""Compiled functions: how much work one is, the arrays it closes over, and what it takes beside its results."""
