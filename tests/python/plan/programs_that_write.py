"""Writes a checkpoint, a log and more in every way that training programs do, over files that are there, and looks at what it wrote."""

import io
import logging
import os
import pickle
import shutil
import subprocess
import sys

import numpy as np
import torch
from safetensors.torch import load_file, save_file


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        open(f"worker-{index}", "w").close()
        return torch.full((512,), float(index))


if __name__ == "__main__":
    logging.basicConfig(filename="train.log", level=logging.INFO)
    logging.info("begin")
    model = torch.nn.Linear(512, 512).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=2):
        model(batch.cuda()).sum().backward()
        optimizer.step()
    state = model.state_dict()
    with open("handle.pt", "wb") as file:
        torch.save(state, file)
    assert torch.load("handle.pt")["weight"].shape == (512, 512)
    os.remove("removed.pt")
    torch.save(state, "removed.pt")
    buffer = io.BytesIO()
    torch.save(state, buffer)
    open("buffer.pt", "wb").write(buffer.getvalue())
    assert torch.load("buffer.pt")["bias"].is_cuda
    torch.save(state, "new.tmp")
    os.replace("new.tmp", "replaced.pt")
    assert torch.load("replaced.pt", map_location="cpu")["weight"].device.type == "cpu"
    save_file(state, "model.safetensors")
    assert (
        load_file("model.safetensors")["weight"].shape == (512, 512)
        and os.path.getsize("model.safetensors") > 512 * 512 * 4
    )
    np.save("weights.npy", state["weight"].cpu().numpy())
    view = np.memmap("view.bin", dtype="float32", mode="r+", shape=(4,))
    view[:] = 7
    view.flush()
    pickle.dump({"step": 8}, open("state.pkl", "wb"))
    assert pickle.load(open("state.pkl", "rb"))["step"] == 8
    host = torch.arange(100_000)
    torch.save(host, "host.pt")
    assert torch.equal(torch.load("host.pt"), host)
    os.makedirs("made/deep")
    shutil.copy("handle.pt", "made/deep/copy.pt")
    shutil.rmtree("old")
    subprocess.run("echo hello > shell.txt; rm -f by_shell.txt", shell=True, check=True)
    assert open("shell.txt").read() == "hello\n" and not os.path.exists("by_shell.txt") and not os.path.exists("old")
    assert not [name for name in os.listdir(".") if name.startswith((".faultline", "faultline-"))], (
        "a run folder that would not be here without Faultline"
    )
    print("all seen", sys.stdin.read().strip())
