"""An encoder–decoder of T5's kind from a configuration, in float32 with Adafactor from transformers, padded inputs and an attention mask."""
import torch
from transformers import Adafactor, T5Config, T5ForConditionalGeneration, set_seed

set_seed(7)
device = "cuda" if torch.cuda.is_available() else "cpu"
config = T5Config(vocab_size=32128, d_model=768, d_kv=64, d_ff=2048, num_layers=8, num_decoder_layers=8, num_heads=12, feed_forward_proj="gated-gelu",
                  dropout_rate=0.1, decoder_start_token_id=0, pad_token_id=0, use_cache=False)
model = T5ForConditionalGeneration(config).to(device)
optimizer = Adafactor(model.parameters(), lr=1e-3, scale_parameter=False, relative_step=False, warmup_init=False)


def make_batch(batch_size, source_length, target_length):
    input_ids = torch.randint(1, config.vocab_size, (batch_size, source_length))
    attention_mask = torch.ones_like(input_ids)
    for row in range(batch_size):
        keep = source_length - 13 * row % 100
        input_ids[row, keep:] = config.pad_token_id
        attention_mask[row, keep:] = 0
    labels = torch.randint(1, config.vocab_size, (batch_size, target_length))
    labels[:, -4:] = -100
    return {"input_ids": input_ids, "attention_mask": attention_mask, "labels": labels}


model.train()
for step in range(3):
    batch = {name: tensor.to(device) for name, tensor in make_batch(16, 384, 96).items()}
    outputs = model(**batch)
    outputs.loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {outputs.loss.item():.3f}")
