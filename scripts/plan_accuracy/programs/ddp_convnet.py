"""DistributedDataParallel with one process, started without torchrun: NCCL, gradient buckets as views, no_sync while gradients accumulate."""
import contextlib
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def setup():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    os.environ.setdefault("RANK", "0")
    os.environ.setdefault("LOCAL_RANK", "0")
    os.environ.setdefault("WORLD_SIZE", "1")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group(backend="nccl")
    return local_rank


class BasicBlock(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
                                  nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout))
        self.skip = nn.Identity() if stride == 1 and cin == cout else nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


def build():
    layers, cin = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
    for cout, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for i in range(blocks):
            layers.append(BasicBlock(cin, cout, 2 if i == 0 and cout != 64 else 1))
            cin = cout
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def main():
    rank = setup()
    torch.manual_seed(0)
    model = DDP(build().to(rank), device_ids=[rank], gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss().to(rank)
    dataset = TensorDataset(torch.randn(512, 3, 224, 224), torch.randint(0, 1000, (512,)))
    loader = DataLoader(dataset, batch_size=128, sampler=DistributedSampler(dataset), pin_memory=False)
    for it, (images, target) in enumerate(loader):
        images, target = images.to(rank, non_blocking=True), target.to(rank, non_blocking=True)
        last = it % 2 == 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = criterion(model(images), target) / 2
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(f"it {it} loss {loss.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
