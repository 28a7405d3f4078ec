"""What `run` and `plan` share: neither leans on the other."""
