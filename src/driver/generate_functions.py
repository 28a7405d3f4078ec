"""Makes the list of the CUDA driver's functions from NVIDIA's headers: python3 generate_functions.py INCLUDE_DIR OUTPUT.

The list exists once, here, and feeds the capture library, the virtual driver and their tests. It has two halves:

  FAULTLINE_DRIVER_BASE(base)                                       every name that cuGetProcAddress knows
  FAULTLINE_DRIVER_EXPORT(symbol, base, stream, parameters, arguments)
                                                                    every symbol that libcuda.so.1 exports, as cuda.h declares it
  FAULTLINE_DRIVER_VARIANT(base, version, stream, type)             every function that cuGetProcAddress may answer with, as cudaTypedefs.h types it

`stream` is kLegacy or kPerThread: what stream 0 means to the function. Nothing is guessed from a name's number: an exported symbol is found by
its own name, a variant by base, version and stream flag, exactly as a program asks for it.
"""

import re
import subprocess
import sys


def preprocessed(include, header):
    """With every older variant declared too, which is what NVIDIA's switch of this name does."""
    command = ["c++", "-E", "-P", "-xc++", "-D__CUDA_API_VERSION_INTERNAL", f"-I{include}", f"{include}/{header}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def split_parameters(text):
    """The parameters of a declaration, cut at its outer commas."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    parts = [" ".join(part.split()) for part in parts]
    return [] if parts in ([""], ["void"]) else parts


def named(parameters):
    """Each parameter with a name of ours, so that it can be passed on: (declarations, names)."""
    declared, names = [], []
    for number, parameter in enumerate(parameters):
        parameter = re.sub(r"\s*=.*", "", parameter)
        array = re.search(r"(\[[^]]*\])$", parameter)
        plain = parameter[: array.start()].rstrip() if array else parameter
        words = re.match(r"^(.*?[\s*&])(\w+)$", plain)
        kind = words.group(1).rstrip() if words and words.group(2) not in ("int", "char", "long", "unsigned") else plain
        declared.append(f"{kind} a{number}" + (array.group(1) if array else ""))
        names.append(f"a{number}")
    return declared, names


def base_of(symbol):
    return re.sub(r"(_v\d+)?(_pt[ds][sz])?$", "", symbol)


def stream_of(name):
    return "kPerThread" if re.search(r"_pt(ds|sz)$", name) else "kLegacy"


def exports(include):
    found = {}
    pattern = re.compile(r"CUresult\s+(cu\w+)\s*\(([^;{]*)\)\s*;")
    for symbol, parameters in pattern.findall(preprocessed(include, "cuda.h")):
        found.setdefault(symbol, named(split_parameters(parameters)))
    return found


def variants(include):
    found = {}
    pattern = re.compile(r"typedef\s+CUresult\s*\(\s*\*\s*(PFN_(cu\w+?)_v(\d+)(_pt[ds][sz])?)\s*\)\s*\(")
    for typename, base, version, stream in pattern.findall(preprocessed(include, "cudaTypedefs.h")):
        found.setdefault((base, int(version), stream_of(stream)), typename)
    return found


def main():
    include, output = sys.argv[1:]
    symbols, types = exports(include), variants(include)
    bases = sorted({base_of(symbol) for symbol in symbols} | {base for base, _, _ in types})
    if len(symbols) < 500 or len(types) < 500:
        sys.exit(
            f"{include}: only {len(symbols)} functions and {len(types)} variants found in cuda.h and cudaTypedefs.h; are these NVIDIA's headers of CUDA 12 or later?"
        )
    lines = ["// Made from NVIDIA's cuda.h and cudaTypedefs.h by src/driver/generate_functions.py."]
    lines += ["#ifdef FAULTLINE_DRIVER_BASE"] + [f"FAULTLINE_DRIVER_BASE({base})" for base in bases] + ["#endif"]
    lines.append("#ifdef FAULTLINE_DRIVER_EXPORT")
    for symbol in sorted(symbols):
        declared, names = symbols[symbol]
        lines.append(
            f"FAULTLINE_DRIVER_EXPORT({symbol}, {base_of(symbol)}, {stream_of(symbol)}, ({', '.join(declared)}), ({', '.join(names)}))"
        )
    lines.append("#endif")
    lines.append("#ifdef FAULTLINE_DRIVER_VARIANT")
    for (base, version, stream), typename in sorted(types.items()):
        lines.append(f"FAULTLINE_DRIVER_VARIANT({base}, {version}, {stream}, {typename})")
    lines.append("#endif")
    with open(output, "w") as file:
        file.write("\n".join(lines) + "\n")


main()
