"""Which values are known in a dry run, and what is known of the others: how large, how many, between what."""
