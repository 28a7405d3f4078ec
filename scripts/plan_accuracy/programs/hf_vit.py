"""transformers' ViT for classification from a configuration: bfloat16 autocast, fused AdamW, a cosine schedule, then a validation pass without gradients."""
import torch
from transformers import ViTConfig, ViTForImageClassification, get_cosine_schedule_with_warmup


def batches(count, size):
    for _ in range(count):
        yield torch.rand(size, 3, 224, 224).sub_(0.5).div_(0.5), torch.randint(0, 100, (size,))


def train_one_epoch(model, optimizer, scheduler, device):
    model.train()
    for i, (pixel_values, labels) in enumerate(batches(3, 64)):
        pixel_values = pixel_values.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
            out = model(pixel_values=pixel_values, labels=labels)
        optimizer.zero_grad(set_to_none=True)
        out.loss.backward()
        optimizer.step()
        scheduler.step()
        print(f"  batch {i} loss {out.loss.item():.4f} lr {scheduler.get_last_lr()[0]:.2e}")


@torch.no_grad()
def evaluate(model, device):
    model.eval()
    correct = total = 0
    for pixel_values, labels in batches(1, 256):
        logits = model(pixel_values=pixel_values.to(device)).logits
        correct += (logits.argmax(-1).cpu() == labels).sum().item()
        total += labels.numel()
    return correct / total


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    config = ViTConfig(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, image_size=224, patch_size=16, num_labels=100)
    model = ViTForImageClassification(config).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.05, fused=True)
    scheduler = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=1, num_training_steps=3)
    train_one_epoch(model, optimizer, scheduler, device)
    print(f"  accuracy {evaluate(model, device):.4f}")


if __name__ == "__main__":
    main()
