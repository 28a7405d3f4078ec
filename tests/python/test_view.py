"""`faultline view`: the page it writes, as a browser shows it, and how it is written."""

import json
import os
import pty
import resource
import subprocess
from pathlib import Path

import pytest
from common import FAULTLINE, PROGRAMS, RECORDINGS, refusal, write

CHROMIUM = "/usr/bin/chromium"
# One browser for all of them.
pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(
        not os.path.exists(CHROMIUM), reason="there is no Chromium here (Debian: apt-get install chromium)"
    ),
]
OOM = RECORDINGS / "gpt_oom.pickle.xz"
EVIL = "<img src=x onerror=hostile()></script><script>hostile()</script>\"'"


def view(*args, **options):
    return subprocess.run([FAULTLINE, "view", *map(str, args)], capture_output=True, **options)


def made(source, page, *args):
    done = view(source, "-o", page, *args)
    assert done.returncode == 0, done.stderr.decode()
    return page


def report_of(source):
    return json.loads(subprocess.run([FAULTLINE, "explain", source, "--format", "json"], capture_output=True).stdout)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def oom(pages):
    return made(OOM, pages / "oom.html")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser):
    """Opens a page and sees to it that nothing goes wrong in it and nothing is asked of the network."""
    contexts, wrong = [], []

    def open_page(path, ready="yes", init=None, **options):
        context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        if init:
            page.add_init_script(init)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: wrong.append(request.url) if not request.url.startswith("file:") else None)
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.goto(f"file://{path}")
        if ready:
            page.wait_for_function("document.documentElement.dataset.ready")
            assert page.evaluate("document.documentElement.dataset.ready") == ready
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong


def settled(page):
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def seen(page):
    settled(page)
    return page.evaluate("({ ...faultline.chart.view, moment: faultline.moment, selected: faultline.selected })")


# -- what it shows


def test_what_is_drawn_is_what_was_recorded(oom, opened):
    page, device = opened(oom), report_of(OOM)["devices"][0]
    assert page.evaluate("Math.max(...faultline.model.totals)") == device["peak"]["allocated"]
    assert page.evaluate("faultline.model.mostReserved") == device["peak"]["reserved"]
    at_failure = page.evaluate("(faultline.jump(0), Array.from(faultline.model.groupsAt(faultline.moment).bytes))")
    assert at_failure == list(device["account"]["live"].values())
    # by line the same bytes are divided in another way
    for grouping in page.evaluate("faultline.model.groupings.map((one) => one.by)"):
        page.select_option("#grouping", label=grouping)
        assert page.evaluate("faultline.model.groupsAt(faultline.moment).bytes.reduce((a, b) => a + b)") == sum(
            at_failure
        )
    # single allocations lie in their groups: all are kept, so they are all there is
    assert page.evaluate(
        "faultline.model.groupings.every((one) => (faultline.model.chooseGrouping(faultline.model.groupings.indexOf(one)), one.rest.every((bytes) => bytes === 0)))"
    )


def test_a_finding_leads_to_its_moment_and_its_line(oom, opened):
    page = opened(oom)
    page.click(".jump")
    at = seen(page)
    assert page.evaluate(
        f"faultline.model.marks.some(([event, kind]) => event === {at['moment']} && kind === 'failure')"
    )
    assert at["from"] <= at["moment"] <= at["to"] and at["to"] - at["from"] < page.evaluate("faultline.model.events")
    assert "786.00 MiB failed" in page.inner_text("#moment-title")
    assert "snap.py:22" in page.inner_text("#detail")
    assert "chosen" in page.get_attribute("#finding-0", "class")
    assert page.locator("#finding-0 summary").inner_text() == "Details"


def test_the_title_says_which_program_and_what_happened(oom, pages, opened):
    page = opened(oom)
    assert page.title() == "snap.py: out of GPU memory · Faultline"
    assert page.inner_text("h1") == "snap.py: out of GPU memory" and "gpt_oom.pickle.xz" in page.inner_text("header")
    gone_well = (
        "faultline-trace-text 1\ncan addresses stacks events\ndevice 0\nheap driver\nheap torch below=driver\n"
        "alloc #a 16MiB torch @0x1000000 at /home/ada/my.py:3 <module>\nfree #a\n"
    )
    clean = opened(made(write(pages / "clean.txt", gone_well), pages / "clean.html"))
    assert clean.inner_text("h1") == "my.py: nothing wrong was found"
    # where nothing tells the program, the input's name stands for it
    text = RECORDINGS.parent / "errors" / "illegal_address.txt"
    title = opened(made(text, pages / "untold.html"), ready=None).title()
    assert title == "illegal_address.txt: a kernel accessed an address that is not mapped · Faultline"


