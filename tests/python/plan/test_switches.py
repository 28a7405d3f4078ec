"""Remedies as people write them: the switches of libraries, the lines that change what was tried, and the inputs of attention."""

import pytest
from test_remedies import install_made_up

pytest.importorskip("torch")

TRAINING = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
def train(loader):
    for batch in loader:
        loss = model(torch.randn(len(batch), 64, device="cuda")).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
# libraries that set up a training by arguments; the steps are the program's own here, for the switch is read from its source
SET_UP = """
class Settings:
    def __init__(self, *given, **named): pass
TrainingArguments = Accelerator = Settings
"""
LIGHTNING = "import sys, types\nlightning = types.ModuleType('lightning'); sys.modules['lightning'] = lightning\nimport lightning as L\nL.Trainer = lambda **named: None\n"
LOADER = "batch_size = 8\ntrain(torch.utils.data.DataLoader(range(64), batch_size=8))\n"
# what sets it up, and of which remedy what is said instead: the switch, and the line with it; None: no switch
SWITCHES = {
    "Hugging Face": (SET_UP + "arguments = TrainingArguments(output_dir='x')\n", "autocast", "arguments = TrainingArguments(output_dir='x', bf16=True)"),
    "Hugging Face, several lines": (SET_UP + "arguments = TrainingArguments(\n    output_dir='x'\n)\n", "autocast", "    bf16=True"),
    "Hugging Face, 8 bits": (SET_UP + "arguments = TrainingArguments(output_dir='x')\n", "states", "arguments = TrainingArguments(output_dir='x', optim=\"adamw_bnb_8bit\")"),
    "accelerate": (SET_UP + "accelerator = Accelerator()\n", "autocast", 'accelerator = Accelerator(mixed_precision="bf16")'),
    "Lightning": (LIGHTNING + "trainer = L.Trainer(max_epochs=1)\n", "autocast", 'trainer = L.Trainer(max_epochs=1, precision="bf16-mixed")'),
    "another Trainer": ("def Trainer(**named): pass\ntrainer = Trainer(max_epochs=1)\n", "autocast", None),
    "set already": (SET_UP + "arguments = TrainingArguments(output_dir='x', bf16=False)\n", "autocast", None),
    "all together": (SET_UP + "arguments = TrainingArguments(**{})\n", "autocast", None),
}  # fmt: skip
AMPERE = {"gpu": {"name": "L4", "capacity_bytes": 23 << 30, "context_bytes": 512 << 20, "compute_capability": [8, 9], "multi_processor_count": 58, "max_threads_per_multi_processor": 1536}}  # fmt: skip


def offers_of(dry_run, program, **options):
    ran = dry_run(program, **{**AMPERE, **options})
    assert ran.status == 0, ran.err
    found = {}
    for offer in ran.summary["offers"]:
        found.setdefault(offer["name"], offer)
    return found, ran


@pytest.mark.parametrize("name", SWITCHES)
def test_a_library_that_has_a_switch_is_told_by_it(dry_run, tmp_path, name):
    install_made_up(tmp_path, "bitsandbytes")
    set_up, remedy, line = SWITCHES[name]
    found, _ = offers_of(dry_run, TRAINING + set_up + LOADER)
    offer = found[remedy]
    new = [text for edit in offer["edits"] for text in edit["new"]]
    assert offer["what"].startswith("Pass ") == (line is not None), offer
    assert line is None or line in new, new


def test_accumulation_is_a_switch_where_there_is_one(dry_run):
    program = TRAINING + SET_UP + "arguments = TrainingArguments(output_dir='x')\n" + LOADER
    _, ran = offers_of(dry_run, program)
    assert [edit["new"] for edit in ran.summary["accumulation"]] == [
        ["arguments = TrainingArguments(output_dir='x', gradient_accumulation_steps=@MANY@)"]
    ]


def applied(edits, program, tmp_path):
    """As patch applies the unified diff of them."""
    lines = program.split("\n")
    for edit in sorted(edits, key=lambda one: -one["line"]):
        at = edit["line"] - 1
        assert lines[at : at + len(edit["old"])] == edit["old"]
        lines[at : at + len(edit["old"])] = edit["new"]
    return "\n".join(lines)


