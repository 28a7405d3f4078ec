"""Many trajectories of a differential equation at once, saved at each step, then a spectrum of each."""

import jax
import jax.numpy as jnp


def lorenz(state):
    x, y, z = state
    return jnp.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])


def rk4(state, dt):
    k1 = lorenz(state)
    k2 = lorenz(state + dt / 2 * k1)
    k3 = lorenz(state + dt / 2 * k2)
    k4 = lorenz(state + dt * k3)
    return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@jax.jit
def simulate(starts):
    def path(start):
        return jax.lax.scan(lambda s, _: (rk4(s, 0.01),) * 2, start, None, length=1000)[1]

    return jax.vmap(path)(starts)


starts = jax.random.normal(jax.random.key(0), (65536, 3))
paths = simulate(starts)
spectrum = jnp.abs(jnp.fft.rfft(paths[:, :, 0], axis=1))
print(paths.shape, float(spectrum.mean()))
