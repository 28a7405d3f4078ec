"""What-ifs against reality: one program was recorded under many settings, so a replay of one recording must foretell the others."""

import json
import subprocess

import pytest

from common import FAULTLINE, RECORDINGS


# (recorded under, asked for, recorded for real)
PAIRS = [
    ("churn_default", ["expandable_segments=True"], "churn_expandable"),
    ("churn_default", ["max_split_size_mb=64"], "churn_max_split_64"),
    ("churn_default", ["max_split_size_mb=21", "max_non_split_rounding_mb=64"], "churn_max_split_21_rounding"),
    ("churn_default", ["roundup_power2_divisions=4"], "churn_roundup_4"),
    ("churn_default", ["roundup_power2_divisions=[1:8,64:4,256:2,>:1]"], "churn_roundup_list"),
    ("churn_default", ["large_segment_size_mb=40"], "churn_large_segment_40"),
    ("churn_default", ["expandable_segments=True", "roundup_power2_divisions=8"], "churn_expandable_roundup"),
    ("churn_default", ["expandable_segments=True", "large_segment_size_mb=64"], "churn_expandable_large_segment"),
    ("churn_default", ["expandable_segments=True", "max_split_size_mb=64"], "churn_expandable_max_split"),
    ("churn_expandable", ["expandable_segments=False"], "churn_default"),
    ("churn_roundup_4", ["roundup_power2_divisions=0"], "churn_default"),
    ("churn_max_split_64", ["max_split_size_mb=unlimited"], "churn_default"),
    ("gpt", ["expandable_segments=True"], "gpt_expandable"),
    ("gpt_expandable", ["expandable_segments=False"], "gpt"),
]


def run(*arguments):
    done = subprocess.run([FAULTLINE, *arguments, "--format", "json"], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("recorded,settings,real", PAIRS, ids=[f"{r}->{t}" for r, _, t in PAIRS])
def test_a_replay_foretells_the_recorded_run(recorded, settings, real):
    options = [option for setting in settings for option in ("--set", setting)]
    foretold = run("replay", str(RECORDINGS / f"{recorded}.pickle.xz"), *options)["replays"][0]
    truth = run("explain", str(RECORDINGS / f"{real}.pickle.xz"))["devices"][0]["peak"]
    assert foretold["peak_reserved"] == truth["reserved"]
    # Equal as well because the model's driver puts segments in the order of the real one's addresses, which decides between equally large free blocks.
    assert foretold["peak_allocated"] == truth["allocated"]
