"""What a plan calls things: the operands of an operation that failed, and models, by the program's own names."""

import re
import subprocess

import pytest

MODULES = """
import torch, torch.nn as nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(100, 64)
        self.fc = nn.Linear(64, 8)
        {init}
    def forward(self, x):
        h = self.emb(x)
        return {result}
net = Net().cuda()
ids = torch.randint(0, 100, (4, 16), device="cuda")
net(ids)
"""


def plain(init, result):
    return MODULES.format(init=init, result=result)


# program → rule, what the message says, what is proposed, what is not
FAILURES = {
    "a plain attribute": (
        plain("self.pos = torch.zeros(16, 64)", "h + self.pos"),
        "tensor/device-mismatch",
        ["other float32[16,64] on the CPU (`Net.pos`)", 'self.register_buffer("pos"'],
        ["Move the module"],
    ),
    "a plain attribute of an inner module": (
        plain("self.fc.scale = torch.ones(64)", "h * self.fc.scale"),
        "tensor/device-mismatch",
        ["(`Net.fc.scale`)", 'self.register_buffer("scale"'],
        [],
    ),
    "a buffer moves": (
        plain("self.register_buffer('pos', torch.zeros(16, 64))", "(h + self.pos) @ self.pos"),
        "tensor/shape-mismatch",
        [],
        ["register_buffer"],
    ),
    "made in forward": (
        plain("pass", "h + torch.zeros(16, 64)"),
        "tensor/device-mismatch",
        ["Move other (float32[16,64]) to the device"],
        ["register_buffer"],
    ),
    "a variable": (
        "import torch\nmask = torch.ones(16, 64)\nx = torch.ones(16, 64, device='cuda')\ny = x * mask\n",
        "tensor/device-mismatch",
        ["self float32[16,64] on cuda:0 (`x`)", "other float32[16,64] on the CPU (`mask`)", "Move other (`mask`"],
        ["register_buffer"],
    ),
    "a variable of a function": (
        "import torch\ndef step(batch, labels):\n    return batch @ labels\nstep(torch.ones(4, 8, device='cuda'), torch.ones(8, 2))\n",
        "tensor/device-mismatch",
        ["(`batch`)", "(`labels`)"],
        [],
    ),
    "a model that was not moved": (
        "import torch\nlayer = torch.nn.Linear(8, 4)\nlayer(torch.ones(2, 8, device='cuda'))\n",
        "tensor/device-mismatch",
        ["(`layer.weight`)", "Move the module `layer`"],
        ["register_buffer"],
    ),
    "numpy's doubles": (
        "import torch\nlayer = torch.nn.Linear(8, 4).half().cuda()\nx = torch.ones(2, 8, dtype=torch.float64, device='cuda')\nlayer(x)\n",
        "tensor/dtype-mismatch",
        ["The layer `layer` is float16 and its input `x` is float64[2,8]", "with `.half()`"],
        ["operand 2"],
    ),
    "indices": (
        "import torch\ntable = torch.nn.Embedding(10, 4).cuda()\nids = torch.ones(3, device='cuda')\ntable(ids)\n",
        "tensor/dtype-mismatch",
        ["(`ids`)", ".long()"],
        [],
    ),
    "a layer of another width": (
        "import torch\nfc = torch.nn.Linear(8, 4).cuda()\nx = torch.ones(2, 6, device='cuda')\nfc(x)\n",
        "tensor/shape-mismatch",
        ["(`x`)", "(`fc.weight`)"],
        [],
    ),
    "a list": (
        "import torch\na, b = torch.ones(2, 3, device='cuda'), torch.ones(4, 5, device='cuda')\ntorch.cat([a, b])\n",
        "tensor/shape-mismatch",
        ["tensors[0] float32[2,3] (`a`)", "tensors[1] float32[4,5] (`b`)"],
        [],
    ),
}


def words(finding):
    return " ".join([finding["message"], *(attempt["what"] for attempt in finding["tries"])])


@pytest.mark.parametrize("name", FAILURES)
def test_operands_are_called_as_the_operation_and_the_program_call_them(dry_run, name):
    program, rule, said, not_said = FAILURES[name]
    findings = [f for f in dry_run(program).report()["findings"] if f["severity"] == "error"]
    assert [f["rule"] for f in findings] == [rule]
    text = words(findings[0])
    assert [part for part in said if part not in text] == [], text
    assert [part for part in not_said if part in text] == [], text
    assert findings[0]["related"] and all(r["role"] == "operand" for r in findings[0]["related"])
    assert any(r["location"] and r["location"]["line"] for r in findings[0]["related"]), "where an operand was made"


