#!/usr/bin/env python3
"""Records memory snapshots of small programs on a real GPU, one process per case, for the allocator model's proof.

    python3 scripts/device/record_torch.py OUT_DIR [case ...]

Each case leaves OUT_DIR/<case>.pickle (what torch.cuda.memory._snapshot() returned) and a line in OUT_DIR/truth.json:
PyTorch's own peaks, retries, out-of-memory count and message. File names inside are rewritten, so recordings hold no paths of the machine.
"""
import json
import os
import pickle
import random
import subprocess
import sys
import time

MIB = 1 << 20
CASES = {}  # name -> (function, PYTORCH_CUDA_ALLOC_CONF, memory fraction or None, history options)


def case(conf="", fraction=None, name=None, **history):
    def register(function):
        CASES[name or function.__name__] = (function, conf, fraction, history)
        return function
    return register


# ---- workloads -------------------------------------------------------------------------------------------------------------

def churn(torch, rounds=700, seed=1, live_limit=3 << 30, big=True):
    """Random sizes, random lifetimes: every branch of best fit, split and merge."""
    rng = random.Random(seed)
    live, total = [], 0
    for _ in range(rounds):
        kind = rng.random()
        if kind < 0.45:
            size = rng.randint(1, 64 * 1024)
        elif kind < 0.7:
            size = rng.randint(64 * 1024, 2 * MIB)
        elif kind < 0.9 or not big:
            size = rng.randint(2 * MIB, 24 * MIB)
        else:
            size = rng.randint(24 * MIB, 300 * MIB)
        live.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        total += size
        while total > live_limit or (live and rng.random() < 0.42):
            gone = live.pop(rng.randrange(len(live)))
            total -= gone.numel()
            del gone
    return live


def mlp(torch, layers=4, width=1024):
    return torch.nn.Sequential(*[m for _ in range(layers) for m in (torch.nn.Linear(width, width), torch.nn.ReLU())]).cuda()


def train(torch, steps, keep=None, batch=64, accumulate=False):
    model = mlp(torch)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    total = 0
    for _ in range(steps):
        x = torch.randn(batch, 1024, device="cuda")
        loss = model(x).square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        if accumulate:
            total = total + loss.detach().clone() if keep == "value" else total + loss
        if keep == "outputs":
            KEPT.append(model(x))
    return total


KEPT = []

# ---- settings --------------------------------------------------------------------------------------------------------------

for label, conf, fraction in [
    ("default", "", None),
    ("expandable", "expandable_segments:True", None),
    ("max_split_64", "max_split_size_mb:64", None),
    ("max_split_21_rounding", "max_split_size_mb:21,max_non_split_rounding_mb:64", None),
    ("roundup_4", "roundup_power2_divisions:4", None),
    ("roundup_1", "roundup_power2_divisions:1", None),
    ("roundup_list", "roundup_power2_divisions:[1:8,64:4,256:2,>:1]", None),
    ("large_segment_40", "large_segment_size_mb:40", None),
    ("expandable_roundup", "expandable_segments:True,roundup_power2_divisions:8", None),
    ("expandable_large_segment", "expandable_segments:True,large_segment_size_mb:64", None),
    ("expandable_max_split", "expandable_segments:True,max_split_size_mb:64", None),
    ("gc_60", "garbage_collection_threshold:0.6", 0.024),
    ("gc_80_max_split", "garbage_collection_threshold:0.8,max_split_size_mb:64", 0.024),
    ("tight", "", 0.0226),
    ("tight_max_split", "max_split_size_mb:64", 0.0226),
    ("tight_expandable", "expandable_segments:True", 0.0226),
]:
    case(conf, fraction, name="churn_" + label)(lambda torch: churn(torch))


@case("expandable_segments:True")
def expandable_grow_shrink(torch):
    keep = churn(torch, 200, seed=4)
    del keep
    torch.cuda.empty_cache()
    a = [torch.empty(70 * MIB, dtype=torch.uint8, device="cuda") for _ in range(5)]
    del a[1], a[2]
    torch.cuda.empty_cache()
    b = torch.empty(50 * MIB, dtype=torch.uint8, device="cuda")
    c = torch.empty(200 * MIB, dtype=torch.uint8, device="cuda")
    return a, b, c


@case()
def empty_cache_calls(torch):
    for seed in range(4):
        keep = churn(torch, 120, seed=seed)
        torch.cuda.empty_cache()
    return keep