def test_all_numbers_of_the_name_are_changed_as_they_were_tried(dry_run, tmp_path):
    program = (
        TRAINING
        + "def loaders(): return torch.utils.data.DataLoader(range(64), batch_size=8), torch.utils.data.DataLoader(range(64), batch_size=16)\n"
        + "first, second = loaders()\ntrain(first)\nfor batch in second: pass\n"
    )
    found, ran = offers_of(dry_run, program, go_on=True)
    assert ran.summary["training_batch"] == 8
    batch = found["batch"]
    assert batch["value"] == "batch_size=4" and "accumulated over 2 batches for the same 8" in batch["what"]
    changed = applied(
        [edit for edit in batch["edits"] if "DataLoader" in edit["new"][0]], "\n" + program.lstrip("\n"), tmp_path
    )
    assert changed.count("batch_size=4") == 2 and "batch_size=8" not in changed and "batch_size=16" not in changed
    ways = [number["edits"][0]["new"][0] for number in ran.summary["numbers"]]
    assert [way.count("@VALUE@") for way in ways] == [1, 1] and len(set(ways)) == 2, ways


def test_of_two_numbers_in_a_line_the_smaller_stays_where_it_is_small_enough(dry_run, tmp_path):
    line = "first, second = torch.utils.data.DataLoader(range(64), batch_size=2), torch.utils.data.DataLoader(range(64), batch_size=16)\n"
    found, ran = offers_of(dry_run, TRAINING + line + "train(second)\nfor batch in first: pass\n", go_on=True)
    batch = found["batch"]
    assert batch["value"] == "batch_size=8"
    [changed] = [edit["new"][0] for edit in batch["edits"] if "DataLoader" in edit["new"][0]]
    assert "batch_size=2)" in changed and "batch_size=8)" in changed and "batch_size=16" not in changed


NUMBERS = {"1_024": 1024, "0x400": 1024, "2 * 512": 1024, "1 << 10": 1024, "2 ** 10": 1024, "(1_000 + 24)": 1024}


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_is_changed_however_it_is_written(tmp_path, monkeypatch, text):
    import sys
    import types

    from faultline.plan.source import edits

    file = tmp_path / "number.py"
    file.write_text(f"batch_size = {text}  # of it\nseq_len = 1 << 4000\nbatch = -1\n")
    module = types.ModuleType("number_of_it")
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "number_of_it", module)
    [number] = [one for one in edits.numbers_in_source(("batch_size", "seq_len", "batch")) if one["file"] == str(file)]
    assert (number["name"], number["value"]) == ("batch_size", NUMBERS[text])
    [edit] = number["edits"]
    brackets = text.startswith("(")
    assert edit["new"] == [f"batch_size = {'(' * brackets}@VALUE@{')' * brackets}  # of it"]


ATTENTION = """
import torch, torch.nn.functional as F
weight = torch.randn(64, 3 * 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
def attend(x):
    q, k, v = (x @ weight).view(2, 2048, 3, 4, 16).permute(2, 0, 3, ORDER).unbind(0)
    VIEW
    return F.scaled_dot_product_attention(q, k, v)
for _ in range(2):
    attend(torch.randn(2, 2048, 64, device="cuda", dtype=torch.bfloat16)).sum().backward()
"""
STRIDED = (
    ATTENTION.replace("ORDER", "4, 1")
    .replace("VIEW", "q, k, v = (t.transpose(-1, -2) for t in (q, k, v))")
    .replace("t.transpose(-1, -2) for t in (q, k, v)", "t.contiguous().transpose(-1, -2) for t in (q, k, v)")
)
DENSE = ATTENTION.replace("ORDER", "1, 4").replace("VIEW", "pass")


