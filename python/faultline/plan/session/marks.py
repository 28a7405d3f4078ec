"""The names of operations that mark a place of a dry run's trace, as src/trace/marks.h has them."""

STOP = "dry run stopped"  # what is let go behind it the stop let go
CALL = "results of one call"  # of all that is allocated until it ends
PHASE = "phase "  # until the next: "phase training"
TURN = "turn of optimizer "  # a step of it, by its number
ROUND = "round of loop "  # one begins, by the loop's number
