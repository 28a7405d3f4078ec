"""What the program's own source tells: what values decide, where loops end, which numbers can be others, and how a change of it is written. Nothing here knows a framework."""