def test_the_account_of_the_moment_stands_above_the_picture(oom, opened):
    for size in ({"width": 1400, "height": 900}, {"width": 1240, "height": 690}):
        page = opened(oom, viewport=size)
        legend, chart = page.locator("#legend").bounding_box(), page.locator("#chart").bounding_box()
        assert legend["y"] + legend["height"] <= chart["y"] and chart["y"] + chart["height"] <= size["height"]
        told = page.inner_text("#legend")
        assert "activations" in told and "2.29 GiB" in told and "49.5 %" in told
        assert "the peak. 4.63 GiB allocated, 4.83 GiB reserved." in page.inner_text("#moment-title")
        page.focus("#chart")
        page.keyboard.press("Home")
        for key in (",", ",", ".", "p"):  # whatever the moment holds, the picture stays where it is
            page.keyboard.press(key)
            settled(page)
            assert page.locator("#chart").bounding_box() == chart


def test_what_is_told_at_the_pointer_covers_no_finding(oom, opened):
    for width in (1400, 800):
        page = opened(oom, viewport={"width": width, "height": 900})
        page.locator("#chart").scroll_into_view_if_needed()
        box = page.locator("#chart").bounding_box()
        for x, y in ((0.98, 0.3), (0.98, 0.95), (0.6, 0.9)):
            page.mouse.move(box["x"] + box["width"] * x, box["y"] + box["height"] * y)
            if not page.is_visible("#tip"):
                continue
            tip, findings = page.locator("#tip").bounding_box(), page.locator("#findings").bounding_box()
            apart = tip["x"] + tip["width"] <= findings["x"] or findings["y"] + findings["height"] <= tip["y"]
            assert apart and tip["x"] >= 0 and tip["x"] + tip["width"] <= width
        page.mouse.move(box["x"] + box["width"] * 0.97, box["y"] + box["height"] * 0.9)
        assert page.is_visible("#tip")


def test_wheel_drag_and_keys_move_the_picture(oom, opened):
    page = opened(oom)
    box = page.locator("#chart").bounding_box()
    middle = (box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.6)
    whole = seen(page)
    page.mouse.move(*middle)
    page.mouse.wheel(0, -400)
    near = seen(page)
    assert whole["from"] < near["from"] < near["to"] < whole["to"] and near["high"] == whole["high"]
    page.mouse.down()
    page.mouse.move(middle[0] - 100, middle[1])
    page.mouse.up()
    moved = seen(page)
    assert moved["from"] > near["from"] and moved["to"] - moved["from"] == pytest.approx(near["to"] - near["from"])
    page.focus("#chart")
    for key, differs in {
        "ArrowLeft": "from",
        "ArrowRight": "from",
        "+": "to",
        "]": "high",
        "ArrowUp": "low",
        ".": "moment",
    }.items():
        before = seen(page)
        page.keyboard.press(key)
        assert seen(page)[differs] != before[differs], key
    page.keyboard.press("Home")
    assert {name: seen(page)[name] for name in ("from", "to", "low", "high")} == {
        name: whole[name] for name in ("from", "to", "low", "high")
    }
    page.keyboard.press("p")
    page.keyboard.press("Enter")
    assert seen(page)["selected"] >= 0
    # as far in as it goes: a few events, a few pages of memory
    for _ in range(60):
        page.keyboard.press("+")
        page.keyboard.press("]")
    assert seen(page)["to"] - seen(page)["from"] == 8


def test_pointing_tells_and_clicking_chooses(oom, opened):
    page = opened(oom)
    box = page.locator("#chart").bounding_box()
    x, y = box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.9
    page.mouse.move(x, y)
    tip = page.inner_text("#tip")
    assert "MiB" in tip and ".py:" in tip and "event" in tip
    page.mouse.click(x, y)
    assert seen(page)["selected"] >= 0
    assert "held" in page.inner_text("#detail") and ".py:" in page.inner_text("#detail")
    segments = page.locator("#segments")
    segments.scroll_into_view_if_needed()
    box = segments.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 8)
    assert page.is_visible("#tip")
    assert "segments" in page.inner_text("#segments-told") and "free" in page.inner_text("#segments-told")


