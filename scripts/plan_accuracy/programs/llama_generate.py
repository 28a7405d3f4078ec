"""Generation with a key-value cache that grows, float16 weights."""
import torch

from llama_model import Llama

model = Llama().half().cuda().eval()
caches = [[] for _ in model.blocks]
with torch.inference_mode():
    ids = torch.randint(32000, (16, 512), device="cuda")
    for step in range(64):
        logits = model(ids, caches)[:, -1]
        probabilities = torch.softmax(logits.float(), dim=-1)
        ids = torch.multinomial(probabilities, 1)
        if (ids == 2).all():
            break
print(caches[0][0].shape)
