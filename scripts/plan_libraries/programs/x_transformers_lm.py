import torch
from truth import DEVICE, phase, tell
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

model = AutoregressiveWrapper(
    TransformerWrapper(
        num_tokens=4000,
        max_seq_len=256,
        attn_layers=Decoder(dim=256, depth=4, heads=4, rotary_pos_emb=True, attn_flash=True),
    )
).to(DEVICE)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for _ in range(3):
    loss = model(torch.randint(0, 4000, (4, 257), device=DEVICE))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
phase("training")
tell(model, optimizer, steps=3)
