# gpu: 2GiB
"""Training fits; the evaluation, with a larger batch and attention weights, does not."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

train_batch = 8
eval_batch = 256
layer = nn.MultiheadAttention(256, 16, batch_first=True).cuda()
head = nn.Linear(256, 20).cuda()
optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()])
data = TensorDataset(torch.randn(1024, 256, 256), torch.randint(0, 20, (1024,)))
for x, y in DataLoader(data, batch_size=train_batch):
    x = x.cuda()
    out, _ = layer(x, x, x, need_weights=False)
    loss = nn.functional.cross_entropy(head(out.mean(1)), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
layer.eval()
with torch.no_grad():
    for x, y in DataLoader(data, batch_size=eval_batch):
        x = x.cuda()
        out, weights = layer(x, x, x, average_attn_weights=False)
        print(head(out.mean(1)).argmax(1).shape, weights.amax().shape)
