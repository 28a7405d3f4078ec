#!/usr/bin/env python3
"""Prints what Faultline finds in a golden case, in the words of expect.json, to be compared with what is true before it is kept.

Called with folders of cases:

    python3 scripts/golden/show.py tests/golden/memory-leak/loss-list [...]
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "python"))

import test_golden  # noqa: E402


def shown(finding):
    entry = {key: value for key, value in test_golden.identity(finding).items() if value}
    entry["evidence"] = finding["evidence"]
    entry["tries"] = sum(attempt["confirmed"] is True for attempt in finding["tries"])
    return entry


for folder in sys.argv[1:]:
    case = Path(folder).resolve()
    report, status = test_golden.explain(case)
    print(f"{case.name}: status {status}")
    print(
        json.dumps(
            {
                "findings": [shown(finding) for finding in report["findings"]],
                "not_judged": [entry["rule"] for entry in report["not_judged"]],
            },
            indent=1,
        )
    )
    for finding in report["findings"]:
        print("  " + test_golden.words(finding))
