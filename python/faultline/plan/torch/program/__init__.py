"""What the program is doing: modules, steps, loops, phases, names, and who holds what."""
