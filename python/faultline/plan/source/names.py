"""What numbers of a program are called, by what they mean. src/plan/number_names.cpp has the same table, for numbers in the command (tests/python/plan/test_number_names.py holds the two together).

Of several names in one program the one that stands first here counts. All are compared in small letters.
"""

from __future__ import annotations

# of what a step, or a call, computes at once
BATCH = (
    "batch_size",
    "per_device_train_batch_size",
    "per_device_batch_size",
    "train_batch_size",
    "train_batch",
    "micro_batch_size",
    "mini_batch_size",
    "minibatch_size",
    "minibatch",
    "batchsize",
    "batch",
    "bs",
)
# of inference alone: a smaller one changes no training
SERVED = (
    "eval_batch_size",
    "per_device_eval_batch_size",
    "val_batch_size",
    "valid_batch_size",
    "test_batch_size",
    "inference_batch_size",
    "eval_batch",
    "val_batch",
    "test_batch",
    "max_batch_size",
    "num_prompts",
)
LENGTH = (
    "sequence_length",
    "seq_length",
    "seq_len",
    "seqlen",
    "block_size",
    "context_length",
    "context_len",
    "max_seq_len",
    "max_seq_length",
    "max_length",
    "max_len",
    "maxlen",
    "n_ctx",
    "ctx",
    "max_context",
    "max_seq",
    "seq",
)
# a length where their value is one that was seen; nothing else is concluded from them
PERHAPS_LENGTH = ("length", "t")
# how many tokens a program generates, or reads before it does
GENERATED = (
    "max_new_tokens",
    "new_tokens",
    "max_tokens",
    "gen_len",
    "gen_length",
    "prompt_len",
    "prompt_length",
)

ALL = (*BATCH, *SERVED, *LENGTH, *PERHAPS_LENGTH, *GENERATED)