def test_everything_has_a_name_and_is_reached_by_keys(oom, opened):
    page = opened(oom)
    nameless = page.evaluate(
        """[...document.querySelectorAll("button, select, canvas:not([aria-hidden]):not([hidden]):not(td canvas), svg[role]")]
           .filter((one) => !(one.getAttribute("aria-label") || one.textContent.trim() || one.closest("label"))).map((one) => one.outerHTML)"""
    )
    assert nameless == []
    reached = []
    for _ in range(45):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                "document.activeElement.id || document.activeElement.className || document.activeElement.tagName"
            )
        )
    assert reached.index("grouping") < reached.index("zoom-in") < reached.index("chart") < reached.index("jump")
    page.focus("#chart")
    page.keyboard.press("p")
    settled(page)
    assert "allocated" in page.inner_text("#said")


def replayed(source, setting):
    done = subprocess.run(
        [FAULTLINE, "replay", source, "--set", setting, "--format", "json"], capture_output=True, check=False
    )
    return json.loads(done.stdout)["replays"][0]


def test_replays_stand_side_by_side_and_can_be_drawn_over_the_recording(oom, opened):
    page = opened(oom)
    names = page.evaluate("faultline.model.whatIfs.map((one) => one.name)")
    figures = page.locator(".replay")
    assert figures.count() == len(names) + 1 and figures.nth(0).inner_text().startswith("As recorded")
    for at, name in enumerate(names):
        told = figures.nth(at + 1).inner_text()
        assert name in told and page.evaluate(f"Math.max(...faultline.model.whatIfs[{at}].reserved)") == page.evaluate(
            f"faultline.model.whatIfs[{at}].peak"
        )
        if ":" in name:
            expected = replayed(OOM, name)
            assert page.evaluate(f"faultline.model.whatIfs[{at}].peak") == expected["peak_reserved"]
            assert ("fits" in told) == expected["fits"] and f"out of memory at {expected['failures'][0]['at']}" in told
    # beside it: by the button of the figure and by the choice above the picture
    before = page.evaluate("document.getElementById('chart').toDataURL()")
    room = names.index("With room for all of it")
    page.locator(".beside").nth(room).click()
    settled(page)
    assert page.evaluate("document.getElementById('chart').toDataURL()") != before
    assert page.input_value("#replay") == str(room) and "With room for all of it" in page.inner_text("#told")
    assert page.evaluate("faultline.chart.view.high") > page.evaluate("faultline.model.whatIfs[%d].peak" % room)
    assert page.locator(".beside[aria-pressed=true]").count() == 1
    page.locator(".beside").nth(room).click()
    settled(page)
    assert page.evaluate("document.getElementById('chart').toDataURL()") == before
    page.select_option("#replay", index=2)
    settled(page)
    assert page.evaluate("document.getElementById('chart').toDataURL()") != before


