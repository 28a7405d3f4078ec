import tempfile

import datasets
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from trl import SFTConfig, SFTTrainer
from truth import DEVICE, phase, tell

raw = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "a": 2, "b": 3, "c": 4}, unk_token="<pad>"))
raw.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>")
model = transformers.LlamaForCausalLM(
    transformers.LlamaConfig(
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        intermediate_size=688,
        vocab_size=4000,
        pad_token_id=0,
        eos_token_id=1,
    )
)
texts = datasets.Dataset.from_dict({"text": ["a b c a b c a a b"] * 32})
with tempfile.TemporaryDirectory() as folder:
    arguments = SFTConfig(
        folder,
        max_steps=3,
        per_device_train_batch_size=4,
        report_to=[],
        use_cpu=DEVICE == "cpu",
        save_strategy="no",
        bf16=False,
        disable_tqdm=True,
        gradient_checkpointing=False,
    )
    trainer = SFTTrainer(model=model, args=arguments, train_dataset=texts, processing_class=tokenizer)
    trainer.train()
phase("training")
tell(model, getattr(trainer.optimizer, "optimizer", trainer.optimizer), steps=3)
