"""Beam search with an encoder–decoder written with nn.Transformer's layers; finished hypotheses and the growing prefix are reordered with index_select."""
import torch
import torch.nn as nn

VOCAB, DIM, BOS, EOS, PAD = 32000, 1024, 1, 2, 0


class Seq2Seq(nn.Module):
    def __init__(self, layers=6, heads=16):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM, padding_idx=PAD)
        self.pos = nn.Embedding(512, DIM)
        encoder_layer = nn.TransformerEncoderLayer(DIM, heads, 4096, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(encoder_layer, layers, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(DIM, heads, 4096, batch_first=True, norm_first=True), layers)
        self.generator = nn.Linear(DIM, VOCAB)

    def positions(self, ids):
        return self.embed(ids) + self.pos(torch.arange(ids.size(1), device=ids.device))

    def encode(self, src):
        return self.encoder(self.positions(src))

    def decode(self, tgt, memory):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1), device=tgt.device)
        return self.generator(self.decoder(self.positions(tgt), memory, tgt_mask=mask))


@torch.inference_mode()
def beam_search(model, src, beam_size=8, max_len=32, length_penalty=0.6):
    batch = src.size(0)
    memory = model.encode(src).repeat_interleave(beam_size, dim=0)
    tokens = torch.full((batch * beam_size, 1), BOS, dtype=torch.long, device=src.device)
    scores = torch.full((batch, beam_size), float("-inf"), device=src.device)
    scores[:, 0] = 0.0
    finished = torch.zeros(batch * beam_size, dtype=torch.bool, device=src.device)
    offsets = torch.arange(batch, device=src.device).unsqueeze(1) * beam_size
    for _ in range(max_len - 1):
        log_probs = torch.log_softmax(model.decode(tokens, memory)[:, -1].float(), dim=-1)
        log_probs[:, PAD] = float("-inf")
        log_probs = log_probs.masked_fill(finished.unsqueeze(1), 0.0)
        candidates = scores.view(-1, 1) + log_probs
        scores, flat = candidates.view(batch, -1).topk(beam_size, dim=-1)
        beams, words = torch.div(flat, VOCAB, rounding_mode="floor"), flat % VOCAB
        order = (beams + offsets).view(-1)
        tokens = torch.cat([tokens.index_select(0, order), words.view(-1, 1)], dim=1)
        finished = finished.index_select(0, order) | (words.view(-1) == EOS)
        memory = memory.index_select(0, order)
    best = (scores / tokens.size(1) ** length_penalty).argmax(dim=-1)
    return tokens.view(batch, beam_size, -1)[torch.arange(batch, device=src.device), best]


if __name__ == "__main__":
    torch.manual_seed(5)
    model = Seq2Seq().cuda().half().eval()
    for batch in (16, 48):
        source = torch.randint(3, VOCAB, (batch, 128), device="cuda")
        result = beam_search(model, source)
        print(f"batch {batch} -> {tuple(result.shape)}")
