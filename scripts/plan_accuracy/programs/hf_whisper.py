"""Speech recognition of Whisper's kind from a configuration: log-mel features in, text out, float16 autocast with a GradScaler."""
import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
torch.manual_seed(3)

config = WhisperConfig(
    vocab_size=51865,
    d_model=512,
    encoder_layers=6,
    decoder_layers=6,
    encoder_attention_heads=8,
    decoder_attention_heads=8,
    encoder_ffn_dim=2048,
    decoder_ffn_dim=2048,
    num_mel_bins=80,
    max_source_positions=1500,
    max_target_positions=448,
    dropout=0.1,
    use_cache=False,
)
model = WhisperForConditionalGeneration(config)
model.to("cuda")
model.train()
print(f"{model.num_parameters() / 1e6:.1f}M parameters")

optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
scaler = torch.amp.GradScaler("cuda", init_scale=128.0)

for step in range(3):
    features = torch.randn(16, 80, 3000)
    labels = torch.randint(0, 50000, (16, 128))
    labels[:, 100:] = -100
    optimizer.zero_grad()
    with torch.amp.autocast("cuda", dtype=torch.float16):
        loss = model(input_features=features.to("cuda"), labels=labels.to("cuda")).loss
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    scaler.step(optimizer)
    scaler.update()
    print(f"step={step} loss={loss.item():.4f}")
