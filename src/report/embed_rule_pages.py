#!/usr/bin/env python3
"""Makes a C++ header of the pages of docs/rules: of each its rule, what the table there says of it in short and in a line, and its text.

embed_rule_pages.py FOLDER HEADER
"""

import re
import sys
from pathlib import Path

DELIMITER = "FAULTLINE_RULE"


def constant(text):
    if f"){DELIMITER}" in text:
        sys.exit(f"a page holds the delimiter {DELIMITER}")
    return f'R"{DELIMITER}({text}){DELIMITER}"'


def main():
    folder, header = Path(sys.argv[1]), Path(sys.argv[2])
    table = (folder / "README.md").read_text(encoding="utf-8")
    pages = []
    for name, page, in_short, says in re.findall(r"^\| \[([a-z/-]+)\]\(([a-z-]+\.md)\) \| (.*?) \| (.*?) \|", table, re.M):
        if page != name.replace("/", "-") + ".md":
            sys.exit(f"docs/rules/README.md: {name} has the page {page}")
        text = (folder / page).read_text(encoding="utf-8")
        pages.append(f"    {{{constant(name)}, {constant(in_short)}, {constant(says)},\n     {constant(text)}}},\n")
    untold = {path.name for path in folder.glob("*.md")} - {"README.md"}
    if len(pages) != len(untold):
        sys.exit("docs/rules/README.md does not list every page beside it")
    header.write_text(
        "// Made by src/report/embed_rule_pages.py.\n#pragma once\n#include <array>\n\n#include "
        + '"report/rule_pages.h"\n\nnamespace faultline {\n'
        + f"inline constexpr std::array<RulePage, {len(pages)}> kRulePages = {{{{\n"
        + "".join(pages)
        + "}};\n}  // namespace faultline\n",
        encoding="utf-8",
    )


main()
