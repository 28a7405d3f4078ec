"""The rules whose findings are treated otherwise than others on this side; `make check` holds that they are registered, and that no other file names one (src/sources/rule_names.h)."""

OUT_OF_MEMORY = "memory/out-of-memory"
SHOWS_HOLDERS = {OUT_OF_MEMORY, "memory/leak", "memory/fragmentation"}  # who holds memory by name is worth telling
