"""What libraries do with PyTorch that programs of one file seldom do: each way as a small program, and its clean twin."""

import json
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

DEVICES = """
        import json, torch
        from torch.utils._device import _device_constructors
        given = {"tensor": ([],), "as_tensor": ([1],), "asarray": ([1],), "arange": (3,), "eye": (3,), "full": ((2,), 1.0), "linspace": (0, 1, 3), "logspace": (0, 1, 3),
                 "randint": (5, (2,)), "randperm": (3,), "range": (0, 3), "scalar_tensor": (1.0,), "tril_indices": (3, 3), "triu_indices": (3, 3), "empty_strided": ((2,), (1,)),
                 "ones": (2,), "zeros": (2,), "rand": (2,), "randn": (2,), "empty": (2,), "hann_window": (4,), "bartlett_window": (4,), "normal": (0.0, 1.0, (2,))}
        def devices():
            found = {name: str(getattr(torch, name)(*arguments).device) for name, arguments in given.items()}
            found["get_default_device"] = str(torch.get_default_device())
            found["new_tensor"] = str(torch.ones(2, device="cpu").new_tensor([1]).device)
            found["told"] = str(torch.tensor([1], device="cpu").device)
            found["linear"] = str(torch.nn.Linear(2, 2).weight.device)
            return found
        all = {}
        with torch.device("meta"):
            all["meta"] = devices()
            with torch.device("cpu"):
                all["inner"] = devices()
        torch.set_default_device("meta")
        all["default"] = devices()
        torch.set_default_device("cpu")
        all["cpu"] = devices()
        torch.set_default_device(None)
        print(json.dumps(all))
"""


def test_a_default_device_is_where_new_tensors_go_as_without_a_plan(dry_run, tmp_path):
    program = tmp_path / "plain.py"
    program.write_text("\n".join(line[8:] for line in DEVICES.splitlines()))
    plain = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True).stdout
    ran = dry_run(DEVICES + "        torch.ones(2, device='cuda')\n")
    assert ran.status == 0, ran.err
    assert json.loads(ran.out) == json.loads(plain)


def test_on_the_gpu_as_well(dry_run):
    ran = dry_run(
        """
        import torch
        with torch.device("cuda"):
            print({torch.tensor([1.0]).device.type, torch.get_default_device().type, torch.nn.Linear(2, 2).weight.device.type, torch.as_tensor([1]).device.type})
        """
    )
    assert ran.status == 0 and ran.out.strip() == "{'cuda'}", ran.err


def test_overrides_know_functions_by_the_names_that_programs_use(dry_run):
    ran = dry_run(
        """
        import torch
        from torch.nn import functional as F
        from torch.overrides import TorchFunctionMode

        class Mode(TorchFunctionMode):
            seen = []
            def __torch_function__(self, func, types, args=(), kwargs=None):
                self.seen += [name for name, known in NAMES.items() if func is known]
                return func(*args, **(kwargs or {}))

        class Kind(torch.Tensor):
            seen = []
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                cls.seen += [name for name, known in NAMES.items() if func is known]
                return super().__torch_function__(func, types, args, kwargs or {})

        NAMES = {"linear": F.linear, "tensor": torch.tensor, "one_hot": F.one_hot, "batch_norm": F.batch_norm}
        x, weight = torch.ones(2, 4, device="cuda"), torch.ones(3, 4, device="cuda")
        labels = torch.zeros(2, dtype=torch.long, device="cuda")
        with Mode():
            F.linear(x, weight), torch.tensor([1.0], device="cuda"), F.one_hot(labels, 3), F.batch_norm(x, None, None, training=True)
        print(Mode.seen)
        out = F.linear(x.as_subclass(Kind), weight)
        print(Kind.seen, type(out).__name__, tuple(out.shape))
        """
    )
    assert ran.status == 0, ran.err
    assert ran.out.splitlines() == ["['linear', 'tensor', 'one_hot', 'batch_norm']", "['linear'] Kind (2, 3)"]


STRANGE = {
    "a hash of what is not there yet": "def __hash__(self): return hash(tuple(self.states))",
    "a hash that changes": "count = 0\n    def __hash__(self):\n        type(self).count += 1\n        return self.count",
    "equality of tensors": "def __eq__(self, other): return torch.ones(2)\n    __hash__ = lambda self: 7",
    "an empty length": "def __len__(self): return 0",
    "a length that fails": "def __len__(self): raise TypeError('not known')",
}


