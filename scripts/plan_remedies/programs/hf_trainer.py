# gpu: 6GiB
"""Hugging Face's Trainer on a small GPT-2, with the arguments of a tutorial."""
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Lines(Dataset):
    def __len__(self):
        return 640

    def __getitem__(self, index):
        tokens = torch.randint(0, 8192, (512,))
        return {"input_ids": tokens, "labels": tokens}


model = GPT2LMHeadModel(GPT2Config(vocab_size=8192, n_layer=12, n_embd=512, n_head=8))
arguments = TrainingArguments(output_dir="out", per_device_train_batch_size=32, num_train_epochs=1, logging_steps=10,
                              save_strategy="no", report_to=[])
trainer = Trainer(model=model, args=arguments, train_dataset=Lines())
trainer.train()
