# clean
import torch
from configuration import Config
from modeling import ModelForLM
torch.manual_seed(0)
model = ModelForLM(Config()).to("cuda")
ids = torch.randint(0, 1000, (8, 128), device="cuda")
out = model(ids, output_hidden_states=True, output_attentions=True, labels=ids)
print(len(out.hidden_states))
