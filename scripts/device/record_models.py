#!/usr/bin/env python3
"""Records snapshots of whole programs (models people really run) on a real GPU: python3 scripts/device/record_models.py OUT_DIR [case ...]

The same harness as record_torch.py: one process per case, OUT_DIR/<case>.pickle and truth.json.
"""

import random
import sys

import record_torch
from record_torch import CASES, KEPT, NOTES, case

CASES.clear()  # only the programs below


def loop(torch, model, make_batch, loss_of, steps, optimizer=None, autocast=False, scaler=False):
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-4)
    grad_scaler = torch.amp.GradScaler("cuda", enabled=scaler)
    for _ in range(steps):
        batch = make_batch()
        with torch.autocast("cuda", dtype=torch.float16 if scaler else torch.bfloat16, enabled=autocast):
            loss = loss_of(model, batch)
        grad_scaler.scale(loss).backward()
        grad_scaler.step(optimizer)
        grad_scaler.update()
        optimizer.zero_grad()
    return loss.item()


def gpt2(torch, layers=4):
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(n_layer=layers, n_embd=384, n_head=6, vocab_size=8000, n_positions=512)).cuda()


@case()
def hf_gpt2_train(torch):
    model = gpt2(torch)
    loop(
        torch,
        model,
        lambda: torch.randint(0, 8000, (4, 256), device="cuda"),
        lambda m, b: m(b, labels=b).loss,
        8,
        autocast=True,
    )


@case()
def hf_llama_generate(torch):
    from transformers import LlamaConfig, LlamaForCausalLM

    model = (
        LlamaForCausalLM(
            LlamaConfig(
                hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4, vocab_size=4000
            )
        )
        .cuda()
        .eval()
    )
    for length in (16, 40, 24):
        ids = torch.randint(0, 4000, (2, length), device="cuda")
        with torch.no_grad():
            model.generate(ids, max_new_tokens=40, do_sample=False, pad_token_id=0)


