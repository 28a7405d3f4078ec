#!/usr/bin/env python3
"""Makes a C++ header of the page's style, script and frame, with the hashes by which the page allows that style and that script and no other.

    embed_page.py FOLDER HEADER
"""

import base64
import hashlib
import sys
from pathlib import Path

SCRIPTS = ["decode.js", "model.js", "chart.js", "lanes.js", "segments.js", "details.js", "held.js", "flame.js", "main.js"]
DELIMITER = "FAULTLINE_PAGE"


def constant(name, text):
    if f"){DELIMITER}" in text:
        sys.exit(f"{name} holds the delimiter {DELIMITER}")
    return f'inline constexpr std::string_view {name} = R"{DELIMITER}({text}){DELIMITER}";\n'


def sha256(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def main():
    folder, header = Path(sys.argv[1]), Path(sys.argv[2])
    style = (folder / "style.css").read_text(encoding="utf-8")
    script = '"use strict";\n' + "".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS)
    for text in (style, script):
        if "</" in text or "<!--" in text or "\r" in text:
            sys.exit("a style or a script may not hold </, <!-- or carriage returns: HTML reads them otherwise")
    header.write_text(
        "// Made by src/view/embed_page.py.\n#pragma once\n#include <string_view>\nnamespace faultline::view {\n"
        + constant("kStyle", style)
        + constant("kScript", script)
        + constant("kTimeline", (folder / "timeline.html").read_text(encoding="utf-8"))
        + f'inline constexpr std::string_view kStyleHash = "{sha256(style)}";\n'
        + f'inline constexpr std::string_view kScriptHash = "{sha256(script)}";\n'
        + "}  // namespace faultline::view\n",
        encoding="utf-8",
    )


main()
