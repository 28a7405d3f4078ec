"""What every dry run has, whatever the framework: the device and the planned GPU, the environment, notes, and what cannot be planned."""