@case()
def resnet_amp(torch):
    import torchvision

    model = torchvision.models.resnet18(num_classes=10).cuda().to(memory_format=torch.channels_last)
    data = torch.utils.data.TensorDataset(torch.randn(96, 3, 112, 112), torch.randint(0, 10, (96,)))
    loader = torch.utils.data.DataLoader(data, batch_size=16, pin_memory=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for x, y in loader:
        x, y = x.cuda(non_blocking=True).to(memory_format=torch.channels_last), y.cuda(non_blocking=True)
        with torch.autocast("cuda"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


@case()
def vit_fused_adam(torch):
    import torchvision

    model = torchvision.models.VisionTransformer(64, 8, 4, 4, 128, 256, num_classes=10).cuda()
    loop(
        torch,
        model,
        lambda: torch.randn(16, 3, 64, 64, device="cuda"),
        lambda m, b: m(b).logsumexp(1).mean(),
        6,
        torch.optim.AdamW(model.parameters(), fused=True),
    )


@case()
def lstm_train(torch):
    model = torch.nn.LSTM(128, 256, 2, batch_first=True).cuda()
    loop(torch, model, lambda: torch.randn(32, 60, 128, device="cuda"), lambda m, b: m(b)[0].square().mean(), 8)


@case()
def checkpointed(torch):
    from torch.utils.checkpoint import checkpoint

    layers = torch.nn.ModuleList(
        torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True) for _ in range(6)
    ).cuda()

    def forward(m, b):
        for layer in m:
            b = checkpoint(layer, b, use_reentrant=False)
        return b.square().mean()

    loop(torch, layers, lambda: torch.randn(8, 128, 256, device="cuda"), forward, 6)


@case()
def compile_reduce_overhead(torch):
    model = record_torch.mlp(torch, 3, 512)
    fast = torch.compile(model, mode="reduce-overhead")
    for _ in range(8):
        fast(torch.randn(64, 512, device="cuda")).sum().backward()
        model.zero_grad()


@case()
def threads(torch):
    import threading

    def work(seed):
        rng = random.Random(seed)
        with torch.cuda.stream(torch.cuda.Stream()):
            live = []
            for _ in range(150):
                live.append(torch.empty(rng.randint(1000, 8 << 20), dtype=torch.uint8, device="cuda"))
                if len(live) > 10:
                    live.pop(rng.randrange(len(live)))

    workers = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    [w.start() for w in workers]
    [w.join() for w in workers]


@case()
def gradient_accumulation(torch):
    model = record_torch.mlp(torch)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(6):
        for _ in range(4):
            (model(torch.randn(64, 1024, device="cuda")).square().mean() / 4).backward()
        optimizer.step()
        optimizer.zero_grad()


@case()
def gan_two_optimizers(torch):
    g, d = record_torch.mlp(torch, 2, 512), record_torch.mlp(torch, 2, 512)
    og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
    for _ in range(8):
        z = torch.randn(64, 512, device="cuda")
        od.zero_grad()
        (d(torch.randn(64, 512, device="cuda")).mean() - d(g(z).detach()).mean()).backward()
        od.step()
        og.zero_grad()
        (-d(g(z)).mean()).backward()
        og.step()


@case()
def eval_collects_then_cats(torch):
    """Predictions of an epoch are collected, used and dropped: growth with an end."""
    model = record_torch.mlp(torch)
    with torch.no_grad():
        for _ in range(4):
            outputs = [model(torch.randn(256, 1024, device="cuda")) for _ in range(12)]
            NOTES.append(float(torch.cat(outputs).mean()))


@case()
def accumulated_loss_graph(torch):
    """total = total + loss, and backward never called: each round's graph stays."""
    model = record_torch.mlp(torch)
    total = torch.zeros((), device="cuda")
    for _ in range(40):
        x = torch.randn(256, 1024, device="cuda")
        total = total + model(x).square().mean()
    KEPT.append(total)


@case()
def losses_list_in_training(torch):
    """Appends the loss itself each step: its graph was freed by backward, so only 512 bytes a step stay."""
    model = record_torch.mlp(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(30):
        loss = model(torch.randn(64, 1024, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        KEPT.append(loss)


@case()
def metric_keeps_logits(torch):
    model = gpt2(torch, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(12):
        ids = torch.randint(0, 8000, (2, 128), device="cuda")
        out = model(ids, labels=ids)
        out.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        KEPT.append(out.logits.detach())


@case(fraction=0.004)
def oom_first_forward(torch):
    net = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(20)]).cuda()
    net(torch.randn(8192, 2048, device="cuda")).sum().backward()


@case(fraction=0.0035)
def oom_optimizer_state(torch):
    net = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(10)]).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.randn(8, 2048, device="cuda")).sum().backward()
    optimizer.step()


def variable_lengths(torch):
    rng = random.Random(2)
    model = gpt2(torch, 4)
    loop(
        torch,
        model,
        lambda: torch.randint(0, 8000, (4, rng.randint(64, 500)), device="cuda"),
        lambda m, b: m(b, labels=b).loss,
        25,
    )


for fraction in (0.0055, 0.007):
    case(fraction=fraction, name=f"lengths_limit_{fraction}")(variable_lengths)
    case("expandable_segments:True", fraction=fraction, name=f"lengths_limit_{fraction}_expandable")(variable_lengths)
case(name="lengths_free")(variable_lengths)
case("expandable_segments:True", name="lengths_free_expandable")(variable_lengths)


@case(stacks="all")
def long_training(torch):
    """Many events, C++ frames too: what a real snapshot weighs."""
    model = gpt2(torch, 6)
    loop(torch, model, lambda: torch.randint(0, 8000, (2, 128), device="cuda"), lambda m, b: m(b, labels=b).loss, 150)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--child":
        record_torch.child(sys.argv[2], sys.argv[3])
    else:
        record_torch.main()
