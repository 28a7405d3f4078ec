"""Advice for types that do not match, from PyTorch's words alone: autocast casts float32 and the half types, and leaves float64 as it is."""

import json
import subprocess

import pytest

SAME = "RuntimeError: mat1 and mat2 must have the same dtype, but got {} and {}"
EXPECTED = "RuntimeError: expected scalar type {} but found {}"
INPUT = "RuntimeError: Input type (torch.cuda.{}Tensor) and weight type (torch.cuda.{}Tensor) should be the same"
ROWS = [
    (SAME, "Float", "Half", "autocast"),
    (SAME, "BFloat16", "Float", "autocast"),
    (EXPECTED, "Half", "Float", "autocast"),
    (INPUT, "Half", "Float", "autocast"),
    (SAME, "Float", "Double", "float64"),
    (SAME, "Double", "Half", "float64"),
    (EXPECTED, "Float", "Double", "float64"),
    (EXPECTED, "Double", "Float", "float64"),
    (INPUT, "Double", "Float", "float64"),
]


@pytest.mark.parametrize(("words", "one", "other", "said"), ROWS, ids=lambda value: str(value)[:30])
def test_autocast_is_advised_only_where_it_casts_both(binary, tmp_path, words, one, other, said):
    (tmp_path / "error.txt").write_text(words.format(one, other) + "\n")
    done = subprocess.run(
        [binary, "explain", str(tmp_path / "error.txt"), "--format", "json"], capture_output=True, text=True
    )
    [finding] = [one for one in json.loads(done.stdout)["findings"] if one["rule"] == "tensor/dtype-mismatch"]
    tries = " ".join(attempt["what"] for attempt in finding["tries"])
    assert ("autocast left out" in tries) == (said == "autocast"), tries
    assert ("autocast leaves float64" in tries) == (said == "float64"), tries
