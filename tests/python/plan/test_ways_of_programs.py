"""What ordinary programs do with PyTorch beside training, each by itself: none of it may fail in a dry run and not on a GPU, and what does fail is whose it is."""

from __future__ import annotations

import pytest

START = """
import copy, io, os, tempfile, torch
x = torch.randn(64, 32, device="cuda")
folder = tempfile.mkdtemp()
def net():
    return torch.nn.Sequential(torch.nn.Linear(32, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).to("cuda")
class Doubled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(32, 2)
    def forward(self, x):
        return self.layer(x) * 2
def local():
    class Hidden(Doubled):
        pass
    return Hidden().to("cuda")
"""

WAYS = {
    "a tensor of scalars": "made = torch.tensor([x.sum(), x.mean()])\nassert made.shape == (2,) and made.device.type == 'cpu' and made.dtype is torch.float32",
    "… on the GPU, with numbers": "made = torch.tensor([[x.argmax(), 2], [3, x.argmin()]], device='cuda')\nassert made.shape == (2, 2) and made.is_cuda and made.dtype is torch.int64",
    "… of several types": "assert torch.as_tensor([x.sum().double(), 1]).dtype is torch.float64 and x.new_tensor([x.argmax(), 2]).dtype is torch.float32",
    "… of tensors with one element": "assert torch.tensor([x[0, :1], x[1, :1]]).shape == (2,)",
    "lists as indices": "assert x[[0, 1]].shape == (2, 32) and x[:, [1, 2, 3]].shape == (64, 3) and x[[True] * 64].shape == (64, 32)",
    "lists as indices of what is written": "x[[0, 1]] = 0.0\nx[[2, 3], [4, 5]] = torch.ones(2, device='cuda')",
    "lists as indices in a thread": "import threading\nfound = []\nthread = threading.Thread(target=lambda: found.append(x[[0, 1]].shape))\nthread.start()\nthread.join()\nassert found == [(2, 32)]",
    "lists as indices in backward": (
        "class Picks(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 1\n    @staticmethod\n    def backward(ctx, g):\n        assert g[[0, 2]].shape == (2, 32)\n        return g\n"
        "w = x.clone().requires_grad_()\nPicks.apply(w).sum().backward()"
    ),
    "kthvalue": "values, places = torch.kthvalue(x, 3, 1)\nassert values.shape == (64,) and 0 <= int(places.max()) < 32",
    "kthvalue with keywords": "assert x.kthvalue(3, dim=0, keepdim=True).values.shape == (1, 32)",
    "a list of numbers of PyTorch's other constructors": "assert torch.FloatTensor([1, 2]).to('cuda').is_cuda and torch.cuda.LongTensor([3]).tolist() == [3]",
    "a traced module saved": "torch.jit.save(torch.jit.trace(net(), x), folder + '/m.pt')\nassert torch.jit.load(folder + '/m.pt', map_location='cuda')(x).shape == (64, 2)",
    "a traced module saved by itself": "torch.jit.trace(net(), x).save(folder + '/m.pt')\nassert torch.jit.load(folder + '/m.pt', map_location='cpu')(x.cpu()).shape == (64, 2)",
    "a traced module in a buffer": "buffer = io.BytesIO()\ntorch.jit.save(torch.jit.trace(net(), x), buffer)\nbuffer.seek(0)\nassert torch.jit.load(buffer)(x).shape == (64, 2)",
    "a scripted module saved by itself": "torch.jit.script(net()).save(folder + '/m.pt')\nmade = torch.jit.load(folder + '/m.pt', map_location='cpu')\nassert made(x.cpu()).shape == (64, 2) and not next(made.parameters()).is_cuda",
    "a scripted module of a local class": "made = local()\ntorch.jit.save(torch.jit.script(made), folder + '/m.pt')\nother = torch.jit.load(folder + '/m.pt')\nassert other is not made and other(x).shape == (64, 2)",
    "a scripted module copied": "made = copy.deepcopy(torch.jit.script(net()))\nmade.save(folder + '/m.pt')\nassert made(x).shape == (64, 2)",
    "a scripted module frozen": "made = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.script(net().eval())))\nassert made(x).shape == (64, 2) and str(made.graph) and made.code",
    "the like of it on the host": (
        "before = torch.cuda.memory_allocated()\nbig = torch.nn.Parameter(torch.zeros(1 << 20, device='cuda'))\nheld = torch.cuda.memory_allocated()\n"
        "for like in ('empty', 'zeros', 'ones', 'rand', 'randn'):\n    made = getattr(torch, like + '_like')(big, device='cpu')\n    assert made.device.type == 'cpu' and made.shape == big.shape, like\n"
        "assert torch.zeros_like(big, device='cpu').sum() == 0 and torch.full_like(big, 2.0, device='cpu')[5] == 2 and big.new_zeros(3, device='cpu').tolist() == [0, 0, 0]\n"
        "assert torch.zeros_like(big, device='cpu', pin_memory=True).is_pinned() and torch.randint_like(big, 5, device='cpu', dtype=torch.int64).max() < 5\n"
        "assert torch.cuda.memory_allocated() == held > before"
    ),
    "the like of it nowhere": "made = torch.empty_like(x, device='meta')\nassert made.is_meta and x.new_empty(5, device='meta').is_meta and x.to('meta').is_meta",
    "the like of what the host has": "made = torch.zeros_like(torch.ones(3), device='cuda')\nassert made.is_cuda and torch.ones(3).new_ones(2, device='cuda').is_cuda",
    "zeros and ones like what is not known": "o = torch.nn.Linear(32, 1).cuda()(x)\nunique = torch.unique(torch.ones_like(o).int())\nassert unique.tolist() == [1] and not torch.any((unique != 0) & (unique != 1))\nassert o.new_zeros(3).sum().item() == 0 and torch.full_like(o, 3).max().item() == 3",
    "the most that is scattered over all": (
        "batch = torch.arange(16, device='cuda').repeat_interleave(4)\nkept = batch[x.sum(1).argsort()]\n"
        "made = torch.arange(64, device='cuda').scatter_(0, torch.arange(64, device='cuda'), kept)\nassert int(made.max()) + 1 == 16"
    ),
    "the most that is scattered over a part": (
        "some = x.sum(1).argsort()[:8] % 8\nmade = torch.full((64,), 40, device='cuda').scatter_(0, torch.arange(8, device='cuda'), some)\nassert int(made.max()) == 40"
    ),
    "the most that is chosen among known numbers": "batch = torch.arange(16, device='cuda').repeat_interleave(4)\nkept = batch[x.sum(1).argsort()[:30]]\nassert int(kept.max()) + 1 == 16",
}


