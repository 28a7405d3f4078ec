"""How far the user asked a program to be run is a whole answer (status 0), in each framework's own words; where the dry run chose the end it is a part (4)."""

import json
import os
import subprocess

import pytest
from dry import interpreter_with

from common import ROOT

PROGRAMS = {
    "torch": """
        import torch
        w = torch.nn.Linear(64, 64).cuda()
        optimizer = torch.optim.SGD(w.parameters())
        while True:
            w(torch.ones(8, 64, device="cuda")).sum().backward()
            optimizer.step()
        """,
    "jax": """
        import jax, jax.numpy as jnp
        train_step = jax.jit(lambda x: jnp.tanh(x @ x))
        x = jnp.ones((512, 512))
        while True:
            x = train_step(x)
        """,
    "tensorflow": """
        import tensorflow as tf
        train_step = tf.function(lambda x: tf.tanh(x @ x))
        x = tf.ones([512, 512])
        while True:
            x = train_step(x)
        """,
}


@pytest.fixture(params=PROGRAMS)
def plan(request, binary, tmp_path):
    python = interpreter_with(request.param)
    if python is None:
        pytest.skip(f"{request.param} is not installed")
    (tmp_path / "program.py").write_text("\n".join(line[8:] for line in PROGRAMS[request.param].split("\n")))

    def run(*options):
        command = [binary, "plan", "--gpu", "H100", *options, "--format", "json", "--", python, "program.py"]
        environment = {"FAULTLINE_HOME": str(ROOT), **os.environ}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)["plan"]

    return run


def test_steps_that_were_asked_for_are_judged_whole(plan):
    status, told = plan("--steps", "3", "--seconds", "0")
    assert (status, told["verdict"]) == (0, "fits"), told["stopped"]
    assert told["stop_asked"] and told["stopped_by"] == "steps"


def test_steps_that_the_dry_run_chose_are_a_part(plan):
    status, told = plan("--seconds", "0")
    assert (status, told["verdict"]) == (4, "fits"), told["stopped"]
    assert not told["stop_asked"] and told["stopped_by"] == "steps"
