# clean
import torch
class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.head = torch.nn.Embedding(1000, 256), torch.nn.LSTMCell(256, 256), torch.nn.Linear(256, 1000)
    def forward(self, tokens):
        h = c = torch.zeros(len(tokens), 256, device=tokens.device)
        logits = []
        for t in range(tokens.shape[1]):
            h, c = self.cell(self.embed(tokens[:, t]), (h, c))
            logits.append(self.head(h))
        return torch.stack(logits, 1)
net = Decoder().cuda()
tokens = torch.randint(0, 1000, (32, 40), device="cuda")
loss = net(tokens).pow(2).mean()