@pytest.mark.parametrize("way", WAYS)
def test_programs_that_run_on_a_gpu_run_in_a_dry_run(dry_run, way):
    ran = dry_run(START + WAYS[way] + "\n")
    assert ran.status == 0, ran.err
    assert ran.summary["unplanned"] is None


def test_what_makes_a_tensor_again_decides_no_size(dry_run):
    ran = dry_run(START + "both = torch.tensor([x.sum(), x.mean()])\nprint(both.tolist())\n")
    assert not any("sizes may come" in note["text"] for note in ran.notes()), ran.notes()


def test_a_scripted_module_that_is_saved_takes_none_of_the_gpu_again(dry_run):
    big = "import torch\nclass Big(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.w = torch.nn.Parameter(torch.zeros(1 << 20, device='cuda'))\n    def forward(self, x):\n        return x\n"
    hide = "def hidden():\n    class Hidden(Big):\n        pass\n    return Hidden()\nm = torch.jit.script(hidden())\nbefore = torch.cuda.memory_allocated()\nm.save('m.pt')\nassert torch.cuda.memory_allocated() == before\n"
    load = "other = torch.jit.load('m.pt')\nassert torch.cuda.memory_allocated() == 2 * before and other.w.is_cuda\n"
    ran = dry_run(big + hide + load)
    assert ran.status == 0, ran.err


def test_a_mistake_of_the_dry_run_in_an_operation_is_its_own(dry_run):
    """PyTorch's kernel takes these operands; the dry run's own code fails over them."""
    ran = dry_run(
        """
        import torch
        from faultline.plan.torch.operations import operations
        operations.SAME_TYPE[torch.ops.aten.tanh.default] = ("first",)
        torch.tanh(torch.ones(4, device="cuda"))
        """
    )
    assert ran.status != 0 and "this is a failure of Faultline's dry run" in ran.summary["unplanned"]["text"], ran.err
    assert not ran.report()["findings"]


def test_what_follows_values_breaks_no_program(dry_run):
    ran = dry_run(
        """
        import torch, faultline.plan.torch.values.shares as shares
        def breaks(*_args):
            raise IndexError("nothing")
        shares.follow = breaks
        x = torch.ones(3, device="cuda")
        print(torch.tanh(x).sum().item())
        """
    )
    assert ran.status == 0, ran.err
    assert any("left it out" in note["text"] for note in ran.notes())


TWO_SIZES = """
import torch
logits = torch.nn.Linear(64, 100).cuda()(torch.randn(8, 64, device="cuda"))
{size}
torch.nn.functional.cross_entropy(torch.zeros(n, 4, device="cuda"), torch.zeros(8, dtype=torch.long, device="cuda"))
"""


def test_a_size_of_a_stand_in_proves_nothing(dry_run):
    ran = dry_run(TWO_SIZES.format(size="n = int(logits[0].argmax()) + 1"))
    assert ran.status != 0 and not ran.report()["findings"] and ran.summary["stand_in"]


def test_a_size_of_the_program_does(dry_run):
    ran = dry_run(TWO_SIZES.format(size="int(logits[0].argmax())\nn = 7"))
    assert ran.status != 0 and [found["rule"] for found in ran.report()["findings"]] == ["tensor/shape-mismatch"]


