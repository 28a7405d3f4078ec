#!/usr/bin/env python3
"""Makes the pictures of docs/pictures: the page of a recording as Chromium shows it.

    scripts/pictures.py [--faultline build/faultline]

Wants Debian's chromium and playwright, as the tests do (.venv/bin/python has it).
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
RECORDING = ROOT / "tests" / "fixtures" / "torch" / "gpt_oom.pickle.xz"
# What is done before the picture is taken.
SHOWN = {
    "view": ("light", "viewer.jump(0), viewer.chart.whole()"),
    "view-zoomed": (
        "dark",
        "viewer.chart.setView(2040, 2168, 1.3 * 2 ** 30, 4.9 * 2 ** 30), viewer.select(viewer.model.largestAt(2153))",
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--faultline", default=ROOT / "build" / "faultline")
    args = parser.parse_args()
    pictures = ROOT / "docs" / "pictures"
    pictures.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page = Path(folder) / "page.html"
        subprocess.run([args.faultline, "view", RECORDING, "-o", page], check=True)
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for name, (scheme, act) in SHOWN.items():
            opened = browser.new_page(viewport={"width": 1280, "height": 860}, color_scheme=scheme)
            opened.goto(f"file://{page}")
            opened.wait_for_function("document.documentElement.dataset.ready")
            opened.evaluate(f"((viewer) => ({act}, viewer.redraw(true), window.scrollTo(0, 0)))(window.faultline)")
            opened.wait_for_timeout(300)
            opened.screenshot(path=pictures / f"{name}.png")
        browser.close()


main()
