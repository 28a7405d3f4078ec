# clean
import torch
from modeling import Decoder
model = Decoder().to("cuda").eval()
def generate(model, ids, new):
    past = None
    for _ in range(new):
        with torch.no_grad():
            logits, past = model(ids if past is None else ids[:, -1:], past)
        ids = torch.cat([ids, logits[:, -1].argmax(-1, keepdim=True)], -1)
    return ids
ids = generate(model, torch.randint(0, 500, (16, 64), device="cuda"), 40)
