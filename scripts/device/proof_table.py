#!/usr/bin/env python3
"""Proof of the allocator model over recordings, as a table: python3 scripts/device/proof_table.py RECORDING... > docs/measurements/allocator-model.md"""

import json
import os
import pathlib
import subprocess
import sys

FAULTLINE = os.environ.get("FAULTLINE", "build/faultline")


def main():
    rows, totals = [], [0, 0, 0, 0]
    for path in sys.argv[1:]:
        done = subprocess.run([FAULTLINE, "explain", path, "--format", "json"], capture_output=True, text=True)
        report = json.loads(done.stdout)
        found = ", ".join(f["rule"] + (f" ({f['cause']})" if f.get("cause") else "") for f in report["findings"]) or "–"
        for device in report["devices"]:
            model = device["model"]
            numbers = [model["exact"], model["placements"], model["segment_events_exact"], model["segment_events"]]
            totals = [a + b for a, b in zip(totals, numbers)]
            name = pathlib.Path(path).name.split(".pickle")[0]
            rows.append(
                f"| {name} | {report['input']['events']} | {numbers[0]} / {numbers[1]} | {numbers[2]} / {numbers[3]} | {device['peak']['allocated']} / {device['peak']['reserved']} | {found} |"
            )
    print(
        "| recording | entries | placements exact | segment events exact | peak allocated / reserved | findings |\n|---|---|---|---|---|---|"
    )
    print("\n".join(rows))
    print(f"| **all** | | **{totals[0]} / {totals[1]}** | **{totals[2]} / {totals[3]}** | | |")


if __name__ == "__main__":
    main()
