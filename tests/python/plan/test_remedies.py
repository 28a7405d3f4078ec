"""Remedies: what a run offers applies to what the program did, and a run with it takes what the library behind it would take."""

import pytest

from dry import H200, T4

pytest.importorskip("torch")

TRANSFORMER = """
import torch
from torch import nn
batch_size, seq_len = 8, 256
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(256, 1024), nn.Linear(1024, 256)
    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(1000, 256)
        self.blocks = nn.ModuleList(Block() for _ in range(8))
        self.head = nn.Linear(256, 1000)
    def forward(self, tokens):
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)
"""
TRAIN = (
    TRANSFORMER
    + """
def main():
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        tokens = torch.zeros(batch_size, seq_len, dtype=torch.long, device="cuda")
        logits = model(tokens)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
main()
"""
)
INFER = (
    TRANSFORMER
    + """
model = Model().cuda().eval()
with torch.no_grad():
    for _ in range(3):
        model(torch.zeros(batch_size, seq_len, dtype=torch.long, device="cuda"))
"""
)
CONVOLUTIONS = """
import torch
from torch import nn
batch_size, block_size = 8, 224
model = nn.Sequential(*[nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()) for _ in range(4)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.randn(batch_size, 16, 224, 224, device="cuda")).square().mean()
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
"""


def offered(ran) -> dict:
    """value → offer, by name."""
    assert ran.status == 0, ran.err
    found: dict = {}
    for offer in ran.summary["offers"]:
        found.setdefault(offer["name"], {})[offer["value"]] = offer
    return found


