// A pack of an input: one archive for a bug report (sources/pack/pack.h has its form, docs/pack.md tells what is in it and what is not).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pack/rewrite.h"
#include "pack/scrubber.h"

namespace faultline::pack {

struct PackRequest {
  std::string path;  // a run's folder, a folder with files that Faultline reads, or one such file
  Owner owner;
  Manner manner;
  // called before each file: its name, how many are done, of how many; false: somebody asked for an end
  std::function<bool(const std::string& name, std::size_t done, std::size_t all)> step;
};

struct LeftOut {
  std::string name;  // as it is shown: scrubbed too
  std::string why;
};

struct Pack {
  std::string archive;
  std::size_t files = 0;
  std::vector<std::string> written_as_traces;  // what had another form
  std::vector<LeftOut> left_out;
  std::array<Scrubber::Count, kKindCount> taken_out{};
};

Result<Pack> make_pack(const PackRequest& request);

}  // namespace faultline::pack
