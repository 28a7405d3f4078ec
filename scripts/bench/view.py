#!/usr/bin/env python3
"""How fast `faultline view` writes the page of a PyTorch memory snapshot, and how large it is, beside PyTorch's own page.

    scripts/bench/view.py [--faultline build/faultline] [--torch-python PYTHON] [--write docs/measurements/view-speed.md]

On a snapshot of 300,000 events and on one of 1 GiB, in turns and with the file in the page cache: the whole process of `faultline view`, the same a second
time (what differs between these two is chance), and of `python -m torch.cuda._memory_viz trace_plot`. Then, where there is Chromium and playwright, Faultline's page is opened,
zoomed and moved: the time from opening to the first picture, and what its frames take. PyTorch's page loads its script from the network when it is opened, so that is not measured.
"""

import datetime
import os
import platform
import sys
import tempfile

from measure import Measurement
from run import count_events, cpu_model, first_line, markdown, measured, options, shown_bytes

CHROMIUM = "/usr/bin/chromium"
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


def in_browser(page):
    """Seconds to the first picture, and what the frames of moving about took in milliseconds; or why not."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return "playwright is not installed"
    if not os.path.exists(CHROMIUM):
        return "there is no Chromium"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1600, "height": 1000})
        opened.goto("file://" + page)
        opened.wait_for_function("window.faultline && window.faultline.frameMs")
        first_s = opened.evaluate("performance.now()") / 1000
        took = sorted(opened.evaluate("(%s)()" % MOVE))
        browser.close()
    return {"first_s": first_s, "took": took}


def measure_file(args, path, runs):
    with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder:
        rows = measurements(args, path, folder)
        events = count_events(path)  # also brings the file into the page cache
        for turn in range(runs):
            for row in rows:
                print("%s, run %d of %d: %s" % (os.path.basename(path), turn + 1, runs, row.label), file=sys.stderr)
                row.run(args.timeout)
        sizes = {row.label: os.path.getsize(row.command[-1]) for row in rows if row.best_s is not None}
        shown = in_browser(rows[0].command[-1]) if VIEW in sizes else "there is no page"
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


def browser_table(files):
    lines = [("page of", "first picture s", "frames", "median ms", "95 % ms", "longest ms")]
    for file in files:
        told, name = file["browser"], "%s events" % format(file["events"], ",")
        if isinstance(told, str):
            lines.append((name, told, "", "", "", ""))
            continue
        took = told["took"]
        at = [took[len(took) // 2], took[int(len(took) * 0.95)], took[-1]]
        lines.append((name, "%.2f" % told["first_s"], str(len(took)), *["%.1f" % ms for ms in at]))
    return lines


def page_of(args, files):
    version, _ = first_line(args.faultline, "--version")
    return """# How fast a page is written

Made by `scripts/bench/view.py --write docs/measurements/view-speed.md` on %s.

- %s, %d cores, %s; load average %.1f before the first run
- %s; Python %s; PyTorch %s
- The whole process of each, in turns, file in the page cache; peak memory is its largest resident set. The ratios are to the first row: the second is the same program
  again, so what it differs by is chance.
- PyTorch's page holds the whole snapshot, loads its script from the network when it is opened, and draws the 15,000 largest entries.

%s

## In Chromium

Faultline's page opened from disk, drawn by the processor alone; then zoomed to single events, moved, and zoomed back, by each grouping. What a frame takes is the time of the page's own drawing.

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
        markdown(table(files)),
        markdown(browser_table(files)),
    )


def main():
    args = options("How fast `faultline view` writes a page, and how large, beside PyTorch's own.", 2).parse_args()
    files = measured(args, measure_file)
    print(markdown(table(files)), markdown(browser_table(files)), sep="\n\n")
    if args.write:
        with open(args.write, "w") as page:
            page.write(page_of(args, files))


if __name__ == "__main__":
    main()
