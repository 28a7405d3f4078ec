"""Functions that are longer than a screen or two can show: their lines from the one that names them to the one that ends them.

Of C++ this relies on the form that clang-format gives: what is inside of a function is indented, and a line with nothing but a brace at the level of its beginning ends it.
"""

import ast
import re

MOST_LINES = 80

_OPENS = re.compile(r"[^/].*\{(?: *//.*)?$")
_NO_FUNCTION = re.compile(
    r"(?:namespace|class|struct|enum|union|extern|if|for|while|switch|else|do|return|case|default)\b|[#}/]|.*\bstruct \w+ \{"
)
_NAME = re.compile(r"([\w:~]+|operator\S+) ?\(")


def of_python(text):
    """Name, line and length of each function; what is defined inside of it counts with it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def of_cpp(text):
    """Likewise, of functions in namespaces and classes, not of lambdas inside of functions."""
    lines = re.sub(r'R"(\w*)\(.*?\)\1"', lambda match: "\n" * match[0].count("\n"), text, flags=re.S).split("\n")
    at = 0
    while at < len(lines):
        begin = at
        if _OPENS.match(lines[at].lstrip()):
            while begin > 0 and not re.search(r"(^\s*(//.*|#.*)?|[;{}:]|\*/)(\s*//.*)?$", lines[begin - 1]):
                begin -= 1
            head = " ".join(line.strip() for line in lines[begin : at + 1])
            named = None if _NO_FUNCTION.match(head) else _NAME.search(head)
            indent = re.match(" *", lines[begin])[0]
            end = next((i for i in range(at + 1, len(lines)) if re.match(rf"{indent}\}}", lines[i])), None)
            if named and end:
                yield named[1], begin + 1, end - begin + 1
                at = end
        at += 1


def over(path, most=MOST_LINES):
    found = of_python(path.read_text()) if path.suffix == ".py" else of_cpp(path.read_text())
    return [(name, line, length) for name, line, length in found if length > most]