# ---- streams, pools, graphs ------------------------------------------------------------------------------------------------

def many_streams(torch):
    rng = random.Random(3)
    streams = [torch.cuda.Stream() for _ in range(5)]
    live = []
    for _ in range(500):
        owner, user = rng.choice(streams), rng.choice(streams)
        with torch.cuda.stream(owner):
            t = torch.empty(rng.randint(1000, 30 * MIB), dtype=torch.uint8, device="cuda")
            t.fill_(1)
        if rng.random() < 0.5:
            with torch.cuda.stream(user):
                t.add_(1)
            t.record_stream(user)
        live.append(t)
        del t
        if len(live) > 20:
            live.pop(rng.randrange(len(live)))
    return live


case(name="streams_many")(many_streams)
case("expandable_segments:True", name="streams_many_expandable")(many_streams)


def graphs(torch):
    model = mlp(torch, 3, 512)
    x = torch.randn(32, 512, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(x).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    model.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(x)
        loss = out.sum()
    other = torch.cuda.CUDAGraph()
    with torch.cuda.graph(other, pool=graph.pool()):
        out2 = model(x * 2).relu().sum()
    eager = [torch.empty(3 * MIB, dtype=torch.uint8, device="cuda") for _ in range(6)]
    for _ in range(5):
        graph.replay()
        other.replay()
        y = model(x)
    gone = torch.cuda.CUDAGraph()
    with torch.cuda.graph(gone):
        z = model(x).exp()
    del z
    gone.reset()
    del gone
    torch.cuda.empty_cache()
    more = [torch.empty(5 * MIB, dtype=torch.uint8, device="cuda") for _ in range(4)]
    return eager, more, out, loss, out2, graph, other, y


case(name="graphs")(graphs)
case("expandable_segments:True", name="graphs_expandable")(graphs)


@case()
def mem_pool(torch):
    pool = torch.cuda.MemPool()
    a = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
    with torch.cuda.use_mem_pool(pool):
        inside = churn(torch, 150, seed=7, big=False)
        del inside[::2]
    b = churn(torch, 150, seed=8, big=False)
    with torch.cuda.use_mem_pool(pool):
        inside2 = churn(torch, 60, seed=9, big=False)
    return a, b, inside, inside2, pool


# ---- failures --------------------------------------------------------------------------------------------------------------

@case(fraction=0.03)
def oom_fragmented(torch):
    """Every segment keeps one small survivor: much is free, nothing is whole."""
    kept, passing = [], []
    try:
        while True:
            passing.append(torch.empty(4 * MIB, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        pass
    kept = passing[::5]
    del passing
    torch.empty(512 * MIB, dtype=torch.uint8, device="cuda")


@case("expandable_segments:True", fraction=0.03)
def oom_fragmented_expandable(torch):
    passing = []
    try:
        while True:
            passing.append(torch.empty(4 * MIB, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        pass
    kept = passing[::5]
    del passing
    served = torch.empty(512 * MIB, dtype=torch.uint8, device="cuda")
    return kept, served


@case()
def oom_device_full(torch):
    weights = [torch.empty(8 << 30, dtype=torch.uint8, device="cuda") for _ in range(15)]
    cache = []
    while True:
        cache.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))


@case()
def oom_too_large_ever(torch):
    small = torch.ones(1000, device="cuda")
    try:
        torch.empty(10000, 10000, 1000, device="cuda")
    except torch.OutOfMemoryError as error:
        NOTES.append(str(error))
    for _ in range(6):
        piece = torch.empty(1_000_000_000, device="cuda")
        del piece
        torch.cuda.empty_cache()
    return small


@case()
def oom_outside_memory(torch):
    import ctypes
    torch.zeros(1, device="cuda")
    cudart = ctypes.CDLL([line.split()[-1] for line in open("/proc/self/maps") if "libcudart" in line][0])
    pointer = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(110 << 30)) == 0
    held = [torch.empty(4 << 30, dtype=torch.uint8, device="cuda") for _ in range(3)]
    torch.empty(40 << 30, dtype=torch.uint8, device="cuda")


@case(fraction=0.02)
def oom_idle_other_stream(torch):
    """A side stream's cache is split by survivors: idle for everybody else."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        parts = [torch.empty(9 * MIB, dtype=torch.uint8, device="cuda") for _ in range(260)]
    kept = parts[::2]
    del parts
    torch.empty(900 * MIB, dtype=torch.uint8, device="cuda")


@case(fraction=0.02)
def oom_retry_batch(torch):
    """Caught, then tried with half the batch until it fits."""
    model = mlp(torch, 6, 2048)
    batch = 1 << 18
    while batch > 1:
        try:
            y = model(torch.randn(batch, 2048, device="cuda")).sum()
            y.backward()
            break
        except torch.OutOfMemoryError:
            batch //= 2
    NOTES.append(f"fits at {batch}")


# ---- growth and its clean twins --------------------------------------------------------------------------------------------

case(name="train_clean")(lambda torch: train(torch, 12))
case(name="train_accumulated_loss")(lambda torch: train(torch, 40, accumulate=True))
case(name="train_accumulated_value")(lambda torch: train(torch, 40, accumulate=True, keep="value"))
case(name="train_keeps_outputs")(lambda torch: train(torch, 25, keep="outputs"))


@case()
def eval_keeps_graph(torch):
    model = mlp(torch)
    for _ in range(40):
        KEPT.append(model(torch.randn(128, 1024, device="cuda")))


@case()
def eval_no_grad_clean(torch):
    model = mlp(torch)
    best = None
    with torch.no_grad():
        for _ in range(60):
            best = model(torch.randn(128, 1024, device="cuda")).mean()
    return best


@case()
def rebind_loop_clean(torch):
    for _ in range(200):
        x = torch.randn(1024, 1024, device="cuda")
        y = torch.randn(1024, 1024, device="cuda")
        z = x @ y
    return z


@case()
def hook_keeps_activations(torch):
    model = mlp(torch)
    model[2].register_forward_hook(lambda module, args, output: KEPT.append(output.detach()))
    with torch.no_grad():
        for _ in range(50):
            model(torch.randn(256, 1024, device="cuda"))


@case()
def growing_cache_by_shape(torch):
    rng = random.Random(5)
    table = {}
    for _ in range(120):
        n = rng.randint(100, 4000)
        table[n] = torch.empty(n, 2048, device="cuda")
        torch.empty(n, 512, device="cuda").zero_()
    return table


@case()
def kv_cache_clean(torch):
    keys = [torch.empty(4, 8, 0, 64, device="cuda") for _ in range(4)]
    for _ in range(100):
        for i in range(4):
            keys[i] = torch.cat([keys[i], torch.randn(4, 8, 1, 64, device="cuda")], dim=2)
    return keys


@case()
def big_then_small(torch):
    """A large first phase leaves its cache behind: idle, but returned on demand."""
    model = mlp(torch)
    with torch.no_grad():
        model(torch.randn(300_000, 1024, device="cuda"))
    for _ in range(30):
        model(torch.randn(64, 1024, device="cuda")).sum().backward()
    return model


@case()
def model_load_only(torch):
    return [torch.nn.Linear(1024, 1024).cuda() for _ in range(40)]


@case()
def deep_forward_only(torch):
    """One forward pass of a deep net: activations pile up inside one step, and that is right."""
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(512, 512) for _ in range(60))

        def forward(self, x):
            for layer in self.layers:
                x = torch.relu(layer(x))
            return x
    model = Net().cuda()
    return model(torch.randn(512, 512, device="cuda")), model


# ---- recording modes -------------------------------------------------------------------------------------------------------

case(name="ring_default", max_entries=500)(lambda torch: churn(torch, 700, seed=11))
case("expandable_segments:True", name="ring_expandable", max_entries=500)(lambda torch: churn(torch, 700, seed=11))
case(name="ring_streams", max_entries=400)(many_streams)
case(name="ring_train", max_entries=900)(lambda torch: train(torch, 12))
case(name="stacks_all", stacks="all")(lambda torch: train(torch, 2))
case(name="state_only", enabled="state")(lambda torch: train(torch, 2))
case(name="no_context", context=None)(lambda torch: churn(torch, 200, seed=2))
case(name="with_user_metadata")(lambda torch: with_metadata(torch))


def with_metadata(torch):
    if hasattr(torch._C, "_cuda_setMemoryMetadata"):
        torch._C._cuda_setMemoryMetadata("phase one")
    with torch.profiler.record_function("warm up"):
        train(torch, 3)


NOTES = []


def rewrite(snapshot):
    """Shared frame dicts are changed once, in place, so sharing survives."""
    import torch
    site = os.path.dirname(os.path.dirname(torch.__file__))
    here = os.path.dirname(os.path.abspath(__file__))
    lib = os.path.dirname(os.__file__)
    seen = set()
    def visit(frames):
        for frame in frames or ():
            if not isinstance(frame, dict) or id(frame) in seen:
                continue
            seen.add(id(frame))
            name = frame["filename"]
            for old, new in ((here, "/home/user/project"), (site, "/usr/local/lib/python3.12/dist-packages"), (lib, "/usr/lib/python3.12")):
                name = name.replace(old, new)
            frame["filename"] = name
    segments = snapshot if isinstance(snapshot, list) else snapshot["segments"]
    for segment in segments:
        visit(segment.get("frames"))
        for block in segment["blocks"]:
            visit(block.get("frames"))
    if isinstance(snapshot, dict):
        for trace in snapshot["device_traces"]:
            for entry in trace:
                visit(entry.get("frames"))


def child(name, out_dir):
    function, conf, fraction, history = CASES[name]
    import torch
    torch.manual_seed(0)
    torch.cuda.init()
    if fraction:
        torch.cuda.set_per_process_memory_fraction(fraction)
    options = {"max_entries": 300000, "stacks": "python", **history}
    torch.cuda.memory._record_memory_history(**options)
    message, keep = "", None
    try:
        keep = function(torch)
    except torch.OutOfMemoryError as error:
        message = str(error)
        error.__traceback__ = None
    snapshot = torch.cuda.memory._snapshot()
    stats = torch.cuda.memory_stats()
    rewrite(snapshot)
    with open(os.path.join(out_dir, name + ".pickle"), "wb") as f:
        pickle.dump(snapshot, f, protocol=4)
    if name == "train_clean":
        listed = torch.cuda.memory_snapshot()
        rewrite(listed)
        with open(os.path.join(out_dir, "segments_list.pickle"), "wb") as f:
            pickle.dump(listed, f, protocol=4)
        with open(os.path.join(out_dir, "protocol5.pickle"), "wb") as f:
            pickle.dump(snapshot, f, protocol=5)
        with open(os.path.join(out_dir, "protocol2.pickle"), "wb") as f:
            pickle.dump(snapshot, f, protocol=2)
    free, total = torch.cuda.mem_get_info()
    truth = {"case": name, "conf": conf, "fraction": fraction, "total": total, "peak_allocated": stats["allocated_bytes.all.peak"],
             "peak_reserved": stats["reserved_bytes.all.peak"], "retries": stats["num_alloc_retries"], "ooms": stats["num_ooms"],
             "events": sum(map(len, snapshot["device_traces"])), "message": message, "notes": NOTES}
    print("TRUTH " + json.dumps(truth), flush=True)
    del keep


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "--child":
        return child(sys.argv[2], sys.argv[3])
    out_dir, names = sys.argv[1], sys.argv[2:] or list(CASES)
    os.makedirs(out_dir, exist_ok=True)
    pending, running, truths = list(names), [], []
    while pending or running:
        alone = any(n.startswith("oom_device") or n.startswith("oom_outside") for n, _ in running)
        if pending and len(running) < 6 and not alone:
            if pending[0].startswith(("oom_device", "oom_outside")) and running:
                pass  # these need the whole device: wait for the others
            else:
                name = pending.pop(0)
                env = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=CASES[name][1])
                running.append((name, subprocess.Popen([sys.executable, os.path.abspath(sys.argv[0]), "--child", name, out_dir], env=env,
                                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)))
                continue
        for item in list(running):
            if item[1].poll() is not None:
                running.remove(item)
                text = item[1].stdout.read()
                lines = [l for l in text.splitlines() if l.startswith("TRUTH ")]
                if lines:
                    truths.append(json.loads(lines[-1][6:]))
                    t = truths[-1]
                    print(f"{t['case']:28} events {t['events']:6} peak {t['peak_allocated']:>12} / {t['peak_reserved']:>12} retries {t['retries']} ooms {t['ooms']} {t['message'][:90]}", flush=True)
                else:
                    print(item[0], "FAILED", text[-600:], flush=True)
        time.sleep(0.05)
    with open(os.path.join(out_dir, "truth.json"), "w") as f:
        json.dump(truths, f, indent=1)


if __name__ == "__main__":
    main()