def test_strides_that_keep_attention_from_its_fused_kernel_are_told(dry_run, tmp_path_factory, binary):
    from dry import dry_run as run_in

    found, strided = offers_of(dry_run, STRIDED)
    assert "contiguous" in found, strided.summary["offers"]
    assert found["contiguous"]["edits"][0]["new"] == [
        "    return F.scaled_dot_product_attention(q.contiguous(), k.contiguous(), v.contiguous())"
    ]
    tried = run_in(binary, tmp_path_factory.mktemp("tried"), STRIDED, changes={"contiguous": "true"}, **AMPERE)
    assert tried.summary["changes"] == {"contiguous": "the inputs of scaled_dot_product_attention were made contiguous"}
    assert tried.summary["peak_allocated"] * 2 < strided.summary["peak_allocated"]
    by_hand = applied(found["contiguous"]["edits"], STRIDED, tmp_path_factory)
    edited = run_in(binary, tmp_path_factory.mktemp("edited"), by_hand, **AMPERE)
    assert edited.summary["peak_allocated"] == tried.summary["peak_allocated"]


def test_dense_inputs_are_left_alone(dry_run):
    found, _ = offers_of(dry_run, DENSE)
    assert "contiguous" not in found


def test_checkpointing_of_transformers_is_its_own_switch_without_the_cache(dry_run, tmp_path_factory, binary):
    pytest.importorskip("transformers")
    from dry import dry_run as run_in

    program = """
import torch
from transformers import LlamaConfig, LlamaForCausalLM
config = LlamaConfig(vocab_size=512, hidden_size=256, intermediate_size=512, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=8)
model = LlamaForCausalLM(config).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    tokens = torch.randint(0, 512, (4, 512), device="cuda")
    loss = model(input_ids=tokens, labels=tokens).loss
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""
    found, as_is = offers_of(dry_run, program)
    offer = found["checkpoint"]
    assert [edit["new"] for edit in offer["edits"]] == [
        [
            'model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})',
            "model.config.use_cache = False",
        ]
    ]
    tried = run_in(binary, tmp_path_factory.mktemp("tried"), program, changes={"checkpoint": "1/1"}, **AMPERE)
    edited = run_in(binary, tmp_path_factory.mktemp("edited"), applied(offer["edits"], program, None), **AMPERE)
    assert edited.status == 0, edited.err
    assert edited.summary["peak_allocated"] < as_is.summary["peak_allocated"] * 0.8
    assert (
        abs(tried.summary["peak_allocated"] - edited.summary["peak_allocated"])
        < 0.02 * edited.summary["peak_allocated"]
    )


def test_one_result_that_is_larger_than_the_gpu_is_answered_at_once(binary, tmp_path):
    import json
    import subprocess
    import sys

    program = "import torch\na, b = torch.randn(60000, 64, device='cuda'), torch.randn(40000, 64, device='cuda')\nbatch_size = 8\nd = (a[:, None, :] - b[None, :, :]).square().sum(-1)\n"
    (tmp_path / "train.py").write_text(program)
    asked = [binary, "plan", "--gpu", "T4", "--format", "json", "--", sys.executable, "train.py"]
    report = json.loads(subprocess.run(asked, capture_output=True, text=True, cwd=tmp_path).stdout)
    assert report["plan"]["verdict"] == "does-not-fit" and report["plan"]["vary"] is None
    assert all(change["kind"] == "setting" for change in report["plan"]["changes"])
    assert "torch.cdist(a, b) makes only" in report["plan"]["changes_skipped"]
    assert "torch.cdist(" in json.dumps(report["findings"])


GENERATES = """
import torch
net = torch.nn.Embedding(100, 64).cuda()
def generate(max_new_tokens=64):
    ids, keys = torch.zeros(1, 8, dtype=torch.long, device="cuda"), []
    for _ in range(max_new_tokens):
        keys.append(net(ids))
"""
TRAINS_FIRST = "optimizer = torch.optim.SGD(net.parameters(), 0.1)\nnet(torch.zeros(1, 8, dtype=torch.long, device='cuda')).sum().backward()\noptimizer.step()\n"


@pytest.mark.parametrize("before", ["", TRAINS_FIRST], ids=["infers", "trains"])
def test_fewer_tokens_are_offered_where_nothing_trains(dry_run, before):
    found, _ = offers_of(dry_run, GENERATES + before + "with torch.no_grad():\n    generate()\n")
    assert ("sequence" in found) == (not before), found
    if not before:
        assert found["sequence"]["value"] == "max_new_tokens=32"
        assert found["sequence"]["what"].endswith(", now 64): fewer tokens")
        assert found["sequence"]["edits"][0]["new"] == ["def generate(max_new_tokens=32):"]
