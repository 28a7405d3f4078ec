from dataclasses import dataclass
@dataclass
class Config:
    vocab_size: int = 1000
    hidden_size: int = 128
    num_hidden_layers: int = 24
    num_attention_heads: int = 4
