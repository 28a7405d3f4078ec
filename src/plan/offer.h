// A remedy as a dry run offers it: it applies to what the program was seen to do. What each is, and how a rerun applies it, is in
// python/faultline/plan/torch/remedies; here they are only chosen and combined.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace faultline {

// Lines of the program's source that would be others.
struct Edit {
  std::string file;
  std::uint64_t line = 0;  // of the first old one; of what is put in without an old one, the line it stands before
  std::vector<std::string> old_lines, new_lines;
};

struct Offer {
  std::string name;                     // "checkpoint"
  std::string value;                    // "1/2"; of one remedy the stronger come later
  std::string label;                    // in a row of several: "checkpointing of all layers"
  std::string what;                     // as an instruction
  std::uint64_t cost = 0;               // how much it asks of the user
  std::map<std::string, double> keeps;  // the share that stays of parameters, gradients, optimizer: never too much; of
                                        // "running", all else, it is a guess; 1 where it is not told
  double dose = 1;                      // the share of the remedy for which "running" is told
  std::vector<Edit> edits;
  std::vector<std::string> excludes;  // names of others that it does not go with
  std::string wants;                  // one that it needs beside it
  std::uint64_t compute = 0;          // the compute capability it needs, its first number
  std::vector<std::string> command;   // the number is in the command: the command with the other; else empty
};

// Words of edits in whose place a number comes.
inline constexpr std::string_view kValue = "@VALUE@", kMany = "@MANY@";
std::vector<Edit> filled_in(std::vector<Edit> edits, std::string_view word, std::uint64_t number);

// A unified diff of all edits, file by file. Of two that change the same line the first is shown.
std::string diff_of(std::vector<Edit> edits);

}  // namespace faultline
