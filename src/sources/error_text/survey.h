// All messages of a text, in order, each wording once.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "sources/error_text/anchors.h"
#include "sources/error_text/message.h"

namespace faultline {

struct Chosen {
  ErrorMessage message;
  std::size_t begin = 0;    // where it stands in the text
  std::size_t again = 0;    // and where the same words stand for the last time
  std::uint64_t times = 0;  // how often the same writer said them, each failure once
};

struct Survey {
  std::vector<Chosen> all;      // in order, each wording once; bounded
  std::optional<Chosen> first;  // the first message that explains itself
  std::optional<Chosen> first_weak;
  std::optional<Chosen> harmless;      // the first line that looks like an error and is none
  std::optional<Chosen> assertion;     // the first line a kernel printed before it stopped
  std::optional<Chosen> assert_error;  // the error that such a line led to
  std::vector<Chosen> kernel_log;      // lines of the system's kernel (Xid, its killer), each kind and number once
  std::uint64_t assertion_lines = 0;
  std::uint64_t readings = 0;
  std::uint64_t not_read = 0;  // lines with further messages
  std::string quoted;          // the first message that stands only in source text or in a sentence about it
  std::map<MessageKind, std::uint64_t> counts;
  std::map<MessageKind, HashSet<std::string>> texts;
  std::map<std::string, std::size_t> last;  // where each writer's last message stands
};

// Of a kernel on the GPU: the process does nothing more on the device.
inline bool ends_cuda(MessageKind kind) { return row_of(kind).ends_cuda; }
// An Xid that only follows from another.
bool is_consequence(const ErrorMessage& message);

// Of the allocator that TensorFlow and JAX share.
inline bool is_of_pool(const ErrorMessage& message) { return has_pool(message.framework); }

// Whose allocator printed the line at `at`: of TensorFlow, of JAX, or of either.
Framework pool_owner(std::string_view text, std::size_t at);

Survey survey(std::string_view text, const AnchorHits& found);

}  // namespace faultline
