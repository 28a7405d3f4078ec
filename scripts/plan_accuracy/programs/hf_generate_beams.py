"""transformers' own generate(): a Llama from a configuration in bfloat16, sampling for growing batches, then beam search with the same cache."""
import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=12, num_attention_heads=16, num_key_value_heads=16,
                     max_position_embeddings=2048, pad_token_id=0, bos_token_id=1, eos_token_id=None, dtype=torch.bfloat16)
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = LlamaForCausalLM(config).eval()
torch.set_default_dtype(torch.float32)


def prompts(batch, length):
    ids = torch.randint(3, 32000, (batch, length))
    mask = torch.ones_like(ids)
    for row in range(batch):
        left = 3 * row % 50
        ids[row, :left], mask[row, :left] = 0, 0
    return ids.to("cuda"), mask.to("cuda")


def run(label, batch, **options):
    ids, mask = prompts(batch, 256)
    generation_config = GenerationConfig(max_new_tokens=12, min_new_tokens=12, pad_token_id=0, **options)
    with torch.inference_mode():
        out = model.generate(input_ids=ids, attention_mask=mask, generation_config=generation_config)
    print(f"{label} batch {batch}: {tuple(out.shape)}")


for batch in (2, 8, 32):
    run("sample", batch, do_sample=True, top_p=0.9, temperature=0.7)
run("beams", 8, num_beams=4, do_sample=False)
