"""A stream is the thread's that chose it: blocks of one stream are not given to another."""

START = """
import threading, torch
side = torch.cuda.Stream()

def reserved(make):
    before = torch.cuda.memory_reserved()
    make()
    return (torch.cuda.memory_reserved() - before) >> 20

def block():
    torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
block()  # 64 MiB are cached for the default stream
"""


def test_a_stream_of_another_thread_is_not_ones_own(dry_run):
    ran = dry_run(
        START
        + """
chosen, done = threading.Event(), threading.Event()
def other():
    with torch.cuda.stream(side):
        chosen.set()
        done.wait()
thread = threading.Thread(target=other)
thread.start()
chosen.wait()
print(reserved(block))
done.set()
thread.join()
print(reserved(block))
"""
    )
    assert ran.out.split() == ["0", "0"], ran.err


def test_ones_own_stream_counts(dry_run):
    ran = dry_run(
        START
        + """
def inside():
    with torch.cuda.stream(side):
        print(reserved(block), reserved(block))
inside()
print(reserved(block))
thread = threading.Thread(target=inside)
thread.start()
thread.join()
"""
    )
    assert ran.out.split() == ["64", "0", "0", "0", "0"], ran.err


def test_backward_follows_the_thread_that_runs_it(dry_run):
    ran = dry_run(
        START
        + """
w = torch.randn(4096, 4096, device="cuda", requires_grad=True)
with torch.cuda.stream(side):
    loss = (w * 2).sum()
    torch.cuda.empty_cache()
    torch.empty(64 << 20, dtype=torch.uint8, device="cuda")  # cached for the side stream
    print(reserved(lambda: loss.backward()))
"""
    )
    assert ran.out.split() == ["0"], ran.err
