// Who holds what piles up, as a dry run saw it in the program's own Python: properties "dry-run.held.NN" of its trace. A recording of a GPU has none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "facts/growth.h"
#include "trace/trace.h"

namespace faultline {

struct Holding {
  std::string holder;             // "feats, a list in main()"; empty: not found
  bool by_graph = false;          // an autograd graph holds them, or what is held has one
  bool only_graph = false;        // no object refers to them
  bool graph_is_freed = false;    // what is held has one that keeps nothing
  double own_share = 0;           // of their bytes, what objects of the program refer to: it stays without a graph
  std::uint64_t limit_bytes = 0;  // the holder has a limit: all of it when it is full
};

class HeldBy {
 public:
  explicit HeldBy(const Trace& trace);
  // Nothing where it was not seen.
  std::optional<Holding> of(const Growth& growth) const;

 private:
  struct Seen {
    std::vector<std::string> lines;
    std::uint64_t count = 0, bytes = 0, length = 0, limit = 0;
    bool graph = false, has_graph = false, graph_is_freed = false;
    std::string holder;
  };
  const Trace& trace_;
  std::vector<Seen> seen_;
};

}  // namespace faultline
