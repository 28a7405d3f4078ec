#!/usr/bin/env python3
"""How fast `faultline view` writes the page of a PyTorch memory snapshot, and how large it is, beside PyTorch's own page.

    scripts/bench/view.py [--faultline build/faultline] [--torch-python PYTHON] [--write docs/measurements/view-speed.md]

On a snapshot of 300,000 events and on one of 1 GiB, in turns and with the file in the page cache: the whole process of `faultline view`, the same a second
time (what differs between these two is chance), and of `python -m torch.cuda._memory_viz trace_plot`. Then, where there is Chromium and playwright, the three pages are opened in
turns until the first picture stands (first_picture.py tells what PyTorch's needs), and Faultline's is zoomed and moved: what its frames take.
"""

import datetime
import os
import platform
import sys
import tempfile

from first_picture import CHROMIUM, first_pictures
from measure import Measurement
from run import count_events, cpu_model, first_line, markdown, measured, options, shown_bytes

BROWSER_S = 180  # for one page
VIEW, AGAIN, VIZ = "faultline view", "faultline view, again", "_memory_viz trace_plot"

# Zooms in to single events, moves along, looks closer at the bytes, and goes back: what each frame took to draw.
MOVE = """async () => {
  const viewer = window.faultline, chart = viewer.chart, model = viewer.model, took = [];
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const move = async (times, act) => {
    for (let at = 0; at < times; at++) { act(); viewer.redraw(); await frame(); await frame(); took.push(viewer.frameMs); }
  };
  for (let grouping = 0; grouping < model.groupings.length; grouping++) {
    viewer.chooseGrouping(grouping);
    chart.whole();
    await frame();
    await frame();
    await move(60, () => chart.zoom(0.8, model.first + model.events * 0.37));
    await move(30, () => viewer.pan((chart.view.to - chart.view.from) / 20, 0));
    await move(20, () => chart.zoomBytes(0.8, model.peak * 0.4));
    await move(40, () => chart.zoom(1.25));
  }
  return took;
}"""


# Goes from moment to moment all over the recording: what the frame took, with the account and the segments, and the flame graph behind it.
MOMENTS = """async () => {
  const viewer = window.faultline, { model, flame } = viewer, took = { frame: [], flame: [] };
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  viewer.chooseGrouping(0);
  viewer.chart.whole();
  for (let at = 0; at < 100; at++) {
    viewer.chooseMoment(model.first + model.events * ((at * 0.37) % 1));
    await frame();
    await frame();
    took.frame.push(viewer.frameMs);
    flame.draw();
    took.flame.push(flame.drawMs);
  }
  return took;
}"""


def measurements(args, path, folder):
    trouble = None if os.access(args.faultline, os.X_OK) else "it is not built"
    page = os.path.join(folder, "%s.html")
    view = [args.faultline, "view", path, "-o"]
    viz = [args.torch_python, "-m", "torch.cuda._memory_viz", "trace_plot", path, "-o", page % "viz"]
    return [
        Measurement(VIEW, [*view, page % "view"], trouble=trouble),
        Measurement(AGAIN, [*view, page % "again"], trouble=trouble),
        Measurement(VIZ, viz, trouble=args.torch_trouble),
    ]


def no_browser():
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "playwright is not installed"
    return None if os.path.exists(CHROMIUM) else "there is no Chromium"


ROUNDS = 3


