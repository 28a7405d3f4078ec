"""A tokenizer was given one more token than the model has rows for: the embedding's kernel asserts on the device, and Python hears of it later."""
import torch


class Tagger(torch.nn.Module):
    def __init__(self, vocabulary, tags):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, 128)
        self.head = torch.nn.Linear(128, tags)

    def forward(self, tokens):
        embedded = self.embedding(tokens)
        return self.head(torch.relu(embedded))


torch.manual_seed(0)
model = Tagger(vocabulary=32000, tags=12).cuda()
SEPARATOR = 32000  # added to the tokenizer, not to the model
tokens = torch.randint(0, 32000, (16, 64))
tokens[3, 17] = SEPARATOR
scores = model(tokens.cuda())
loss = scores.logsumexp(-1).mean()
print("loss", loss.item())
