#include "sources/messages/kinds.h"

#include <algorithm>

#include "base/result.h"
#include "sources/messages/tables.h"

namespace faultline {
namespace {

struct LibraryNames {
  std::string_view name, in_files;
};
constexpr std::array<LibraryNames, 7> kLibraries = {{{"", ""},
                                                     {"cuBLAS", "cublas"},
                                                     {"cuSOLVER", "cusolver"},
                                                     {"cuSPARSE", "cusparse"},
                                                     {"cuFFT", "cufft"},
                                                     {"cuDNN", "cudnn"},
                                                     {"NCCL", "nccl"}}};

const KindRow kNoKind = {.name = "", .group = ErrorKind::kNone};

// A row for each kind: the enumerators at their places, all others behind them.
std::vector<const KindRow*> join_rows() {
  constexpr auto kNamed = static_cast<std::size_t>(MessageKind::kFirstByRow);
  std::vector<const KindRow*> rows(kNamed, nullptr);
  rows[0] = &kNoKind;
  for (const std::span<const KindRow> table : {cuda_kinds(), host_memory_kinds(), host_ended_kinds(), device_kinds(),
                                               gpu_memory_kinds(), serving_kinds(), launch_kinds(), operand_kinds()}) {
    for (const KindRow& row : table) {
      if (row.id == MessageKind::kNone)
        rows.push_back(&row);
      else
        rows[static_cast<std::size_t>(row.id)] = &row;
    }
  }
  FAULTLINE_CHECK(std::find(rows.begin(), rows.end(), nullptr) == rows.end());
  return rows;
}

const std::vector<const KindRow*>& all_rows() {
  static const std::vector<const KindRow*> rows = join_rows();
  return rows;
}

MessageKind kind_where(const auto& is_meant) {
  const auto found =
      std::find_if(all_rows().begin(), all_rows().end(), [&](const KindRow* row) { return is_meant(*row); });
  return static_cast<MessageKind>(found == all_rows().end() ? 0 : found - all_rows().begin());
}

constexpr auto kProgramTables = {learning_programs, other_programs};

}  // namespace

std::string_view name_of(Library library) { return kLibraries[static_cast<std::size_t>(library)].name; }
std::string_view file_name_of(Library library) { return kLibraries[static_cast<std::size_t>(library)].in_files; }

const KindRow& row_of(MessageKind kind) {
  const auto at = static_cast<std::size_t>(kind);
  return at < all_rows().size() ? *all_rows()[at] : kNoKind;
}

std::string_view name_of(MessageKind kind) { return row_of(kind).name; }

MessageKind kind_named(std::string_view name) {
  return kind_where([&](const KindRow& row) { return row.name == name; });
}

MessageKind kind_of(Library library, LibraryFailure failure) {
  return kind_where([&](const KindRow& row) { return row.library == library && row.failure == failure; });
}

std::span<const KnownWords> all_known_words() {
  static const std::vector<KnownWords> all = [] {
    std::vector<KnownWords> known;
    for (const auto table : kProgramTables) {
      for (const Program& program : table()) {
        for (const MessageWords& words : program.words)
          known.push_back(
              {&words, words.kind == MessageKind::kNone ? MessageKind::kOutOfMemory : words.kind, program.name});
      }
    }
    for (std::size_t kind = 0; kind < all_rows().size(); ++kind) {
      for (const MessageWords& words : all_rows()[kind]->words)
        known.push_back({&words, static_cast<MessageKind>(kind), words.program});
    }
    return known;
  }();
  return all;
}

const Program* program_of(std::string_view name) {
  if (name.empty()) return nullptr;
  for (const auto table : kProgramTables) {
    for (const Program& program : table()) {
      if (program.name == name) return &program;
    }
  }
  return nullptr;
}

}  // namespace faultline
