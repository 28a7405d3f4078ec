from collections import namedtuple
import torch
from torch import nn
Output = namedtuple("Output", "loss logits hidden_states attentions")
class SelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.num_attention_heads
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.out = nn.Linear(config.hidden_size, config.hidden_size)
    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        probs = torch.softmax(q @ k.transpose(-1, -2) / (c // self.heads) ** 0.5, -1)
        return self.out((probs @ v).transpose(1, 2).reshape(b, t, c)), probs
class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = SelfAttention(config)
        self.norm = nn.LayerNorm(config.hidden_size)
        self.mlp = nn.Sequential(nn.Linear(config.hidden_size, 4 * config.hidden_size), nn.GELU(), nn.Linear(4 * config.hidden_size, config.hidden_size))
    def forward(self, x):
        a, probs = self.attention(self.norm(x))
        x = x + a
        return x + self.mlp(self.norm(x)), probs
class ModelForLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([Layer(config) for _ in range(config.num_hidden_layers)])
        self.head = nn.Linear(config.hidden_size, config.vocab_size)
    def forward(self, ids, output_hidden_states=False, output_attentions=False, labels=None):
        hidden, all_hidden, all_attn = self.embed(ids), (), ()
        for layer in self.layers:
            if output_hidden_states:
                all_hidden = all_hidden + (hidden,)
            hidden, attn = layer(hidden)
            if output_attentions:
                all_attn = all_attn + (attn,)
        logits = self.head(hidden)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()) if labels is not None else None
        return Output(loss, logits, all_hidden, all_attn)