@pytest.mark.parametrize("what", STRANGE.values(), ids=STRANGE)
def test_a_module_may_say_anything_of_itself(dry_run, what):
    """torchmetrics' metrics are told apart by states that they do not have while they are made."""
    ran = dry_run(
        f"""
import torch
class Strange(torch.nn.Module):
    {what}
    def __init__(self):
        super().__init__()
        self.states = [1, 2]
        self.linear = torch.nn.Linear(256, 256)
    def forward(self, x):
        return self.linear(x)
net = Strange().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    net(torch.ones(8, 256, device="cuda")).sum().backward()
    optimizer.step()
    net.zero_grad()
net.eval()
with torch.no_grad():
    net(torch.ones(8, 256, device="cuda"))
"""
    )
    assert ran.status == 0, ran.err
    assert ran.summary["steps"] == 3 and set(ran.summary["phases"]) >= {"training", "evaluation"}
    assert not [note for note in ran.notes() if note["kind"] == "skipped"]


@pytest.mark.parametrize("where", ["cpu", "cuda"])
@pytest.mark.parametrize("lengths", ["tuple", "cpu", "cuda"])
@pytest.mark.parametrize("joined", [True, False])
def test_ctc_reads_lengths_wherever_they_are(dry_run, where, lengths, joined):
    ran = dry_run(
        f"""
        import torch
        given, times = [10, 9, 8, 7], [50, 50, 45, 40]
        place = lambda values: tuple(values) if "{lengths}" == "tuple" else torch.tensor(values, device="{lengths}")
        targets = torch.randint(1, 20, (sum(given),) if {joined} else (4, 10)).to("{where}")
        logits = torch.randn(50, 4, 20, device="cuda", requires_grad=True)
        loss = torch.nn.CTCLoss(reduction="none")(logits.log_softmax(-1), targets, place(times), place(given))
        loss.sum().backward()
        print(tuple(loss.shape), loss.device.type, tuple(logits.grad.shape))
        """
    )
    assert ran.status == 0 and ran.out.strip() == "(4,) cuda (50, 4, 20)", ran.err
    assert not [note for note in ran.notes() if "ctc" in note["text"]]


def test_lengths_that_nobody_knows_are_said(dry_run):
    ran = dry_run(
        """
        import torch
        lengths = torch.randn(4, 1000, device="cuda").argmax(-1) % 10
        logits = torch.randn(50, 4, 20, device="cuda", requires_grad=True)
        torch.nn.CTCLoss()(logits.log_softmax(-1), torch.ones(34, dtype=torch.long, device="cuda"), torch.full((4,), 50, device="cuda"), lengths).backward()
        """
    )
    assert ran.status == 0, ran.err
    assert [note["kind"] for note in ran.notes() if "ctc" in note["text"]] == ["value"]


LOOP = """
        import torch
        net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64)).cuda()
        weight = torch.zeros(64, 64, device="cuda", requires_grad=True)
        average = [p.detach().clone() for p in net.parameters()]
        optimizer = {optimizer}
        for _ in range(6):
            for _ in range({backwards}):
                net(torch.ones(8, 64, device="cuda") @ weight).sum().backward()
{update}
"""
BY_HAND = {
    "in the data": "            for p in net.parameters():\n                p.data.add_(p.grad, alpha=-0.1)\n                p.grad = None",
    "without a graph": "            with torch.no_grad():\n                for p in net.parameters():\n                    p -= 0.1 * p.grad\n                    p.grad.zero_()",
    "a tensor of no module": "            with torch.no_grad():\n                weight -= 0.1 * weight.grad\n                weight.grad = None",
    "all at once": "            with torch.no_grad():\n                torch._foreach_add_(list(net.parameters()), [p.grad for p in net.parameters()], alpha=-0.1)",
}
NO_STEPS = {
    "gradients alone": "            [p.grad.mul_(0.5) for p in net.parameters()]",
    "an average beside": "            [a.mul_(0.9).add_(p.detach(), alpha=0.1) for a, p in zip(average, net.parameters())]",
    "buffers": "            net[1].running_mean.zero_()",
}


@pytest.mark.parametrize("backwards", [1, 2])
@pytest.mark.parametrize("update", BY_HAND.values(), ids=BY_HAND)
def test_steps_of_an_optimizer_that_is_not_pytorchs_are_counted(dry_run, update, backwards):
    ran = dry_run(LOOP.format(update=update, backwards=backwards, optimizer="None"))
    assert ran.status == 0, ran.err
    assert ran.summary["steps"] == 6


@pytest.mark.parametrize("update", NO_STEPS.values(), ids=NO_STEPS)
def test_what_is_no_step_is_none(dry_run, update):
    ran = dry_run(LOOP.format(update=update, backwards=1, optimizer="None"))
    assert ran.status == 0, ran.err
    assert ran.summary["steps"] == 0


@pytest.mark.parametrize(
    "update",
    [
        "            optimizer.step()\n            [p.data.clamp_(-1, 1) for p in net.parameters()]",
        "            [p.data.mul_(0.99) for p in net.parameters()]\n            optimizer.step()",
    ],
)
def test_beside_an_optimizer_of_pytorch_its_steps_alone_are_counted(dry_run, update):
    ran = dry_run(LOOP.format(update=update, backwards=1, optimizer="torch.optim.SGD(net.parameters(), lr=0.1)"))
    assert ran.status == 0, ran.err
    assert ran.summary["steps"] == 6


