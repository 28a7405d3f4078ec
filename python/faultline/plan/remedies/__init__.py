"""What a remedy is, whatever the framework. Those of PyTorch stand in torch/remedies, those of JAX in jax/remedies."""