# program, GPU → names that are offered
CASES = {
    "training a transformer": (
        TRAIN,
        H200,
        {"autocast", "batch", "checkpoint", "foreach", "fsdp", "half", "lora", "sequence", "states"},
    ),
    "it is in 16 bits": (TRAIN.replace("Model().cuda()", "Model().cuda().bfloat16()"), H200, None),
    "inference": (INFER, H200, {"batch", "half", "sequence"}),
    "inference with a graph": (
        INFER.replace("torch.no_grad()", "torch.enable_grad()"),
        H200,
        {"batch", "half", "no_grad", "sequence"},
    ),
    "convolutions": (
        CONVOLUTIONS,
        H200,
        {"autocast", "batch", "checkpoint", "foreach", "fsdp", "half", "set_to_none"},
    ),
    "no list of layers": (
        TRAIN.replace("for _ in range(8))", "for _ in range(1))"),
        H200,
        {"autocast", "batch", "foreach", "half", "lora", "sequence", "states"},
    ),
    "mostly frozen": (
        TRAIN.replace(
            "torch.optim.AdamW(model.parameters())",
            "torch.optim.AdamW(model.requires_grad_(False).head.requires_grad_(True).parameters())",
        ),
        H200,
        {"autocast", "batch", "checkpoint", "foreach", "fsdp", "half", "sequence", "states"},
    ),
    "no optimizer": (
        TRAIN.replace("optimizer = torch.optim.AdamW(model.parameters())", "")
        .replace("optimizer.zero_grad()", "")
        .replace("optimizer.step()", ""),
        H200,
        {"autocast", "batch", "checkpoint", "half", "sequence"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_offered_applies_to_what_the_program_does(dry_run, name):
    program, gpu, names = CASES[name]
    found = offered(dry_run(program, gpu=gpu))
    if names is None:
        assert not {"half", "autocast"} & set(found) and "checkpoint" in found
    else:
        assert set(found) == names


def test_the_type_is_the_one_the_gpu_is_good_at(dry_run, tmp_path):
    assert "bfloat16" in offered(dry_run(TRAIN, gpu=H200))["autocast"]


def test_training_weights_in_float16_are_for_frozen_ones_only(dry_run):
    found = offered(dry_run(TRAIN, gpu=T4))
    assert "float16" in found["autocast"] and found["half"]["float16"]["wants"] == "lora"


def test_what_the_program_does_already_is_not_offered(dry_run):
    program = TRAIN.replace("logits = model(tokens)", 'with torch.autocast("cuda"): logits = model(tokens)').replace(
        "x = block(x)", "x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)"
    )
    found = offered(dry_run("import torch.utils.checkpoint\n" + program, gpu=H200))
    assert not {"autocast", "checkpoint"} & set(found) and "lora" in found


def test_gradients_that_are_clipped_stay_on_the_gpu(dry_run):
    found = offered(
        dry_run(
            TRAIN.replace(
                "optimizer.step()", "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0); optimizer.step()"
            ),
            gpu=H200,
        )
    )
    assert set(found["states"]) == {"8bit", "paged"}


def install_made_up(folder, *libraries):
    """What new lines import must be there for them to be offered."""
    for library in libraries:
        (folder / library).mkdir()
        (folder / library / "__init__.py").write_text("")


def test_an_edit_wants_its_library_installed(dry_run):
    found = offered(dry_run(TRAIN, gpu=H200))
    assert found["states"]["8bit"]["edits"] == [] == found["lora"]["16"]["edits"]


def test_the_edits_are_lines_of_the_program(dry_run, tmp_path):
    install_made_up(tmp_path, "bitsandbytes", "peft")
    found = offered(dry_run(TRAIN, gpu=H200))
    lines = (tmp_path / "program.py").read_text().splitlines()

    def told(name, value):
        for edit in found[name][value]["edits"]:
            for row, old in enumerate(edit["old"]):
                assert lines[edit["line"] - 1 + row] == old
        return [new.strip() for edit in found[name][value]["edits"] for new in edit["new"]]

    assert told("autocast", "bfloat16") == [
        'with torch.autocast("cuda", dtype=torch.bfloat16):',
        "logits = model(tokens)",
    ]
    assert told("checkpoint", "1/1")[-1:] == ["x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)"]
    assert told("states", "8bit")[-1:] == ["optimizer = bitsandbytes.optim.AdamW8bit(model.parameters())"]
    assert told("lora", "16")[-1:] == [
        'model = peft.get_peft_model(model, peft.LoraConfig(r=16, target_modules="all-linear"))'
    ]
    assert told("foreach", "false") == ["optimizer = torch.optim.AdamW(model.parameters(), foreach=False)"]
    assert told("batch", "batch_size=4")[0] == "batch_size, seq_len = 4, 256"
    assert told("sequence", "seq_len=64") == ["batch_size, seq_len = 8, 64"]
    assert told("half", "bfloat16") == ["model = model.to(torch.bfloat16)", "logits = model(tokens).float()"]


# the line with the model's call → what is shown for it: the model under autocast, the loss outside, as it is tried
UNDER_AUTOCAST = {
    "alone": ("y = net(x)\nloss = y.sum()", ["y = net(x)"], []),
    "in a loss": (
        "loss = nn.functional.mse_loss(net(x), x)",
        ["out = net(x)"],
        ["loss = nn.functional.mse_loss(out, x)"],
    ),
    "in a method": ("loss = net(x).square().mean()", ["out = net(x)"], ["loss = out.square().mean()"]),
    "out is taken": ("out = 1\nloss = net(x).sum() * out", ["output = net(x)"], ["loss = output.sum() * out"]),
    "with a call in it": ("y = net(x.clone())\nloss = y.sum()", ["y = net(x.clone())"], []),
    "twice": ("loss = (net(x) + net(-x)).sum()", None, None),
}


@pytest.mark.parametrize("name", UNDER_AUTOCAST)
def test_the_loss_is_shown_outside_of_autocast(dry_run, name):
    lines, inside, outside = UNDER_AUTOCAST[name]
    head = "import torch\nfrom torch import nn\nnet = nn.Linear(64, 64).cuda()\nx = torch.randn(8, 64, device='cuda')\n"
    found = offered(dry_run(head + lines + "\nloss.backward()\n", gpu=H200))
    edits = found["autocast"]["bfloat16"]["edits"]
    if inside is None:
        assert edits == []
        return
    assert edits[-1]["new"] == [
        'with torch.autocast("cuda", dtype=torch.bfloat16):',
        *("    " + line for line in inside),
        *outside,
    ]


PARAMETERS = 1000 * 256 + 8 * (2 * 256 * 1024 + 1024 + 256) + 1000 * 256 + 1000
MIB = 1 << 20  # 64 of them are workspaces of cuBLAS, in two threads

# remedy → (what is left of parameters, gradients and optimizer state after a step, in bytes for each parameter, of 4, 4 and 8)
APPLIED = {
    "half": ("bfloat16", (2, 2, 4)),
    "states=8bit": ("8bit", (4, 4, 2.03)),
    "states=paged": ("paged", (4, 4, 0.1)),
    "states=cpu": ("cpu", (4, 0, 0)),
    "lora": ("16", (4, 0.3, 0.6)),
    "fsdp=2": ("2", (2, 2, 4)),
    "fsdp=8": ("8", (0.5, 0.5, 1)),
    "batch": ("batch_size=4", (4, 4, 8)),
    "sequence": ("seq_len=64", (4, 4, 8)),
    "foreach": (False, (4, 4, 8)),
}
MEASURE = TRAIN.replace(
    "        optimizer.step()\n",
    "        optimizer.step()\n        loss = logits = tokens = None\n    print(torch.cuda.memory_allocated())\n",
)


@pytest.mark.parametrize("name", APPLIED)
def test_a_run_with_it_keeps_what_the_remedy_keeps(dry_run, name):
    value, kept = APPLIED[name]
    remedy = name.partition("=")[0]
    ran = dry_run(MEASURE, gpu=H200, changes={remedy: value}, cold=remedy in ("batch", "sequence"))
    assert ran.status == 0, ran.err
    assert remedy in ran.summary["changes"]
    expected = sum(kept) * PARAMETERS
    assert expected * 0.98 <= int(ran.out) - 64 * MIB <= expected * 1.1 + 3 * MIB, (int(ran.out), expected)


ADAPTED = """
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(256, 256).requires_grad_(False)
        self.blocks = nn.ModuleList([nn.Linear(256, 256) for _ in range(8)])
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)
model = Model().cuda()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
for _ in range(2):
    model(torch.randn(8, 256, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_model_of_which_a_list_of_layers_is_trained_is_sharded_as_a_whole(dry_run):
    """A ModuleList has no forward that could gather anything."""
    ran = dry_run(ADAPTED, gpu=H200, changes={"fsdp": "4"})
    assert ran.status == 0, ran.err
    assert ran.summary["changes"]["fsdp"] == "the model was sharded over 4 GPUs"


def test_sharding_never_has_the_whole_model_on_the_gpu(dry_run):
    program = TRAIN.replace("Linear(256, 1024), nn.Linear(1024, 256)", "Linear(256, 65536), nn.Linear(65536, 256)")
    program = program.replace("batch_size, seq_len = 8, 256", "batch_size, seq_len = 1, 16")
    ran = dry_run(program, gpu=H200, changes={"fsdp": "8"})
    layer = 4 * 2 * 256 * 65536
    assert ran.status == 0, ran.err
    assert ran.summary["peak_allocated"] - 64 * MIB < 8 * layer  # all layers in float32, once


def test_a_smaller_batch_keeps_gradients_from_one_batch_to_the_next(dry_run):
    ran = dry_run(TRAIN, gpu=H200, changes={"batch": "batch_size=4"}, cold=True)
    assert ran.summary["changes"] == {"batch": "batch_size=4", "accumulate": "gradients were kept for two batches"}


def test_every_second_layer_is_checkpointed(dry_run):
    ran = dry_run(TRAIN, gpu=H200, changes={"checkpoint": "1/2"})
    assert ran.summary["changes"]["checkpoint"] == "4 of 8 × Block in Model.blocks"


def test_remedies_go_together(dry_run):
    ran = dry_run(MEASURE, gpu=H200, changes={"lora": "16", "half": "bfloat16", "checkpoint": "1/1"})
    assert ran.status == 0, ran.err
    assert set(ran.summary["changes"]) == {"lora", "half", "checkpoint"}
    assert int(ran.out) < 3.5 * PARAMETERS + 64 * MIB
