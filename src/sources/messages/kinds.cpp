#include "sources/messages/kinds.h"

#include <algorithm>
#include <deque>

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

// A row for each way in which a library's status says that it failed, "cudnn-init".
const std::deque<KindRow>& library_rows() {
  static constexpr std::array<std::string_view, 7> kFailures = {"",          "refused",  "alloc", "init",
                                                                "execution", "internal", "error"};
  static std::deque<std::string> names;
  static const std::deque<KindRow> rows = [] {
    std::deque<KindRow> made;
    for (const Library library :
         {Library::kCublas, Library::kCusolver, Library::kCusparse, Library::kCufft, Library::kCudnn}) {
      for (std::size_t at = 1; at < kFailures.size(); ++at) {
        const auto failure = static_cast<LibraryFailure>(at);
        const bool is_start =
            failure == LibraryFailure::kInit || (library == Library::kCudnn && failure == LibraryFailure::kInternal);
        const bool is_main = library == Library::kCublas || library == Library::kCudnn;
        made.push_back(
            {.name = names.emplace_back(std::string(file_name_of(library)) + "-" + std::string(kFailures[at])),
             .group = failure == LibraryFailure::kAlloc ? ErrorKind::kLibraryMemory
                      : is_start                        ? ErrorKind::kLibraryStart
                                                        : ErrorKind::kLibraryFailure,
             .is_allocation = is_main && (failure == LibraryFailure::kAlloc || failure == LibraryFailure::kInit),
             .library = library,
             .failure = failure});
      }
    }
    return made;
  }();
  return rows;
}

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
  const std::size_t told = rows.size();
  for (const KindRow& row : library_rows()) {
    const auto is_told = [&](const KindRow* other) { return other != nullptr && other->name == row.name; };
    if (std::none_of(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(told), is_told)) rows.push_back(&row);
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
