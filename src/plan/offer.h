// A remedy as a dry run offers it: it applies to what the program was seen to do. What each is stands in python/faultline/plan/remedies/table.py, how a rerun
// applies it in the remedies of its framework; here they are only chosen and combined.
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

// A number of the program that a remedy makes smaller.
enum class OfferedNumber : std::uint8_t { kNone, kBatch, kLength };
std::string_view name_of(OfferedNumber number);  // "batch"; empty: none

// What may be done with one of a kind of remedy is said by its traits: nothing is decided by its name.
struct Offer {
  std::string name;                     // "checkpoint"
  std::string value;                    // "1/2"; of one remedy the stronger come later
  std::string label;                    // in a row of several: "checkpointing of all layers"
  std::string what;                     // as an instruction
  std::uint64_t cost = 0;               // how much it asks of the user
  std::map<std::string, double> keeps;  // the share that stays of parameters, gradients, optimizer: never too much; of
                                        // "running", all else, it is a guess; 1 where it is not told
  double dose = 1;                      // the share of the remedy for which "running" is told
  // Of the program's source, complete: a run makes them, and they are printed; empty: a run makes the change in another way.
  std::vector<Edit> edits;
  std::uint64_t many = 0;             // what kManyPlace in them stands for
  std::vector<std::string> excludes;  // names of others that it does not go with
  std::string wants;                  // one that it needs beside it
  std::string beside;                 // one that a run makes beside it, where the edits do not have it
  std::uint64_t compute = 0;          // the compute capability it needs, its first number
  OfferedNumber number = OfferedNumber::kNone;
  std::uint64_t cost_step = 0;       // of a number, for each value after the first
  bool answers = false;              // where it is enough, nothing else is looked for
  bool is_searched = false;          // its best value is searched for: it is not tried alone
  bool computes_another = false;     // the program then computes something else: it is tried last
  bool wants_more_gpus = false;      // than the program has
  bool tells = false;                // what was done is told with it
  std::vector<std::string> command;  // the number is in the command: the command with the other; else empty
};

// Words of edits in whose place a number comes.
inline constexpr std::string_view kValuePlace = "@VALUE@", kManyPlace = "@MANY@";
std::vector<Edit> filled_in(std::vector<Edit> edits, std::string_view word, std::uint64_t number);

// A unified diff of edits that share no line, file by file, with paths from the working folder. Without lines around them: `patch` puts them where they belong.
std::string diff_of(std::vector<Edit> edits);

}  // namespace faultline
