"""Faultline finds the line behind a GPU memory fault."""
