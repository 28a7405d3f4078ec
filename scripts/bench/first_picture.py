"""When Chromium shows the first picture of a page: Faultline's, and the one that PyTorch's _memory_viz writes.

PyTorch's page loads MemoryViz.js from the network, and that loads D3. Here both come from .cache/bench/memory_viz/ instead, so that no network slows it: put there
MemoryViz.js and process_alloc_data.js of PyTorch's torch/utils/viz, and d3.v7.min.js of d3js.org. What is missing is named in its row.
"""

import os
import re
import statistics

CHROMIUM = "/usr/bin/chromium"
HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.join(os.path.dirname(os.path.dirname(HERE)), ".cache", "bench", "memory_viz")
NEEDED = ("MemoryViz.js", "process_alloc_data.js", "d3.v7.min.js")

# Looks once a frame whether the picture is there, and takes the time of the frame after.
WAIT = """(() => {
  const isDrawn = () => %s;
  const look = () => requestAnimationFrame(isDrawn() ? () => (window.firstPicture = performance.now()) : look);
  look();
})()"""
FAULTLINE_DRAWN = "window.faultline && window.faultline.frameMs"
VIZ_DRAWN = "document.querySelector('svg polygon')"


def missing_scripts():
    missing = [name for name in NEEDED if not os.path.exists(os.path.join(SCRIPTS, name))]
    return "%s missing under .cache/bench/memory_viz" % ", ".join(missing) if missing else None


def d3_module(names):
    """D3's bundle as a module that has these names."""
    with open(os.path.join(SCRIPTS, "d3.v7.min.js")) as bundle:
        return bundle.read() + "\nexport const {%s} = globalThis.d3;\n" % ", ".join(sorted(names))


def serve(page):
    """What the page asks of the network, from disk."""

    def answer(route):
        url = route.request.url
        if url.endswith("/torch/utils/viz/MemoryViz.js") or url.endswith("/process_alloc_data.js"):
            with open(os.path.join(SCRIPTS, url.rsplit("/", 1)[1])) as script:
                body = script.read()
        elif "/npm/d3" in url:
            with open(os.path.join(SCRIPTS, "MemoryViz.js")) as script:
                text = script.read()
            names = set(re.findall(r"\bd3\.(\w+)", text)) - {"event"}
            names |= {"axisLeft", "scaleLinear", "zoom", "zoomIdentity", "brushX"}
            body = d3_module(names)
        else:
            return route.abort()
        route.fulfill(body=body, content_type="text/javascript", headers={"access-control-allow-origin": "*"})

    page.route(re.compile("^https?:"), answer)


def first_picture(driver, path, drawn, timeout_s):
    """Seconds from opening to the first paint of anything and to the first picture, in a browser of its own; or why not."""
    browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
    try:
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        serve(page)
        page.add_init_script(WAIT % drawn)
        page.goto("file://" + path, wait_until="commit", timeout=timeout_s * 1000)
        page.wait_for_function("() => window.firstPicture", timeout=timeout_s * 1000)
        painted = "performance.getEntriesByName('first-contentful-paint')"
        page.wait_for_function("() => %s.length" % painted, timeout=timeout_s * 1000)
        return page.evaluate("[%s[0].startTime / 1000, firstPicture / 1000]" % painted)
    except Exception as problem:  # a crash of the tab, or no picture in time
        told = str(problem).split("\n")[0]
        return "none in %d s" % timeout_s if "Timeout" in told else "none: " + told[:80]
    finally:
        browser.close()


def first_pictures(pages, runs, timeout_s):
    """`pages`: label to path, of PyTorch's if the label says so. In turns; of each the median of its runs, or why there is none."""
    from playwright.sync_api import sync_playwright

    seen = {label: [] for label in pages}
    with sync_playwright() as driver:
        for turn in range(runs):
            for label, path in pages.items():
                is_viz = "memory_viz" in label
                trouble = missing_scripts() if is_viz else None
                if trouble or (turn and isinstance(seen[label][-1], str)):
                    seen[label].append(trouble or seen[label][-1])
                    continue
                drawn = VIZ_DRAWN if is_viz else FAULTLINE_DRAWN
                seen[label].append(first_picture(driver, path, drawn, timeout_s))
    result = {}
    for label, times in seen.items():
        told = [one for one in times if not isinstance(one, str)]
        result[label] = [statistics.median(column) for column in zip(*told)] if told else times[-1]
    return result
