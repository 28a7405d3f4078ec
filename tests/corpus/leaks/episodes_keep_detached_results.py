# leak
import torch
policy = torch.randn(512, 512, device="cuda")
results = []
for episode in range(12):
    state = torch.randn(1024, 512, device="cuda")
    for t in range(5):
        action = torch.tanh(state @ policy)
        state = state + action
    results.append(state.detach().clone())  # <- kept
