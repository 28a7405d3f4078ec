"""A JAX program keeps a table per epoch until the device is full. Recorded with --buffers, so that each table is seen and not only JAX's pool."""
import jax.numpy as jnp

tables = []
for epoch in range(1000):
    table = jnp.zeros((4, 1 << 30), dtype=jnp.float32)
    tables.append(table.block_until_ready())
print("tables", len(tables))
