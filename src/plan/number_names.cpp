#include "plan/number_names.h"

#include <array>

namespace faultline {
namespace {

// clang-format off
constexpr auto kBatch = std::to_array<std::string_view>({
    "batch_size", "per_device_train_batch_size", "per_device_batch_size", "train_batch_size", "train_batch", "micro_batch_size", "mini_batch_size", "minibatch_size", "minibatch", "batchsize", "batch",
    "bs"});
constexpr auto kServed = std::to_array<std::string_view>({
    "eval_batch_size", "per_device_eval_batch_size", "val_batch_size", "valid_batch_size", "test_batch_size", "inference_batch_size", "eval_batch", "val_batch", "test_batch",
    "max_batch_size", "num_prompts"});
constexpr auto kLength = std::to_array<std::string_view>({
    "sequence_length", "seq_length", "seq_len", "seqlen", "block_size", "context_length", "context_len", "max_seq_len", "max_seq_length", "max_length", "max_len", "maxlen", "n_ctx",
    "ctx", "max_context", "max_seq", "seq"});
constexpr auto kGenerated = std::to_array<std::string_view>({
    "max_new_tokens", "new_tokens", "max_tokens", "gen_len", "gen_length", "prompt_len", "prompt_length"});
// clang-format on

}  // namespace

std::span<const std::string_view> number_names(NumberKind kind) {
  switch (kind) {
    case NumberKind::kBatch: return kBatch;
    case NumberKind::kServed: return kServed;
    case NumberKind::kLength: return kLength;
    case NumberKind::kGenerated: return kGenerated;
  }
  return {};
}

}  // namespace faultline
