// The maps of TensorFlow's and JAX's pools in a text (bfc_dump/dump_text.h), and which of them a message is about.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sources/bfc_dump/dump_text.h"
#include "sources/error_text/survey.h"

namespace faultline {

struct TakenPools {
  std::vector<PoolDump> pools;
  bool has_own = false;  // the last of them is the one that the message tells of
};

class TextPools {
 public:
  explicit TextPools(std::string_view text) : found_(read_pool_dumps(text)) {}

  // A message for a text that holds a map and no message: what is left of a log that was cut.
  std::optional<Chosen> stand_in(std::string_view text) const;

  // Messages about memory of the host that name a pool of which there is a map: they tell of that pool.
  void adopt(Survey& seen) const;

  // The pools at the moment that the message tells of: its own last, where pool and size of a map agree with it; before it others of the same process. Empty: the message is
  // not about a pool, or there is no map. What only one of message and map tells is added to the other.
  TakenPools take(std::string_view text, ErrorMessage& message, std::size_t at);
  std::uint64_t not_taken() const { return not_taken_; }

 private:
  PoolDumps found_;
  std::uint64_t not_taken_ = 0;
};

}  // namespace faultline