def frames(page):
    """What the frames of moving about took in milliseconds, of each round of the same movements, and of going from moment to moment."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1600, "height": 1000})
        opened.goto("file://" + page)
        opened.wait_for_function("window.faultline && window.faultline.frameMs")
        took = [opened.evaluate("(%s)()" % MOVE) for _ in range(ROUNDS)]
        moments = [opened.evaluate("(%s)()" % MOMENTS) for _ in range(ROUNDS)]
        browser.close()
    return took, moments


def in_browser(args, rows, runs):
    trouble = no_browser()
    if trouble:
        return trouble
    pages = {row.label: row.command[-1] for row in rows if row.best_s is not None}
    took, moments = frames(pages[VIEW])
    return {"first": first_pictures(pages, runs, BROWSER_S), "took": took, "moments": moments}


def measure_file(args, path, runs):
    with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder:
        rows = measurements(args, path, folder)
        events = count_events(path)  # also brings the file into the page cache
        for turn in range(runs):
            for row in rows:
                print("%s, run %d of %d: %s" % (os.path.basename(path), turn + 1, runs, row.label), file=sys.stderr)
                row.run(args.timeout)
        sizes = {row.label: os.path.getsize(row.command[-1]) for row in rows if row.best_s is not None}
        shown = in_browser(args, rows, runs) if VIEW in sizes else "there is no page"
    return {"events": events, "bytes": os.path.getsize(path), "rows": rows, "sizes": sizes, "browser": shown}


def table(files):
    lines = [
        (
            "file",
            "program",
            "best s",
            "median s",
            "peak memory",
            "page",
            "times the time",
            "times the memory",
            "times the size",
        )
    ]
    for file in files:
        name = "%s events, %s" % (format(file["events"], ","), shown_bytes(file["bytes"]))
        base = file["rows"][0]
        for row in file["rows"]:
            if row.best_s is None:
                lines.append((name, row.label, row.trouble, *[""] * 6))
                continue
            size = file["sizes"][row.label]
            ratios = [
                "%.2f" % (row.best_s / base.best_s),
                "%.2f" % (row.peak_bytes / base.peak_bytes),
                "%.2f" % (size / file["sizes"][VIEW]),
            ]
            lines.append(
                (
                    name,
                    row.label,
                    "%.3f" % row.best_s,
                    "%.3f" % row.median_s,
                    shown_bytes(row.peak_bytes),
                    shown_bytes(size),
                    *ratios,
                )
            )
    return lines


def first_table(files):
    lines = [("page of", "page", "first paint s", "first picture s", "times the time to the picture")]
    for file in files:
        told, name = file["browser"], "%s events" % format(file["events"], ",")
        if isinstance(told, str):
            lines.append((name, told, "", "", ""))
            continue
        base = told["first"][VIEW]
        for label, first in told["first"].items():
            if isinstance(first, str):
                lines.append((name, label, "", first, ""))
                continue
            ratio = "" if isinstance(base, str) else "%.2f" % (first[1] / base[1])
            lines.append((name, label, "%.2f" % first[0], "%.2f" % first[1], ratio))
    return lines


TOLD = ("median ms", "95 % ms", "longest ms", "longest, the best of %d rounds, ms" % ROUNDS)


def told_of(rounds):
    took = sorted(ms for one in rounds for ms in one)
    at = [took[len(took) // 2], took[int(len(took) * 0.95)], took[-1], max(min(frame) for frame in zip(*rounds))]
    return [str(len(took)), *["%.1f" % ms for ms in at]]


def frame_table(files):
    lines = [("page of", "frames", *TOLD)]
    for file in files:
        if not isinstance(file["browser"], str):
            lines.append(("%s events" % format(file["events"], ","), *told_of(file["browser"]["took"])))
    return lines


def moment_table(files):
    lines = [("page of", "what", "moments", *TOLD)]
    for file in files:
        if isinstance(file["browser"], str):
            continue
        for what, label in (("frame", "the frame, with account and segments"), ("flame", "the flame graph, after it")):
            rounds = [one[what] for one in file["browser"]["moments"]]
            lines.append(("%s events" % format(file["events"], ","), label, *told_of(rounds)))
    return lines


def chromium_version():
    version, _ = first_line(CHROMIUM, "--version", "--no-sandbox")
    return version or "Chromium: missing"


def page_of(args, files):
    version, _ = first_line(args.faultline, "--version")
    return """# How fast a page is written

Made by `scripts/bench/view.py --write docs/measurements/view-speed.md` on %s.

- %s, %d cores, %s; load average %.1f before the first run
- %s; Python %s; PyTorch %s
- The whole process of each, in turns, file in the page cache; peak memory is its largest resident set. The ratios are to the first row: the second is the same program
  again, so what it differs by is chance.
- PyTorch's page holds the whole snapshot, loads its script from the network when it is opened, and draws the 15,000 largest entries.
- %s, drawn by the processor alone

%s

## The first picture in Chromium

Each page opened from disk in a browser of its own, in turns, the median of the runs: until anything is painted, and until the memory over time is drawn. The second row is the first page again, so what it differs by is chance. What PyTorch's page
loads from the network (MemoryViz.js of PyTorch's main branch, D3 7.8.5) was answered from disk, so no network slowed it; its picture counts as soon as the shapes are
in the page, which is before they are painted.

%s

## Moving about

Faultline's page zoomed to single events, moved, and zoomed back, by each grouping, the same movements %d times. What a frame takes is the time of the page's own drawing, and of whatever else the machine does meanwhile: the last column
has of each frame the shortest of the rounds.

%s

## Choosing a moment

From moment to moment all over the recording, 100 of them, %d times. The flame graph is drawn behind the frame, where it is in sight, and never while the picture moves.

%s
""" % (
        datetime.date.today().isoformat(),
        cpu_model(),
        os.cpu_count(),
        platform.system() + " " + platform.machine(),
        args.load,
        version or "Faultline: not built",
        platform.python_version(),
        args.torch_version or "missing",
        chromium_version(),
        markdown(table(files)),
        markdown(first_table(files)),
        ROUNDS,
        markdown(frame_table(files)),
        ROUNDS,
        markdown(moment_table(files)),
    )


def main():
    args = options("How fast `faultline view` writes a page, and how large, beside PyTorch's own.", 2).parse_args()
    files = measured(args, measure_file)
    print(*(markdown(made(files)) for made in (table, first_table, frame_table, moment_table)), sep="\n\n")
    if args.write:
        with open(args.write, "w") as page:
            page.write(page_of(args, files))


if __name__ == "__main__":
    main()