def test_a_place_is_copied_and_opens_in_an_editor(pages, opened):
    code = "/home/user/project/my model.py"
    lines = f"can events stacks\ndevice 0\nheap driver\nheap torch below=driver\nalloc 16MiB torch at \"{code}\":3 main\nalloc-failed 2GiB torch at \"{code}\":4 main\n"
    source = write(pages / "place.txt", "faultline-trace-text 1\n" + lines)
    page = opened(made(source, pages / "place.html"), permissions=["clipboard-read", "clipboard-write"])
    page.locator(".finding .copy").first.click()
    page.wait_for_function("() => document.getElementById('said').textContent.startsWith('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == f"{code}:4"
    address = "vscode://file/home/user/project/my%20model.py:"
    assert page.locator(".finding a.open").first.get_attribute("href") == address + "4"
    page.focus("#chart")
    page.keyboard.press("Enter")
    assert page.get_attribute("#detail a.open", "href") == address + "3"
    assert page.get_attribute("#detail .copy", "data-place") == f"{code}:3"
    # pages that may not use the clipboard do it by hand
    plain = opened(pages / "place.html", init="Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    plain.locator(".finding .copy").first.click()
    plain.wait_for_function("() => document.getElementById('said').textContent.startsWith('Copied')")


def test_accounts_calls_segments_and_cells_are_walked_by_keys(oom, opened):
    page = opened(oom)
    page.locator("#legend .entry").nth(4).focus()
    before = seen(page)["moment"]
    page.keyboard.press("Enter")
    assert seen(page)["moment"] != before
    assert page.evaluate("document.activeElement.textContent") == "gradients"  # the keys stay where they are
    page.focus("#segments")
    page.keyboard.press("ArrowRight")
    first = page.inner_text("#said")
    page.keyboard.press("ArrowRight")
    assert "MiB" in first and page.inner_text("#said") != first and page.is_visible("#tip")
    page.keyboard.press("Enter")
    assert seen(page)["selected"] >= 0
    assert page.locator(".treemap [tabindex='0']").count() == 1
    page.locator(".treemap [tabindex='0']").focus()
    name = "document.activeElement.getAttribute('aria-label')"
    walked = [page.evaluate(name)]
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
        walked.append(page.evaluate(name))
    assert len(set(walked)) >= 3 and all("iB, " in one for one in walked)
    cell = page.locator(".treemap g").nth(1)
    cell.click()
    assert page.evaluate("faultline.model.grouping.by") == "line"
    assert cell.get_attribute("data-name") in page.evaluate("faultline.model.grouping.groups")


def flame(page):
    """The flame graph as it is drawn: of each cell its name, bytes and row, and what stands under the picture."""
    page.locator("#flame-part").scroll_into_view_if_needed()
    page.wait_for_function("() => faultline.flame.isSeen && !faultline.flame.isStale")
    return page.evaluate(
        """({ all: faultline.flame.root.bytes, focus: faultline.flame.focus.name, told: document.getElementById("flame-told").textContent,
             cells: faultline.flame.cells.map(({ frame, row, x, width }) => ({ name: frame.name, bytes: frame.bytes, row, x, width, up: frame.up?.bytes ?? frame.bytes })) })"""
    )


def test_what_lives_at_a_moment_stands_by_call_stack(oom, opened):
    page = opened(oom)
    drawn = flame(page)
    # at every moment the graph is of exactly the bytes that the account above the picture has, and of its categories
    for share in (0.1, 0.5, 0.7, 0.95):
        page.evaluate(f"faultline.chooseMoment(faultline.model.first + Math.floor(faultline.model.events * {share}))")
        settled(page)
        at = flame(page)
        account = page.evaluate("Array.from(faultline.model.groupsAt(faultline.moment).bytes)")
        assert at["all"] == sum(account) and page.evaluate("Array.from(faultline.flame.root.parts)") == account
        assert sum(cell["bytes"] for cell in at["cells"] if cell["row"] == 1) <= at["all"]
        for cell in at["cells"]:
            assert 0 < cell["bytes"] <= cell["up"]
    # as wide as it holds: the line of the training step, and below it the lines of the model
    page.focus("#chart")
    page.keyboard.press("p")
    settled(page)
    drawn = flame(page)
    whole = drawn["cells"][0]
    step = next(cell for cell in drawn["cells"] if cell["name"] == "snap.py:22 in <module>")
    assert step["width"] / whole["width"] == pytest.approx(step["bytes"] / whole["bytes"])
    assert any(cell["name"] == "work_models.py:8 in forward" and cell["row"] > step["row"] for cell in drawn["cells"])
    assert "_call_impl" not in " ".join(cell["name"] for cell in drawn["cells"])
    # every frame, where they are wanted
    page.check("#flame-all")
    drawn = flame(page)
    assert any("_call_impl" in cell["name"] for cell in drawn["cells"]) and drawn["all"] == whole["bytes"]


def test_the_flame_graph_zooms_finds_and_lists(oom, opened):
    page = opened(oom)
    drawn = flame(page)
    step = next(cell for cell in drawn["cells"] if cell["name"] == "snap.py:22 in <module>")
    page.hover("#flame", position={"x": step["x"] + 20, "y": step["row"] * 20 + 8})
    tip = page.inner_text("#tip")
    assert "snap.py:22" in tip and "4.10 GiB, 88.5 % of what lives then" in tip and "optimizer 1.00 GiB" in tip
    page.click("#flame", position={"x": step["x"] + 20, "y": step["row"] * 20 + 8})
    near = flame(page)
    assert near["focus"] == "snap.py:22 in <module>" and "88.5 %" in near["told"]
    assert next(cell for cell in near["cells"] if cell["name"] == near["focus"])["width"] == drawn["cells"][0]["width"]
    assert page.get_attribute("#flame-frame .copy", "data-place").endswith("snap.py:22")
    # a frame stays where the moment changes
    page.evaluate("faultline.chooseMoment(faultline.moment - 40)")
    settled(page)
    assert flame(page)["focus"] == near["focus"]
    page.click("#flame-out")
    assert flame(page)["focus"] == "all of it"
    page.focus("#chart")
    page.keyboard.press("p")
    settled(page)
    flame(page)
    page.fill("#flame-search", "ADAM.PY")
    assert "found in 1.00 GiB, 21.7 %" in flame(page)["told"]
    page.fill("#flame-search", "nothing is called so")
    assert "found in 0 B" in flame(page)["told"]
    page.fill("#flame-search", "")
    page.click("#flame-list summary")
    page.wait_for_selector("#flame-lines li")
    lines = page.locator("#flame-lines li").all_inner_texts()
    assert "snap.py:22 in <module> › " in lines[0] and len(lines) <= 25
    assert [line for line in lines if "adam.py:178 in" in line]


def test_the_flame_graph_is_walked_by_keys(oom, opened):
    page = opened(oom)
    flame(page)
    page.focus("#flame")
    said = []
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
        said.append(page.inner_text("#said"))
    assert said[0].startswith("snap.py:22 in <module>, 4.10 GiB, 88.5 %")
    assert said[1] == said[3] != said[2] and said[4] == said[0]
    page.keyboard.press("Enter")
    assert flame(page)["focus"] == "snap.py:22 in <module>"
    page.keyboard.press("Escape")
    assert flame(page)["focus"] == "all of it"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "flame-search"


def test_where_no_stack_is_known_there_is_no_flame_graph(pages, opened):
    trace = (
        "faultline-trace-text 1\ncan addresses events\ndevice 0\nheap driver\nheap torch below=driver\n"
        "alloc 64MiB torch @0x10000000\n"
    )
    source = made(write(pages / "stackless.txt", trace), pages / "stackless.html")
    page = opened(source)
    assert page.is_visible("#chart") and not page.is_visible("#flame-part")
    plain = opened(source, ready=None, java_script_enabled=False)
    assert "Without JavaScript" in plain.inner_text("main") and plain.locator("ol.stacks li").count() == 0


def test_what_is_found_deep_in_the_flame_graph_is_brought_into_sight(pages, opened):
    stack = " > ".join(f"deep.py:{at} f{at}" for at in range(1, 61))
    trace = (
        "faultline-trace-text 1\ncan addresses stacks events\ndevice 0\nheap driver\nheap torch below=driver\n"
        f"stack s = {stack}\nalloc 64MiB torch @0x10000000 stack=s\nalloc 32MiB torch @0x20000000 at flat.py:1 g\n"
    )
    page = opened(made(write(pages / "deep.txt", trace), pages / "deep.html"))
    assert len(flame(page)["cells"]) == 62
    room = "document.getElementById('flame-room').scrollTop"
    assert page.evaluate(room) == 0
    page.fill("#flame-search", "f58")
    top, row = page.evaluate(room), next(cell["row"] for cell in flame(page)["cells"] if "f58" in cell["name"])
    assert (
        row == 58
        and top <= row * 20
        and row * 20 + 20 <= top + page.evaluate("document.getElementById('flame-room').clientHeight")
    )
    page.focus("#flame")
    for _ in range(61):  # to the end, which holds itself in sight
        page.keyboard.press("ArrowDown")
    assert page.inner_text("#said").startswith("deep.py:60 in f60, 64.00 MiB")
    page.keyboard.press("Home")
    assert page.evaluate(room) == 0


def test_small_allocations_are_in_the_flame_graph_too(pages, opened):
    """More allocations than are kept one by one: what is not kept is there by its call stack."""
    small = "".join(
        f"alloc #s{at} 512 torch @{0x20000000 + 512 * (at % 997):#x} at small.py:{at % 3 + 1} f\nfree #s{at}\n"
        for at in range(85_000)
    )
    trace = (
        "faultline-trace-text 1\ncan addresses stacks events\ndevice 0\nheap driver\nheap torch below=driver\n"
        "alloc #k 64MiB torch @0x10000000 at big.py:3 main\n" + small
    )
    page = opened(made(write(pages / "small.txt", trace), pages / "small.html"))
    assert page.evaluate("faultline.model.keptCount < faultline.model.allocationCount")
    told = page.evaluate(
        """(() => {
          const { flame, model } = faultline, names = new Set();
          let worst = 0, exact = 0;
          for (const column of model.rest.columns) {
            flame.moment = model.peaks[column];
            flame.draw();
            const all = model.groupsAt(flame.moment).bytes.reduce((sum, bytes) => sum + bytes, 0);
            worst = Math.max(worst, Math.abs(all - flame.root.bytes), ...flame.held.left);
            exact += flame.held.isExact;
            for (const frame of flame.below(flame.root)) names.add(frame.name);
          }
          return { worst, exact, moments: model.rest.columns.length, names: [...names].sort() };
        })()"""
    )
    assert told["worst"] == 0 and told["exact"] == told["moments"] > 100
    assert told["names"] == ["big.py:3 in main"] + [f"small.py:{at} in f" for at in (1, 2, 3)]


def test_the_picture_follows_the_dark_and_prints(oom, opened):
    light, dark = opened(oom), opened(oom, color_scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert light.evaluate(colour) != dark.evaluate(colour)
    corner = "[...document.getElementById('chart').getContext('2d').getImageData(100, 20, 1, 1).data]"
    settled(light), settled(dark)
    assert light.evaluate(corner) != dark.evaluate(corner)
    dark.emulate_media(media="print")
    settled(dark)
    assert dark.evaluate(corner) == light.evaluate(corner)  # paper is white
    light.emulate_media(media="print")
    assert not light.is_visible(".buttons") and light.is_visible(".finding") and light.is_visible("#chart")
    narrow = opened(oom, viewport={"width": 380, "height": 800})
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 380


# -- browsers that lack something


def test_without_a_script_the_findings_are_readable(oom, opened):
    page = opened(oom, ready=None, java_script_enabled=False)
    text = page.inner_text("body")
    assert "memory/out-of-memory" in text and "786.00 MiB was requested" in text and "Without JavaScript" in text
    assert not page.is_visible("#timeline") and not page.is_visible(".jump")
    stacks = page.locator("ol.stacks li").all_inner_texts()
    assert "What lived at the peak, by call stack" in text and 4 <= len(stacks) <= 12
    assert "snap.py:22 <module>" in stacks[0] and "mostly" in stacks[0] and " %" in stacks[0]
    assert page.is_visible(".treemap") and page.locator(".replay svg").count() > 4
    assert not page.is_visible(".beside") and not page.is_visible(".copy")


def test_without_a_decompressor_the_page_has_its_own(oom, opened):
    page, usual = opened(oom, init="delete window.DecompressionStream"), opened(oom)
    told = (
        "JSON.stringify([Array.from(faultline.model.totals), Array.from(faultline.model.size), faultline.model.places])"
    )
    assert page.evaluate("typeof DecompressionStream") == "undefined"
    assert page.evaluate(told) == usual.evaluate(told)


def test_a_damaged_page_says_so(oom, pages, opened):
    text = oom.read_text()
    at = text.index('id="payload">') + 13
    page = opened(write(pages / "damaged.html", text[: at + 400] + "A" * 800 + text[at + 1200 :]), ready="no")
    assert "could not be read" in page.inner_text("main") and "memory/out-of-memory" in page.inner_text("main")


# -- other inputs


def test_names_from_the_input_run_no_code(pages, opened):
    name = json.dumps(EVIL)
    trace = (
        "faultline-trace-text 1\ncan addresses stacks streams tensors events times\n"
        f"device 0 name={name} capacity=1GiB\nheap driver\nheap torch below=driver\nstream 1 handle=0x10\n"
        f"tensor t = {name}[4,4] op={name} name={name}\ncall k = launch {name} grid=1 block=32\n"
        f"stack s = {name}:1 {name} > {json.dumps('/' + EVIL)}:2 {name}\n"
        "alloc #s 64MiB driver @0x10000000\nalloc #a 16MiB torch @0x10000000 tensor=t stack=s\n"
        f"op-begin {name}\nlaunch call=k stack=s\nop-end {name}\n"
        "alloc-failed 2GiB torch stack=s\n"
    )
    page = opened(
        made(write(pages / f"{EVIL.replace('/', '∕')}.txt", trace), pages / "evil.html"),
        init="window.hostile = () => { throw new Error('code of the input ran') }",
    )
    for grouping in page.evaluate("faultline.model.groupings.map((one) => one.by)"):
        page.select_option("#grouping", label=grouping)
    page.focus("#chart")
    page.keyboard.press("p")
    page.keyboard.press("Enter")
    settled(page)
    assert "<img src=x onerror=hostile()>" in page.inner_text("#detail")
    drawn = flame(page)
    assert any("<img src=x" in cell["name"] for cell in drawn["cells"])
    page.fill("#flame-search", "<img")
    page.click("#flame-list summary")
    page.wait_for_selector("#flame-lines li")
    page.focus("#flame")
    page.keyboard.press("ArrowDown")
    assert "<img src=x" in page.inner_text("#said")
    page.keyboard.press("Enter")
    assert "<img src=x" in page.inner_text("#flame-frame")
    for id in ("#lanes", "#segments", "#chart", "#flame"):
        page.hover(id)
    for id in ("#lanes", "#segments"):
        page.focus(id)
        page.keyboard.press("ArrowRight")
        assert "<img src=x" in page.inner_text("#said")
        page.keyboard.press("Enter")
        settled(page)  # the moment that was chosen is told, too
    for button in page.locator(".copy:visible, .beside:visible, .entry").all():
        button.click()
    links = page.evaluate("[...document.querySelectorAll('a[href]')].map((one) => one.getAttribute('href'))")
    assert all(link.startswith("vscode://file/") and "<" not in link for link in links)
    assert page.evaluate("document.querySelectorAll('img, iframe').length") == 0
    assert "<img src=x" in page.inner_text("h1")


def test_calls_of_streams_lie_under_the_memory(pages, opened):
    trace = (
        "faultline-trace-text 1\ncan addresses streams events\ndevice 0\nheap driver\nstream 1 handle=0x10\n"
        "call k = launch _Z3addPf grid=8 block=128\ncall c = copy from=0x2000000 host-to-device\n"
        "alloc #a 16MiB driver @0x10000000 at train.py:3 main\n"
        + "copy #a 4096 @0x10000000 call=c stream=1\nlaunch call=k at train.py:7 main\n"
        * 50
    )
    page = opened(made(write(pages / "calls.txt", trace), pages / "calls.html"))
    assert page.evaluate("faultline.model.lanes") == ["default stream", "stream 0x10"]
    assert page.evaluate("faultline.model.laneCounts.map((lane) => lane.reduce((a, b) => a + b))") == [50, 50]
    assert "launch × 50" in page.inner_text("#lanes-told") and "copy × 50" in page.inner_text("#lanes-told")
    page.focus("#lanes")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert "train.py:7" in page.inner_text("#said") and "event 2" in page.inner_text("#said")
    page.keyboard.press("Enter")
    assert seen(page)["moment"] == 2
    page.hover("#lanes", position={"x": 600, "y": 8})
    assert "add on 8×1×1 blocks of 128×1×1 threads" in page.inner_text("#tip") and "train.py:7" in page.inner_text(
        "#tip"
    )


def test_a_run_is_shown_with_its_copies(pages, opened):
    folder = pages / "run"
    subprocess.run(
        [FAULTLINE, "run", "--gpu", "virtual:1GiB", "-o", folder, "--", PROGRAMS / "copy_overrun"], capture_output=True
    )
    done = view(folder)
    assert done.returncode == 0 and done.stdout.decode().startswith(f"Wrote {folder}/page.html (")
    assert (folder / "page.html").stat().st_mode & 0o777 == 0o600
    page = opened(folder / "page.html")
    assert page.evaluate("faultline.model.callCount") > 0 and page.is_visible("#lanes")
    page.click(".jump")
    assert "api/bad-copy" in page.inner_text(".finding.chosen")


def test_a_plan_has_its_account_and_what_was_tried(pages, opened):
    folder = pages / "plan"
    folder.mkdir()
    trace = "faultline-trace-text 1\nsource dry-run\ncan events\ndevice 0 capacity=1GiB\nheap driver\nheap torch below=driver\nalloc #a 16MiB torch\n"
    write(folder / "trace.txt", trace)
    subprocess.run(
        [FAULTLINE, "explain", folder / "trace.txt", "--save-trace", folder / "process-1.faultline"],
        capture_output=True,
    )
    (folder / "trace.txt").unlink()
    gpu = {
        "name": "Tesla T4",
        "capacity": 15 << 30,
        "capacity_source": "measured",
        "context": 0,
        "context_source": "measured",
    }
    plan = {
        "verdict": "does-not-fit",
        "command": ["python", "train.py"],
        "gpu": gpu,
        "trace": "process-1.faultline",
        "needed": 20 << 30,
        "modules": [
            {
                "path": "GPT.blocks.*",
                "count": 12,
                "bytes": 12 << 30,
                "live": {"parameters": 1 << 30, "temporaries": 11 << 30},
            },
            {"path": "(optimizer)", "count": 1, "bytes": 8 << 30, "live": {"optimizer": 8 << 30}},
        ],
        "changes": [
            {
                "kind": "program",
                "what": "autocast",
                "label": "autocast",
                "tried": True,
                "fits": True,
                "needed": 11 << 30,
            }
        ],
    }
    write(folder / "command.json", json.dumps({"verb": "plan", "command": ["python", "train.py"], "exit_status": 1}))
    write(folder / "report.json", json.dumps({"schema": "faultline.report/1", "plan": plan}))
    page = opened(made(folder, pages / "plan.html"))
    assert (
        "GPT.blocks.*" in page.locator(".treemap").text_content()
        and "(optimizer)" in page.locator(".treemap").text_content()
    )
    areas = page.evaluate(
        "[...document.querySelectorAll('.treemap rect')].map((one) => one.width.baseVal.value * one.height.baseVal.value)"
    )
    assert areas[0] / areas[1] == pytest.approx(1.5, rel=1e-3)
    assert "12 ×, mostly temporaries" in page.get_attribute(".treemap g.temporaries", "aria-label")
    assert "autocast" in page.inner_text(".whatif") and "fits" in page.inner_text(".whatif")
    assert "Does not fit" in page.inner_text(".verdict")


def test_a_text_without_a_recording_has_its_findings(pages, opened):
    text = RECORDINGS.parent / "errors" / "illegal_address.txt"
    page = opened(made(text, pages / "text.html"), ready=None)
    assert "access/illegal-address" in page.inner_text(".finding") and "no picture to draw" in page.inner_text("main")


# -- writing it


def test_the_page_lies_beside_the_input_and_replaces_only_pages(tmp_path):
    source = write(tmp_path / "oom.pickle.xz", OOM.read_bytes())
    page = tmp_path / "oom.pickle.xz.html"
    for _ in range(2):  # a page of ours is written anew
        assert view(source).returncode == 0 and page.read_text().startswith(
            "<!doctype html>\n<!-- made by faultline view -->\n"
        )
    write(page, "<!doctype html>\nmine")
    assert "is no page of Faultline's" in refusal(view(source))
    assert page.read_text() == "<!doctype html>\nmine"
    assert view(source, "--force").returncode == 0 and "made by faultline" in page.read_text()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["oom.pickle.xz", "oom.pickle.xz.html"]


def test_what_cannot_be_written_is_one_sentence_and_no_file(tmp_path):
    source = write(tmp_path / "oom.pickle.xz", OOM.read_bytes())
    assert "is the input itself" in refusal(view(source, "-o", source, "--force"))
    assert "is a folder" in refusal(view(source, "-o", tmp_path))
    assert "could not be written" in refusal(view(source, "-o", tmp_path / "nowhere" / "page.html"))
    assert "is no plain file" in refusal(view(source, "-o", "/dev/null"))
    assert "give one with -o" in refusal(view("-", stdin=subprocess.DEVNULL))
    assert "there is no such file" in refusal(view(tmp_path / "missing.pickle"))
    assert "no input that Faultline knows" in refusal(view(write(tmp_path / "odd", b"\x00\x01\x02" * 40)))
    full = view(
        source,
        "-o",
        tmp_path / "page.html",
        restore_signals=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
    )
    assert "could not be written: File too large" in refusal(full)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["odd", "oom.pickle.xz"]


def test_standard_output_takes_a_page(tmp_path):
    done = view("-", "-o", "-", stdin=OOM.open("rb"))
    assert done.returncode == 0 and done.stdout.startswith(b"<!doctype html>") and done.stdout.endswith(b"</html>\n")


@pytest.mark.parametrize("settings, opens", [({}, True), ({"CI": "1"}, False), ({"DISPLAY": ""}, False)])
def test_a_page_is_opened_where_somebody_sits(tmp_path, settings, opens):
    source, told = write(tmp_path / "oom.pickle.xz", OOM.read_bytes()), tmp_path / "told"
    write(tmp_path / "xdg-open", f'#!/bin/sh\nprintf "%s" "$1" > {told}.part; mv {told}.part {told}\n').chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "DISPLAY": ":7",
        "CI": "",
        "WAYLAND_DISPLAY": "",
        **settings,
    }
    assert view(source, env=environment).returncode == 0
    assert not told.exists()  # nobody sits at a pipe
    outer, inner = pty.openpty()
    try:
        subprocess.run([FAULTLINE, "view", source], stdout=inner, env=environment, check=True)
        for _ in range(100 if opens else 5):
            if told.exists():
                break
            subprocess.run(["sleep", "0.05"])
        assert told.exists() == opens
        assert not opens or told.read_text() == f"{source}.html"
    finally:
        os.close(outer), os.close(inner)


def test_source_lines_are_left_out_where_told(tmp_path, opened):
    code = write(tmp_path / "train.py", "one\ntwo\nloss = model(batch)  # here\n")
    trace = f"faultline-trace-text 1\ncan events stacks\ndevice 0\nheap driver\nheap torch below=driver\nalloc 16MiB torch at {code}:3 main\nalloc-failed 2GiB torch at {code}:3 main\n"
    source = write(tmp_path / "trace.txt", trace)
    assert "loss = model(batch)" in made(source, tmp_path / "page.html").read_text()
    page = opened(tmp_path / "page.html")
    page.focus("#chart")
    page.keyboard.press("Enter")
    assert "3 ▶ loss = model(batch)  # here" in page.inner_text("#detail .source .here")
    assert "loss = model(batch)" not in made(source, tmp_path / "page.html", "--no-source").read_text()
    Path(code).unlink()
    assert "loss = model(batch)" not in made(source, tmp_path / "page.html").read_text()
