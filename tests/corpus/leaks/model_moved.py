# clean
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(40)])
model.cuda()
