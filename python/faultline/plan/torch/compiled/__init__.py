"""Compiled programs: torch.compile, torch.jit.script, flex_attention."""
