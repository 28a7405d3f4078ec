"""torch.cuda as the program would find it on the planned GPU."""
