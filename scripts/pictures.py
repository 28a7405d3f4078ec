#!/usr/bin/env python3
"""Makes the pictures of docs/pictures: pages as Chromium shows them, and what a terminal shows, as the program prints it.

    scripts/pictures.py [--faultline build/faultline] [--plan FOLDER] [NAME…]

Wants Debian's chromium and playwright, as the tests do, and PyTorch for the plan (.venv/bin/python has them). --plan takes a folder that an earlier
`faultline plan` of examples/train_gpt.py left, instead of planning it again.
"""

import argparse
import array
import base64
import html
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
FIXTURES = ROOT / "tests" / "fixtures"
OOM = FIXTURES / "torch" / "gpt_oom.pickle.xz"
MOST_BYTES = 150_000
COLUMNS = 92

# Of a page: the input, light or dark, the size or the part that is shown, and what is done before the picture is taken.
PAGES = {
    "view": (OOM, "light", (1240, 690), "viewer.jump(0), viewer.chart.whole()"),
    "view-zoomed": (
        OOM,
        "dark",
        (1240, 690),
        "viewer.chart.setView(2040, 2168, 1.3 * 2 ** 30, 4.9 * 2 ** 30), viewer.select(viewer.model.largestAt(2153))",
    ),
    "view-stacks": (OOM, "light", "#flame-part", ""),
    "view-replays": (OOM, "light", "section:has(#replays-title)", ""),
    "view-plan": ("plan", "light", "section:has(#account-title)", ""),
}

# Of a terminal: what is typed, what is run, and the stretches of lines that are shown, from a line to before another.
TERMINALS = {
    "terminal-plan": (
        "faultline plan --gpu T4 -- python examples/train_gpt.py --batch-size 16",
        "plan",
        [("DOES NOT FIT", "  called from"), ("What fills", "  made at"), ("What would make it fit", "        ")],
    ),
    "terminal-explain": (
        "faultline explain gpt_oom.pickle.xz",
        OOM,
        [("ERROR", "  read"), ("SUMMARY", None)],
    ),
}

COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#f2cc60", "34": "#79c0ff", "36": "#76e3ea"}
CELL, LINE, EDGE = 8.43, 19, 18


def planned(faultline, folder):
    command = [faultline, "plan", "--gpu", "T4", "-o", folder, "--", "python", "examples/train_gpt.py"]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run([*command, "--batch-size", "16"], cwd=ROOT, stderr=subprocess.DEVNULL, env=environment)
    return folder


def on_terminal(*command):
    """What the command writes on a terminal of so many columns, with its colours."""
    outer, inner = pty.openpty()
    subprocess.run(["stty", "cols", str(COLUMNS), "-onlcr"], stdin=inner, check=True)
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    environment.pop("NO_COLOR", None)
    running = subprocess.Popen(command, cwd=ROOT, stdout=inner, stderr=inner, env=environment)
    os.close(inner)
    told = b""
    while True:
        try:
            piece = os.read(outer, 1 << 16)
        except OSError:  # the last writer has gone
            break
        if not piece:
            break
        told += piece
    running.wait()
    os.close(outer)
    return told.decode().replace("\r", "").splitlines()


def plain(line):
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def stretches(lines, wanted):
    """The lines that are wanted, and … where others are left out between them."""
    shown = []
    for begin, end in wanted:
        first = next(at for at, line in enumerate(lines) if plain(line).startswith(begin))
        last = next((at for at in range(first + 1, len(lines)) if end and plain(lines[at]).startswith(end)), len(lines))
        if shown:
            shown.append("  …")
        shown += lines[first:last]
        while shown and not plain(shown[-1]).strip():
            shown.pop()
    return shown


def spans(line):
    """Pieces of one style: where it begins, its text, how it looks."""
    column, style = 0, ""
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        if piece.startswith("\x1b["):
            codes = piece[2:-1].split(";")
            colour = next((COLOURS[code] for code in codes if code in COLOURS), "#8b949e" if "2" in codes else "")
            style = (f' fill="{colour}"' if colour else "") + (' font-weight="bold"' if "1" in codes else "")
        elif piece:
            lead = len(piece) - len(piece.lstrip(" "))
            if piece.strip():
                yield column + lead, piece.strip(" "), style
            column += len(piece)


