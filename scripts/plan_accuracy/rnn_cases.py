"""What cuDNN's recurrent layers request from PyTorch's allocator, for kernels/recurrent.py: to be run on a GPU.

  python scripts/plan_accuracy/rnn_cases.py rnn_cases.json        # about two minutes

Sizes of what is packed vary one at a time (the sum of the lengths, the longest, the batch, in how many steps the batch shrinks), because in a program they vary together: of
programs/gru_tagger.py the reserve is 516,096 bytes more than the formula and the workspace 14 % less, and both can be told by the batch, by the number of lengths, or by the weights.
"""

import json
import sys

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

KINDS = {"gru": nn.GRU, "lstm": nn.LSTM, "rnn": nn.RNN}


def patterns(batch: int, longest: int) -> dict:
    """Lengths with the same longest: all alike, one shorter, two kinds, all different, and halves of them."""
    found = {
        "equal": [longest] * batch,
        "one shorter": [longest] * (batch - 1) + [longest // 2],
        "two kinds": [longest] * (batch // 2) + [longest // 2] * (batch - batch // 2),
        "all different": [max(1, longest - i) for i in range(batch)],
        "in fours": [max(1, longest - 4 * (i // 4)) for i in range(batch)],
    }
    return found


def requests(work) -> list:
    torch.cuda.synchronize()
    torch.cuda.memory._record_memory_history(max_entries=20000, context=None)
    work()
    torch.cuda.synchronize()
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    return [entry["size"] for entry in trace if entry["action"] == "alloc" and entry["size"] >= 65536]


def measured(kind, width, hidden, layers, both, dropout, dtype, lengths, packed) -> dict:
    torch.manual_seed(0)
    net = KINDS[kind](width, hidden, layers, bidirectional=both, dropout=dropout).cuda().to(dtype)
    x = torch.randn(max(lengths), len(lengths), width, device="cuda", dtype=dtype, requires_grad=True)
    given = pack_padded_sequence(x, torch.tensor(lengths)) if packed else x
    result = {}

    def forward():
        out = net(given)[0]
        result["out"] = out.data if packed else out

    case = {"forward": requests(forward)}
    gradient = torch.ones_like(result["out"])
    case["backward"] = requests(lambda: result["out"].backward(gradient))
    case["inference"] = requests(lambda: torch.no_grad()(lambda: net.eval()(given))())
    return case


def main() -> None:
    cases = []
    # as in programs/gru_tagger.py, then each number changed alone
    base = {"kind": "gru", "width": 300, "hidden": 512, "layers": 2, "both": True, "dropout": 0.3, "dtype": "float32"}
    shapes = [base]
    for change in (
        {"kind": "lstm"},
        {"kind": "rnn"},
        {"width": 512},
        {"hidden": 256},
        {"layers": 1, "dropout": 0.0},
        {"layers": 3},
        {"both": False},
        {"dropout": 0.0},
        {"dtype": "float16"},
    ):
        shapes.append({**base, **change})
    for shape in shapes:
        for batch, longest in ((64, 118), (64, 100), (32, 118), (48, 90)):
            for name, lengths in patterns(batch, longest).items():
                for packed in (True, False) if name == "equal" else (True,):
                    arguments = {**shape, "dtype": getattr(torch, shape["dtype"])}
                    case = {**shape, "batch": batch, "longest": longest, "pattern": name, "packed": packed}
                    case["positions"] = sum(lengths)
                    try:
                        case.update(measured(**arguments, lengths=lengths, packed=packed))
                    except RuntimeError as problem:
                        case["failed"] = str(problem).splitlines()[0]
                    cases.append(case)
                    torch.cuda.empty_cache()
    told = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "cases": cases,
    }
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(told, file)
    print(len(cases), "cases,", sum("failed" in case for case in cases), "failed")


if __name__ == "__main__":
    main()
