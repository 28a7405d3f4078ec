import tempfile

import torch
import transformers
from sentence_transformers import SentenceTransformer, losses, models
from truth import DEVICE, phase, tell

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [
    chr(97 + i) + chr(97 + j) for i in range(26) for j in range(26)
]
with tempfile.TemporaryDirectory() as folder:
    with open(f"{folder}/vocab.txt", "w", encoding="utf-8") as file:
        file.write("\n".join(words))
    transformers.BertTokenizerFast(f"{folder}/vocab.txt").save_pretrained(folder)
    transformers.BertModel(
        transformers.BertConfig(
            hidden_size=256, num_hidden_layers=3, num_attention_heads=4, intermediate_size=1024, vocab_size=len(words)
        )
    ).save_pretrained(folder)
    word = models.Transformer(folder, max_seq_length=64)
    model = SentenceTransformer(modules=[word, models.Pooling(word.get_word_embedding_dimension())], device=DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
loss_of = losses.MultipleNegativesRankingLoss(model)
for _ in range(3):
    sides = [{name: value.to(DEVICE) for name, value in model.tokenize(["ab cd ef gh"] * 16).items()} for _ in range(2)]
    loss = loss_of(sides, None)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
print(model.encode(["ab cd", "ef"]).shape)
phase("evaluation")
tell(model, optimizer, steps=3)
