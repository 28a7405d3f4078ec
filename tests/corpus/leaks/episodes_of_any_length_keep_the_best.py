# clean
import random
import torch
random.seed(3)
policy = torch.randn(512, 512, device="cuda")
returns = []
for episode in range(12):
    state = torch.randn(1024, 512, device="cuda")
    for t in range(random.randint(2, 9)):
        action = torch.tanh(state @ policy)
        state = state + action
    returns = [state.softmax(-1)]
