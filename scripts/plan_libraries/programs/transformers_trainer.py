import tempfile

import torch
import transformers
from truth import DEVICE, phase, tell

config = transformers.GPT2Config(n_embd=256, n_layer=4, n_head=4, vocab_size=8000, n_positions=256)
model = transformers.GPT2LMHeadModel(config)


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        ids = torch.randint(0, 8000, (128,))
        return {"input_ids": ids, "labels": ids}


with tempfile.TemporaryDirectory() as folder:
    arguments = transformers.TrainingArguments(
        folder,
        per_device_train_batch_size=8,
        max_steps=4,
        report_to=[],
        use_cpu=DEVICE == "cpu",
        save_strategy="no",
        logging_steps=2,
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=Texts(), eval_dataset=Texts())
    trainer.train()
    phase("training")
    trainer.evaluate()
    phase("evaluation")
tell(model, trainer.optimizer.optimizer if hasattr(trainer.optimizer, "optimizer") else trainer.optimizer, steps=4)
