// Operands that do not go together, and what the rules behind them read by themselves: indices, checkpoints, Xids.
#include "sources/messages/extractors.h"
#include "sources/messages/kinds.h"
#include "sources/messages/tables.h"
#include "sources/rule_names.h"

namespace faultline {
namespace {

using enum Force;
using enum Stands;

const KindRow kOperandKinds[] = {
    {.name = "call-32bit",
     .rule = rule_name::kShapeMismatch,
     .meaning =
         "A tensor has more elements than this operation can count with 32 bits (2^31 - 1): memory is not the problem",
     .tries = {"Split the batch for this operation, for example with torch.chunk, so that each part has fewer than "
               "2147483648 elements."},
     .words = {{"expected canuse32bitindexmath(", kAsErrorOrCode, kWeak}}},
    {.name = "operands-index",
     .rule = rule_name::kIndexOutOfRange,
     .meaning = "An index is too large, or negative, for the table it looks into (on the CPU; on a GPU the same ends "
                "in a device-side assert): most often a token or category number that is not below num_embeddings. "
                "Memory is not the problem",
     .tries = {"Print what goes into this line: ids.min(), ids.max(), and the table's size (embedding.num_embeddings, "
               "or model.config.vocab_size and max_position_embeddings for positions).",
               "A tokenizer with added tokens needs model.resize_token_embeddings(len(tokenizer)); a sequence longer "
               "than max_position_embeddings must be cut (truncation=True, max_length=...); padding of -100 or -1 "
               "belongs into labels, not into inputs."},
     .words = {{"index out of range in self", kAsErrorOrCode}}},
    {.name = "operands",
     .id = MessageKind::kOperands,
     .words = {{"shapes cannot be multiplied", kBegins},
               {"size mismatch, m1: [", kBegins},
               {"size mismatch, got", kBegins},
               {"must match the size of tensor", kBegins},
               {"must match the existing size", kBegins},
               {"is invalid for input of size", kBegins},
               {"view size is not compatible with input tensor's size", kBegins},
               {"sizes of tensors must match except in dimension", kBegins},
               {"tensors must have same number of dimensions", kBegins},
               {"channels, but got", kBegins},
               {"stack expects each tensor to be equal size", kBegins},
               {"to match target batch_size", kBegins},
               {"must be equal to input_size", kBegins},
               {"doesn't match the broadcast shape", kBegins},
               {"expected target size", kBegins},
               {"that is different to the input size", kBegins},
               {"must be the same as input size", kBegins},
               {"the shape of the mask", kBegins},
               {"expected input with shape [*, ", kBegins},
               {"multi-target not supported", kBegins},
               {"expected size for first two dimensions of batch2", kBegins},
               {"size of tensor to match the size", kBegins},
               {"must match mat2 dim 0", kBegins},
               {"(unbatched) or", kBegins},
               {"to have one of the following scalar types", kBegins},
               {"on the same device as the indexed tensor", kBegins},
               {"not implemented for '", kBegins},
               {"expected scalar type", kBegins},
               {"expected object of scalar type", kBegins},
               {"must have the same dtype", kBegins},
               {"to have the same dtype", kBegins},
               {"weight type (", kBegins},
               {"bias type (", kBegins},
               {"tensors used as indices must be", kBegins},
               {"can't be cast to the desired output type", kBegins},
               {"to be on the same device", kBegins},
               {"different from other tensors on", kBegins},
               {"expected object of device type", kBegins}}},
    {.name = "operands-keras",
     .id = MessageKind::kOperandsKeras,
     .words = {{.text = "is incompatible with the layer: ", .stands = kAnywhereOrCode, .accepts = is_of_input_of_layer},
               {.text = "is incompatible with layer ", .stands = kAnywhereOrCode, .accepts = is_of_input}}},
    {.name = "operands-shapes",
     .id = MessageKind::kOperandsShapes,
     .words = {{"requires contracting dimensions to have the same shape", kBehindName},
               {"incompatible shapes for broadcasting", kBehindName},
               {"cannot concatenate arrays with ", kBehindName},
               {"dimensions must be equal, but are ", kBehindName},
               {") are incompatible", kBehindName},
               {"] are incompatible", kBehindName},
               {"incompatible shapes: [", kBegins},
               {"matrix size-incompatible: in[0]", kBegins},
               {"logits and labels must have the same first dimension", kBehindName},
               {"cannot reshape array of s", kBehindName},
               {"input to reshape is a tensor with ", kBehindName},
               {"in both shapes must be equal", kBehindName},
               {"operands could not be broadcast together with ", kBehindName},
               {"has a mismatch in its core dimension", kBehindName}}},
    {.name = "checkpoint",
     .id = MessageKind::kCheckpoint,
     .words = {{.text = "error(s) in loading state_dict for", .stands = kAsErrorOrCode, .reads = read_whole_list}}},
    {.name = "xid",
     .id = MessageKind::kXid,
     .is_of_kernel_log = true,
     .words = {{.text = "nvrm: xid (",
                .stands = kAnywhereOrCode,
                .force = kWeak,
                .accepts = has_xid_number,
                .reads = read_xid}}},
};

}  // namespace

std::span<const KindRow> operand_kinds() { return kOperandKinds; }

}  // namespace faultline