@pytest.mark.parametrize(
    "program, verdict",
    [
        ("scripted = torch.jit.script(net)\nscripted(x)", "run eagerly instead of compiled"),
        ("scripted = torch.jit.script(function)\nscripted(x)", "run eagerly instead of compiled"),
        ("torch.jit.script(net)", ""),
        ("torch.jit.script(function)\nnet(x)", ""),
        ("torch.jit.script(function)(torch.ones(2))", ""),
        ("torch.jit.script(Kind)", ""),
    ],
)
def test_a_script_is_said_where_it_ran(dry_run, program, verdict):
    ran = dry_run(
        f"""
import torch
class Kind:
    pass
def function(t):
    return t * 2
net, x = torch.nn.Linear(4, 4).cuda(), torch.ones(2, 4, device="cuda")
{program}
"""
    )
    assert ran.status == 0, ran.err
    assert [note.get("verdict", "") for note in ran.notes() if note["kind"] == "instead"] == [verdict] * bool(verdict)


def test_a_librarys_scripts_are_no_compiled_program(dry_run, tmp_path):
    package = tmp_path / "lib" / "site-packages" / "somelib"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import torch\n@torch.jit.script\ndef double(t):\n    return t * 2\n@torch.jit.script\ndef unused(t):\n    return t\n"
    )
    ran = dry_run(
        f"""
        import sys
        sys.path.insert(0, {str(package.parent)!r})
        import torch, somelib
        somelib.double(torch.ones(4, device="cuda"))
        """
    )
    assert ran.status == 0, ran.err
    assert not [note for note in ran.notes() if note.get("verdict")]
    assert len([note for note in ran.notes() if "jit.script" in note["text"]]) == 1


def test_a_line_that_a_library_generated_is_not_the_users(dry_run, tmp_path):
    package = tmp_path / "lib" / "site-packages" / "somelib"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import importlib.util, os, sys\n"
        "def made():\n"
        "    path = os.path.join(os.path.dirname(__file__), '..', '..', '..', 'generated.py')\n"
        "    path = os.path.abspath(path)\n"
        "    open(path, 'w').write('import torch\\ndef run():\\n    return torch.zeros(1 << 20, device=\"cuda\")\\n')\n"
        "    spec = importlib.util.spec_from_file_location('somelib.made_up', path)\n"
        "    module = sys.modules['somelib.made_up'] = importlib.util.module_from_spec(spec)\n"
        "    spec.loader.exec_module(module)\n"
        "    return module.run\n"
    )
    ran = dry_run(
        f"""
        import sys
        sys.path.insert(0, {str(package.parent)!r})
        import torch, somelib
        run = somelib.made()
        kept = run()
        """
    )
    assert ran.status == 0, ran.err
    holders = [holder["location"] for device in ran.report()["devices"] for holder in device["holders"]]
    assert [place["file"].rpartition("/")[2] for place in holders] == ["program.py"]


RULE = """
        import torch
        library = torch.library.Library("somelib", "DEF")
        library.define("double(Tensor t) -> Tensor")
        library.impl("double", lambda t: t * 2, "CPU")
        library.impl("double", {rule}, "Meta")
        torch.ops.somelib.double(torch.ones({size}, device="cuda"))
"""


def refuse(condition: str) -> str:
    return f"lambda t: (_ for _ in ()).throw(RuntimeError('refused')) if {condition} else t"


def test_what_the_dry_run_alone_refuses_is_not_the_programs_failure(dry_run):
    """The shape rule is wrong; the kernel takes the operand."""
    ran = dry_run(RULE.format(rule=refuse("True"), size=4))
    assert ran.status != 0 and "this is a failure of Faultline's dry run" in ran.summary["unplanned"]["text"]


def test_what_every_kernel_refuses_is(dry_run):
    ran = dry_run("import torch\ntorch.ones(2, 3, device='cuda') @ torch.ones(2, 3, device='cuda')\n")
    assert ran.status != 0 and ran.summary["unplanned"] is None and ran.summary["exception"]["type"] == "RuntimeError"


def test_a_hook_that_fails_breaks_no_program(dry_run):
    """The names of a model's parts are asked for when it first runs: here that fails, the program does not."""
    ran = dry_run(
        """
        import torch
        class Odd(torch.nn.Module):
            def named_modules(self, *args, **kwargs):
                raise KeyError("not for you")
            def forward(self, x):
                return x * 2
        print(tuple(Odd()(torch.ones(2, device="cuda")).shape))
        """
    )
    assert ran.status == 0 and ran.out.strip() == "(2,)", ran.err
    assert [note["kind"] for note in ran.notes() if "could not follow" in note["text"]] == ["skipped"]
