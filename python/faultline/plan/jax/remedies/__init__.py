"""Changes to a JAX program that a dry run can try."""