def svg_of(typed, lines):
    rows = [f"\x1b[2m$\x1b[0m \x1b[1m{typed}\x1b[0m", *lines]
    columns = max(COLUMNS, *(len(plain(row)) for row in rows))
    width, height = columns * CELL + 2 * EDGE, len(rows) * LINE + 2 * EDGE + 12
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" role="img">',
        f"<title>{html.escape(typed)}</title>",
        f'<rect width="{width:.0f}" height="{height}" rx="10" fill="#0d1117"/>',
        *(f'<circle cx="{20 + 18 * at}" cy="17" r="5.5" fill="#30363d"/>' for at in range(3)),
        '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14" fill="#e6edf3">',
    ]
    for number, row in enumerate(rows):
        y = EDGE + 12 + (number + 1) * LINE
        for column, text, style in spans(row):
            # each piece as wide as its cells, whatever font the reader has
            out.append(
                f'<text x="{EDGE + column * CELL:.1f}" y="{y}" textLength="{len(text) * CELL:.1f}" lengthAdjust="spacingAndGlyphs" xml:space="preserve"{style}>{html.escape(text)}</text>'
            )
    return "\n".join([*out, "</g>", "</svg>", ""])


def page_pictures(faultline, names, plan):
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for name in names:
            source, scheme, part, act = PAGES[name]
            width, height = (1240, 900) if isinstance(part, str) else part
            page = Path(folder) / f"{name}.html"
            subprocess.run([faultline, "view", plan() if source == "plan" else source, "-o", page], check=True)
            opened = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            opened.goto(f"file://{page}")
            opened.wait_for_function("document.documentElement.dataset.ready")
            opened.evaluate(f"((viewer) => ({act or 0}, viewer.redraw(true), window.scrollTo(0, 0)))(window.faultline)")
            if isinstance(part, str):
                opened.locator(part).scroll_into_view_if_needed()  # what is not seen is not drawn
            opened.wait_for_timeout(300)
            shown = opened.locator(part) if isinstance(part, str) else opened
            smaller(browser, shown.screenshot(), PICTURES / f"{name}.png")
        browser.close()


# Rounds the colours in which letters end, and nothing else: flat colours stay as they are. The pixels come back, four bytes each.
ROUND = """async ([png, step]) => {
  const picture = await createImageBitmap(await (await fetch("data:image/png;base64," + png)).blob()), canvas = new OffscreenCanvas(picture.width, picture.height);
  const context = canvas.getContext("2d");
  context.drawImage(picture, 0, 0);
  const image = context.getImageData(0, 0, canvas.width, canvas.height), words = new Uint32Array(image.data.buffer), counts = new Map();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  for (let at = 0; at < words.length && step > 1; at++) {
    if (counts.get(words[at]) > 2000) continue;
    for (let part = 4 * at; part < 4 * at + 3; part++) image.data[part] = Math.min(255, Math.round(image.data[part] / step) * step);
  }
  let text = "";
  for (let at = 0; at < image.data.length; at += 8192) text += String.fromCharCode(...image.data.subarray(at, at + 8192));
  return [btoa(text), canvas.width];
}"""


def indexed_png(pixels, width, colours):
    """A picture of at most 256 colours: one byte for a pixel."""
    number = {colour: at for at, colour in enumerate(colours)}
    indices = bytes(map(number.__getitem__, pixels))
    rows = b"".join(b"\0" + indices[at : at + width] for at in range(0, len(indices), width))

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, len(indices) // width, 8, 3, 0, 0, 0)
    palette = b"".join(colour.to_bytes(4, "little")[:3] for colour in colours)
    parts = (b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, body) for kind, body in parts)


def smaller(browser, png, path):
    """No more colours than are seen."""
    page = browser.new_page()
    for step in (1, 8, 16, 32, 64):
        told, width = page.evaluate(ROUND, [base64.b64encode(png).decode(), step])
        pixels = array.array("I", base64.b64decode(told))
        colours = sorted(set(pixels))
        if len(colours) <= 256:
            break
    path.write_bytes(indexed_png(pixels, width, colours))
    page.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--faultline", type=Path, default=ROOT / "build" / "faultline")
    parser.add_argument("--plan", metavar="FOLDER", help="that a plan of examples/train_gpt.py left")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which (default: all)")
    args = parser.parse_args()
    names = args.names or [*PAGES, *TERMINALS]
    PICTURES.mkdir(exist_ok=True)
    faultline = args.faultline.resolve()
    with tempfile.TemporaryDirectory() as folder:

        def plan():
            args.plan = args.plan or planned(faultline, Path(folder) / "plan")
            return args.plan

        page_pictures(faultline, [name for name in names if name in PAGES], plan)
        for name in names:
            if name not in TERMINALS:
                continue
            typed, source, wanted = TERMINALS[name]
            lines = on_terminal(faultline, "explain", plan() if source == "plan" else source)
            picture = svg_of(typed, stretches(lines, wanted)).replace(f"{ROOT}/", "")
            (PICTURES / f"{name}.svg").write_text(picture)
    for path in sorted(PICTURES.iterdir()):
        size = path.stat().st_size
        print(f"{path.relative_to(ROOT)}: {size:,} bytes")
        assert size < MOST_BYTES, f"{path.name} is larger than {MOST_BYTES:,} bytes"


main()
