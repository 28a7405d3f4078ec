"""What a remedy is, whatever the framework, and the table of all: table.py. How each is done stands in torch/remedies, jax/remedies and tensorflow/remedies."""
