// The kinds of messages: one table, of which everything else about a message is found.
//
// A row has all of a kind: the words that are looked for in a text, how they must stand there and what is read from them, how strong they are, what the kind states as types, and what it means to the
// user: the rule that tells of it, how sure that is, the sentence, what to try. Meanings are rules' business, and rules stand behind sources; as they are data and nothing but data, the whole row
// stands here, where both sides can read it: `sources/error_text` finds words and fills in a statement, `rules/known_messages` finds the meaning by the typed kind. A program that people use has a row of
// its own (programs.h), with its words for the common kinds and what helps there.
//
// A MessageKind is a row. Those that code asks for have an enumerator, which their row names; all others are known by their row alone. Their names ("host-alloc") are for files: the property
// error.kind of a trace.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/confidence.h"
#include "sources/messages/platform.h"
#include "sources/rule_names.h"
#include "trace/fault_kind.h"

namespace faultline {

struct ErrorMessage;
struct ErrorPassage;

enum class MessageKind : std::uint16_t {
  kNone,  // there is no message, or none that is known
  kOutOfMemory,
  kPoolGrowth,
  kIllegalAddress,
  kMisalignedAddress,
  kDeviceAssert,
  kLaunchFailure,
  kIllegalInstruction,
  kLaunchTimeout,
  kLaunchResources,
  kLaunchConfiguration,
  kNoKernelImage,
  kEccError,
  kIllegalState,
  kSharedMemoryLimit,
  kNcclOom,
  kNcclCudaError,
  kHostAlloc,
  kHostAllocXla,
  kHostArena,
  kHostBus,
  kHostKilled,
  kHostPinned,
  kHostPinnedPool,
  kHostWorker,
  kRematerialization,
  kSetupLibraryVersion,
  kVllmLength,
  kVllmStart,
  kModelVram,
  kBufferLimit,
  kTpuScratch,
  kRocmTimeout,
  kRocmReset,
  kRocmRecovered,
  kXid,
  kCheckpoint,
  kOperands,
  kOperandsKeras,
  kOperandsShapes,
  kFirstByRow,  // from here on by their rows
};

// What a kind belongs to, by which the rules part the messages among them.
enum class ErrorKind : std::uint8_t {
  kNone,            // there is no message
  kOutOfMemory,     // of a framework, or of the runtime itself
  kPoolGrowth,      // TensorFlow's pool did not get larger: not fatal by itself
  kLibraryMemory,   // cuBLAS, cuDNN, NCCL say that they got no memory
  kLibraryStart,    // a library could not start, most often for want of memory
  kLibraryFailure,  // it failed in another way
  kNcclCall,        // a CUDA call of NCCL's failed, and the message does not say how
  kFault,           // a kernel: KindRow::fault
  kKnown,           // known by its words alone, with its meaning in its row
};

enum class Library : std::uint8_t { kNone, kCublas, kCusolver, kCusparse, kCufft, kCudnn, kNccl };
std::string_view name_of(Library library);       // "cuBLAS"
std::string_view file_name_of(Library library);  // "cublas"
enum class LibraryFailure : std::uint8_t { kNone, kRefused, kAlloc, kInit, kExecution, kInternal, kError };

// How the words must stand in a text.
enum class Stands : std::uint8_t {
  kAsError,  // where a program puts an error: behind a colon, a bracket or an error's name, or at the start of its line
  kAnywhere,       // nobody writes these words in prose; a form's first number must be there
  kAsErrorOrCode,  // the same two, also between marks of code and in lists of names
  kAnywhereOrCode,
  kBegins,      // at the start of its line, or behind an error's name
  kBehindName,  // behind an error's name
  kAsAccepted,  // as `accepts` says, whatever stands around them
};
enum class Force : std::uint8_t {
  kStrong,
  kWeak,    // another, later message may explain it better
  kBenign,  // the program says itself that it goes on
};

struct MessageWords {
  std::string_view text;  // lower case, single blanks, shorter than 64
  Stands stands = Stands::kAsError;
  Force force = Force::kStrong;
  // Its numbers, each behind the words in front of it: "memory ({requested}) than is available ({free})"; "{requested:n}" is a plain number of bytes.
  std::string_view form = {};
  std::string_view needs = {};                     // words that stand beside it, lower case
  std::string_view program = {};                   // of a kind's words: who writes so; empty: several do
  MessageKind kind = MessageKind::kNone;           // of a program's words: kOutOfMemory unless another is named
  bool (*accepts)(const ErrorPassage&) = nullptr;  // what else must be so (extractors.h)
  void (*reads)(const ErrorPassage&, ErrorMessage&) = nullptr;  // what it states beside its form
};

// Whom something to try is of use to.
enum class Suits : std::uint8_t {
  kAll,
  kTorch,         // programs of PyTorch
  kTorchSince21,  // likewise, of its releases from 2.1 on
  kWithoutNumber  // where the message lacks the number by which its rule says it exactly
};
struct MessageTry {
  constexpr MessageTry() = default;
  constexpr MessageTry(const char* words, Suits suits_whom = Suits::kAll) : what(words), suits(suits_whom) {}
  std::string_view what;  // PROGRAM stands for the command
  Suits suits = Suits::kAll;
};

struct KindRow {
  std::string_view name;                // in files
  MessageKind id = MessageKind::kNone;  // where code asks for this kind
  ErrorKind group = ErrorKind::kKnown;
  FaultKind fault = FaultKind::kUnknown;
  bool is_allocation = false;  // an allocation failed, rather than a kernel
  bool ends_cuda = false;      // of a kernel on the GPU: the process does nothing more on the device
  bool is_harmless = false;    // it is told only where nothing else is, as a note
  // a line of the system's kernel (Xid, its killer), which tells of something of its own
  bool is_of_kernel_log = false;
  Platform platform = Platform::kCuda;
  Library library = Library::kNone;
  LibraryFailure failure = LibraryFailure::kNone;
  std::string_view rule = {};
  Confidence confidence = Confidence::kProved;
  std::string_view meaning = {};               // empty: its rule makes the sentence from what is stated
  std::string_view meaning_beyond_torch = {};  // where it is another for a program that has nothing of PyTorch
  std::array<MessageTry, 4> tries = {};
  std::initializer_list<MessageWords> words = {};
};

inline constexpr std::string_view kHostMemory = rule_name::kHostMemory, kDeviceNotUsable = rule_name::kDeviceNotUsable,
                                  kGpuMemory = rule_name::kOutOfMemory, kLaunchError = rule_name::kLaunchError;

const KindRow& row_of(MessageKind kind);
std::string_view name_of(MessageKind kind);
MessageKind kind_named(std::string_view name);                 // kNone: no such kind
MessageKind kind_of(Library library, LibraryFailure failure);  // kNone: it does not fail so
inline bool is_of_host(const KindRow& row) { return row.rule == kHostMemory; }

// Words to look for, each with the kind that it means and who writes so.
struct KnownWords {
  const MessageWords* words = nullptr;
  MessageKind kind = MessageKind::kNone;
  std::string_view program;
};
std::span<const KnownWords> all_known_words();

}  // namespace faultline