UNKNOWN = """
import torch
y = torch.nn.Linear(4, 1).cuda()(torch.randn(2000, 4, device="cuda")).view(-1).detach()
z = torch.zeros({size}, device="cuda", dtype={kind})
rows, places = torch.arange(40, device="cuda"), torch.randint(0, 50, (40,), device="cuda")
{write}
print(torch.nonzero({mask}).size(0))
"""


@pytest.mark.parametrize(
    "size, kind, write, mask, most",
    [
        ("2000", "torch.bool", "z.copy_(y > 0)", "z", 2000),
        ("2000", "torch.bool", "z[:1500] = y[:1500] > 0", "z", 2000),
        ("200000", "torch.bool", "z.copy_(torch.rand(200000) > 0.5)", "z", 200000),
        ("2000", "torch.float32", "z.copy_(y)", "z != 0", 2000),
        ("2000", "torch.float32", "z += y", "z > 0", 2000),
        ("2000", "torch.float32", "z[y > 0] = y[y > 0]", "z != 0", 2000),
        ("2000", "torch.bool", "z[:40].copy_(y[:40] > 0)\nz[40:60].zero_()", "z", 2000),
        ("(40, 50)", "torch.float32", "z[rows, places] = 1", "z == 1", 40),
        ("(40, 50)", "torch.float32", "z[rows, places] = 1\nz.copy_(y.view(40, 50))", "z == 1", 2000),
        ("(40, 50)", "torch.bool", "z[rows, places] = True\nother = torch.zeros_like(z)\nother.copy_(z)", "other", 40),
    ],
)
def test_a_mask_chooses_no_more_than_was_written_into_it(dry_run, size, kind, write, mask, most):
    """What is copied into it counts as what it was."""
    ran = dry_run(UNKNOWN.format(size=size, kind=kind, write=write, mask=mask))
    assert ran.out.split() == [str(most)], ran.err


def test_one_column_of_each_row_is_chosen(dry_run):
    """A margin loss: the class of each row, by a mask with a one in each."""
    ran = dry_run(
        """
        import torch
        cosine = torch.nn.Linear(8, 10).cuda()(torch.randn(32, 8, device="cuda"))
        mask = torch.zeros(32, 10, device="cuda")
        mask[torch.arange(32, device="cuda"), torch.randint(0, 10, (32,), device="cuda")] = 1
        (mask * (cosine[mask == 1] - 0.5).unsqueeze(1)).sum().backward()
        """
    )
    assert ran.status == 0, ran.err


def test_a_size_that_is_counted_as_large_as_it_can_be_proves_nothing(dry_run):
    ran = dry_run(
        """
        import torch
        y = torch.nn.Linear(8, 10).cuda()(torch.randn(32, 8, device="cuda"))
        y[y > y.mean()] * torch.ones(32, device="cuda")
        """
    )
    assert ran.status != 0 and "--real computes them" in ran.summary["unplanned"]["text"], ran.err
    assert not ran.report()["findings"]


@pytest.mark.parametrize("mode, weighted", [("sum", False), ("sum", True), ("mean", False)])
def test_sparse_gradients_of_bags_have_as_many_rows_as_indices(dry_run, mode, weighted):
    ran = dry_run(
        f"""
        import torch
        bags = torch.nn.EmbeddingBag(1 << 16, 64, mode="{mode}", sparse=True).cuda()
        steps = torch.optim.SparseAdam(bags.parameters())
        places, begins = torch.randint(0, 1 << 16, (300,), device="cuda"), torch.arange(0, 300, 10, device="cuda")
        weights = torch.rand(300, device="cuda") if {weighted} else None
        before = torch.cuda.memory_allocated()
        bags(places, begins, weights).sum().backward()
        assert bags.weight.grad.is_sparse and bags.weight.grad._values().shape == (300, 64)
        assert torch.cuda.max_memory_allocated() - before < 2 << 20  # dense it has 16 MiB
        steps.step()
        """
    )
    assert ran.status == 0, ran.err


@pytest.mark.parametrize("kind", ["FloatTensor", "DoubleTensor", "Tensor", "LongTensor", "IntTensor"])
def test_old_constructors_read_tensors_of_the_gpu_below_the_modes(dry_run, kind):
    whole = kind in ("LongTensor", "IntTensor")
    number = "x.argmax()" if whole else "x.sum()"
    ran = dry_run(f"import torch\nx = torch.rand(3, device='cuda')\nprint(*torch.{kind}([{number}, 2]).shape)\n")
    assert ran.status == 0 and ran.out.split() == ["2"], ran.err


def test_what_an_old_constructor_reads_is_known_where_it_is(dry_run):
    ran = dry_run(
        "import torch\nx = torch.tensor([3, 4], device='cuda')\nprint(torch.FloatTensor([x[1], x.sum()]).tolist())\n"
    )
    assert ran.status == 0 and ran.out.strip() == "[4.0, 7.0]", ran.err
    assert not [note for note in ran.notes() if "stand-in" in note["text"]]