def test_looking_for_names_keeps_nothing_alive(dry_run):
    ran = dry_run("""
        import torch
        def attempt():
            big = torch.ones(64 << 20, device="cuda")
            try:
                big + torch.ones(3, device="cuda")
            except RuntimeError:
                pass
            before = torch.cuda.memory_allocated()
            del big
            print(before - torch.cuda.memory_allocated())
        attempt()
    """)
    assert ran.out.strip() == str(256 << 20), ran.err


def test_the_programs_own_locals_are_left_to_it(dry_run):
    ran = dry_run("""
        import torch
        def attempt(a=1):
            kept = locals()
            try:
                torch.ones(2, 3, device="cuda") + torch.ones(4, device="cuda")
            except RuntimeError:
                pass
            print(kept["a"])
        attempt()
    """)
    assert ran.out.strip() == "1", ran.err


TWO = """
import torch, torch.nn as nn
{models}
for _ in range(2):
    {call}
torch.cuda.synchronize()
"""
MODELS = {
    "two of PyTorch's own": (
        "G = nn.Sequential(nn.Linear(64, 512)).cuda()\nD = nn.Sequential(nn.Linear(512, 1)).cuda()",
        "D(G(torch.ones(8, 64, device='cuda')))",
        {"G", "D"},
    ),
    "in a function": (
        "def main():\n    gen = nn.Sequential(nn.Linear(64, 512)).cuda()\n    dis = nn.Sequential(nn.Linear(512, 1)).cuda()\n    h = gen(torch.ones(8, 64, device='cuda'))\n    return dis(h), gen, dis\nkept = main()",
        "pass",
        {"gen", "dis"},
    ),
    "attributes": (
        "class Trainer:\n    def __init__(self):\n        self.netG = nn.Sequential(nn.Linear(64, 512)).cuda()\n        self.netD = nn.Sequential(nn.Linear(512, 1)).cuda()\n    def step(self):\n        return self.netD(self.netG(torch.ones(8, 64, device='cuda')))\nt = Trainer()",
        "t.step()",
        {"netG", "netD"},
    ),
    "one class of the program's own, twice": (
        "class Q(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(64, 64)\n    def forward(self, x):\n        return self.fc(x)\nonline, target = Q().cuda(), Q().cuda()",
        "online(target(torch.ones(8, 64, device='cuda')))",
        {"online", "target"},
    ),
    "one class of the program's own, once": (
        "class Q(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(64, 64)\n    def forward(self, x):\n        return self.fc(x)\nmodel = Q().cuda()",
        "model(torch.ones(8, 64, device='cuda'))",
        {"Q"},
    ),
    "no names": (
        "models = [nn.Linear(64, 64).cuda() for _ in range(2)]",
        "models[0](models[1](torch.ones(8, 64, device='cuda')))",
        {"Linear", "Linear#2"},
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_are_told_apart(dry_run, binary, name):
    models, call, wanted = MODELS[name]
    ran = dry_run(TWO.format(models=models, call=call))
    assert ran.status == 0, ran.err
    text = subprocess.run(
        [binary, "explain", "--format", "text-trace", str(ran.traces[0])], capture_output=True, text=True
    ).stdout
    parameters = re.findall(r"op=parameter name=(\S+)", text)
    assert {name.split(".")[0].strip('"') for name in parameters} == wanted, parameters


CHECKPOINTS = {
    "shapes": (
        '{"weight": torch.zeros(9, 4), "bias": torch.zeros(9)}',
        ["`weight` is [9,4] in the checkpoint and [2,4] in the model", "`bias` is [9]"],
    ),
    "missing": ('{"weight": torch.zeros(2, 4)}', ["the checkpoint lacks `bias`"]),
    "prefix": ('{"module.weight": torch.zeros(2, 4), "module.bias": torch.zeros(2)}', ["begin with `module.`"]),
}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_checkpoint_that_does_not_fit_is_the_programs_own_error(dry_run, name):
    state, said = CHECKPOINTS[name]
    ran = dry_run(f"import torch\nm = torch.nn.Linear(4, 2).cuda()\nm.load_state_dict({state})\n")
    (finding,) = [f for f in ran.report()["findings"] if f["severity"] == "error"]
    assert finding["rule"] == "tensor/checkpoint-mismatch" and finding["location"]["line"] == 3
    assert [part for part in [*said, "memory is not the problem"] if part not in words(finding)] == [], words(finding)
