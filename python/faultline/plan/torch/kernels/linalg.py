"""Dense linear algebra: what cuSOLVER's drivers take for one matrix; small beside the matrices, which are counted exactly."""

from __future__ import annotations

from .steps import Call, beside_result, kernel, nbytes


@kernel(
    "linalg_cholesky_ex",
    "linalg_inv_ex",
    "_linalg_svd",
    "linalg_lu_factor_ex",
    "_linalg_eigh",
    "linalg_qr",
    "_linalg_solve_ex",
)
def factorization(call: Call):
    """One working copy of the matrix."""
    x = call.args[0]
    if x.numel() == 0:
        return None
    return beside_result(nbytes(x))
