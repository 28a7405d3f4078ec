// PyTorch's own out-of-memory texts, from 1.0 to today, of the CUDA, ROCm, XPU and Metal allocators and their forks.
//
// All of them are sizes between fixed words, in an order that changed over the years. So the sizes are read wherever they stand, and what
// one means is decided by the words on either side of it.
#include <array>

#include "sources/error_text/log_lines.h"
#include "sources/error_text/message.h"

namespace faultline {
namespace {

struct Field {
  std::string_view before;                           // the text in front of the size ends so
  std::string_view after;                            // and the text behind it starts so
  std::optional<ByteInterval> StatedError::*number;  // what is printed as allocated (live) counts graph pools as well
};
constexpr std::array kFields = {
    Field{"tried to allocate ", "", &StatedError::requested},
    Field{"total capacity of ", "", &StatedError::capacity},
    Field{"total capacty of ", "", &StatedError::capacity},
    Field{"", " total capacity", &StatedError::capacity},
    Field{"of which ", " is free", &StatedError::free},
    Field{"", " free;", &StatedError::free},
    Field{"this process has ", "", &StatedError::this_process},
    Field{"", " allowed;", &StatedError::allowed},
    Field{"", " is allocated by pytorch", &StatedError::live},
    Field{"", " already allocated", &StatedError::live},
    Field{"", " allocated in private pools", &StatedError::graph_pool},
    Field{"", " is reserved by pytorch but unallocated", &StatedError::cached},
    Field{"", " cached)", &StatedError::cached},
    Field{"", " reserved in total by", &StatedError::reserved},
    Field{"currently allocated : ", "", &StatedError::live},
    Field{"requested : ", "", &StatedError::requested},
    Field{"device limit : ", "", &StatedError::capacity},
    Field{"free (according to cuda): ", "", &StatedError::free},
    Field{"memory fraction) : ", "", &StatedError::allowed},
    Field{"mps allocated: ", "", &StatedError::live},
    Field{"other allocations: ", "", &StatedError::other_metal},
    Field{"max allowed: ", "", &StatedError::allowed},
};

constexpr std::size_t kMostProcesses = 64;

// Sizes of 2^60 and more are how the drivers write "not known" (all bits set).
bool is_stated(ByteInterval bytes) { return bytes.min < (std::uint64_t{1} << 60); }

void read_fields(const ErrorPassage& passage, std::size_t end, SizeStyle style, ErrorMessage& message) {
  const std::string_view lower = std::string_view(passage.lower).substr(0, end);
  for (std::size_t at = 0; at < lower.size(); ++at) {
    if (lower[at] < '0' || lower[at] > '9') continue;
    const auto size = parse_printed_size(lower, at, style);
    if (!size) {
      while (at + 1 < lower.size() && lower[at + 1] >= '0' && lower[at + 1] <= '9') ++at;
      continue;
    }
    const std::string_view before = lower.substr(0, at);
    const std::string_view after = lower.substr(at + size->length);
    if (after.starts_with(" memory in use") && before.ends_with(" has ") && !before.ends_with("this process has ")) {
      const std::size_t pid = before.rfind("process ");
      const auto number = pid == std::string_view::npos ? std::nullopt : number_at(before, pid + 8);
      if (number && message.processes.size() < kMostProcesses) {
        message.processes.push_back({std::to_string(*number), {}});
        if (is_stated(size->bytes)) message.processes.back().bytes = size->bytes;
      }
    } else {
      for (const Field& field : kFields) {
        if (!before.ends_with(field.before) || !after.starts_with(field.after)) continue;
        auto& number = message.*field.number;
        if ((is_stated(size->bytes) || field.number == &StatedError::requested) && !number) number = size->bytes;
        break;
      }
    }
    at += size->length - 1;
  }
}

void settle(ErrorMessage& message) {
  // What is printed as allocated counts the free blocks of graph pools as well; the live part is the difference.
  if (message.live && message.graph_pool) message.live = *message.live - *message.graph_pool;
  if (message.live && message.reserved && !message.cached) {
    message.cached = *message.reserved - *message.live;
  } else if (message.live && message.cached && !message.reserved) {
    message.reserved = *message.live + *message.cached + message.graph_pool.value_or(ByteInterval{});
  }
}

constexpr std::string_view kTried = ". tried to allocate";

std::string backend_before(const std::string& before) {
  const std::size_t last = before.find_last_not_of(' ');
  if (last == std::string::npos) return {};
  const std::size_t blank = before.find_last_of(" :`'\"(", last);
  const std::string word = before.substr(blank == std::string::npos ? 0 : blank + 1,
                                         last - (blank == std::string::npos ? 0 : blank + 1) + 1);
  return word == "CUDA" || word == "HIP" || word == "XPU" || word == "NPU" || word == "MUSA" || word == "MLU"
             ? word
             : std::string();
}

void read_device(const ErrorPassage& passage, std::size_t end, ErrorMessage& message) {
  const std::string_view lower = std::string_view(passage.lower).substr(0, end);
  for (const std::string_view word : {"gpu ", "npu ", "allocation on device "}) {
    for (std::size_t at = lower.find(word); at != std::string_view::npos; at = lower.find(word, at + 1)) {
      const auto number = number_at(lower, at + word.size());
      if (!number || *number > 4096) continue;
      message.device = static_cast<std::uint16_t>(*number);
      return;
    }
  }
}

// Where this message's words end: at the next message, or behind its last known sentence.
std::size_t message_end(const ErrorPassage& passage, std::string_view anchor, std::size_t skip) {
  std::size_t end = passage.lower.find(anchor, skip);
  if (end == std::string::npos) end = passage.lower.size();
  for (const std::string_view closing :
       {"optimizing-memory-usage-with-pytorch-cuda-alloc-conf)", "cuda.html#environment-variables)",
        "and pytorch_cuda_alloc_conf", "and pytorch_hip_alloc_conf", "to avoid fragmentation.", "but unallocated.",
        "reserved in total by pytorch)", "cached)", "more than 1eb memory.", "(may cause system failure)."}) {
    const std::size_t at = passage.lower.find(closing);
    if (at != std::string::npos && at + closing.size() <= end) return at + closing.size();
  }
  return end;
}

// What is left of a message whose beginning is cut off: "already allocated; 19.19 MiB free; 14.02 GiB reserved in total by PyTorch)".
std::optional<ErrorMessage> cut_message(const ErrorPassage& passage) {
  if (passage.before.find("ried to allocate") != std::string::npos ||
      passage.before.find("out of memory") != std::string::npos || passage.before.find('"') != std::string::npos)
    return std::nullopt;
  ErrorPassage whole = passage;
  whole.words = passage.before + " " + passage.words;
  whole.lower = lower_case(whole.words);
  const std::size_t end = message_end(whole, "out of memory. tried to allocate", 0);
  ErrorMessage message =
      said(MessageKind::kOutOfMemory, Framework::kPyTorch, trimmed(std::string_view(whole.words).substr(0, end), 1200));
  read_fields(whole, end, SizeStyle::kTorch, message);
  if (!message.free && !message.cached) return std::nullopt;
  message.weak = true;
  message.cut = true;
  settle(message);
  return message;
}

// ", skipping batch", "; retrying with 4": what a program's own line says that it does about it.
bool says_what_it_does(std::string_view rest) {
  if (rest.size() > 100 || !(rest.starts_with(", ") || rest.starts_with("; ") || rest.starts_with(" - "))) return false;
  rest.remove_prefix(rest.find_first_not_of(",; -"));
  static constexpr std::array<std::string_view, 7> kDoes = {"skipping", "retrying", "reducing", "falling back",
                                                            "halving",  "clearing", "trying"};
  return std::any_of(kDoes.begin(), kDoes.end(), [&](std::string_view does) { return rest.starts_with(does); });
}

// The words alone: "CUDA out of memory", or a message that is cut before its numbers.
std::optional<ErrorMessage> bare_message(const ErrorPassage& passage) {
  ErrorMessage message = said(MessageKind::kOutOfMemory, Framework::kPyTorch, "");
  std::size_t end = passage.lower.find("out of memory") + 13;
  const char next = end < passage.lower.size() && end < passage.first_line_length ? passage.lower[end] : '\n';
  // whole, it is read by its numbers
  if (passage.lower.compare(end, kTried.size(), kTried) == 0) return std::nullopt;
  std::string_view rest = std::string_view(passage.lower).substr(0, passage.first_line_length);
  rest = rest.substr(std::min(end, rest.size()));
  while (!rest.empty() && std::string_view(" .!\xE2\x80\xA6").find(rest.back()) != std::string_view::npos)
    rest.remove_suffix(1);
  const bool is_cut = rest.size() >= 3 && kTried.starts_with(rest);
  // "WARNING: CUDA out of memory, skipping batch"
  if (says_what_it_does(rest) && stands_as_message(passage)) {
    message.weak = true;
    message.text = trimmed(std::string_view(passage.words).substr(0, passage.first_line_length), 200);
    message.backend = passage.lower.find("hip out") < end ? "HIP" : "CUDA";
    return message;
  }
  // Without an exception's name in front, only where the words are all that the line has.
  if (!passage.lower.starts_with("error") && (!passage.before.empty() || (!rest.empty() && !is_cut)))
    return std::nullopt;
  if (!is_cut &&
      (passage.lower.compare(end, 7, ". tried") == 0 || (next != '\n' && next != '.' && next != ',' && next != '!') ||
       (next != '\n' && end + 2 < passage.first_line_length && next != '.')))
    return std::nullopt;
  if (is_cut) end += rest.size();
  message.weak = true;
  message.text = trimmed(std::string_view(passage.words).substr(0, end), 200);
  message.backend = passage.lower.find("hip out") < end ? "HIP" : "CUDA";
  return message;
}

}  // namespace

std::optional<ErrorMessage> read_torch_message(Anchor anchor, const ErrorPassage& passage) {
  ErrorMessage message;
  message.kind = MessageKind::kOutOfMemory;
  message.framework = Framework::kPyTorch;
  if (anchor == Anchor::kTorchOomBare) return bare_message(passage);
  if (anchor == Anchor::kTorchCut) return cut_message(passage);
  if (anchor == Anchor::kMetalOom) {
    const std::size_t end = message_end(passage, "mps backend out of memory (", 20);
    read_fields(passage, end, SizeStyle::kMetal, message);
    if (!message.requested) return std::nullopt;
    message.backend = "MPS";
    message.pool = kMetalPool;
    message.text = trimmed(std::string_view(passage.words).substr(0, end), 1200);
    settle(message);
    return message;
  }
  if (anchor == Anchor::kAsyncOom) {
    // "Allocation on device 0" stands in front of the anchor, the numbers below it.
    ErrorPassage whole = passage;
    const std::size_t start = passage.before.rfind("Allocation on device");
    const std::string front = start == std::string::npos ? std::string() : passage.before.substr(start) + " ";
    whole.words = front + passage.words;
    whole.lower = front + passage.lower;
    for (char& c : whole.lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    std::size_t end = whole.lower.find("memory fraction) : ");
    end = end == std::string::npos ? std::min<std::size_t>(whole.lower.size(), 420)
                                   : std::min(whole.lower.size(), end + 45);
    read_fields(whole, end, SizeStyle::kTorch, message);
    read_device(whole, end, message);
    message.backend = "CUDA";
    message.pool = kAsyncPool;
    const std::size_t last_unit = whole.words.substr(0, end).rfind("iB");
    message.text =
        trimmed(std::string_view(whole.words).substr(0, last_unit == std::string::npos ? end : last_unit + 2), 600);
    settle(message);
    return message;
  }
  const std::size_t end = message_end(passage, "out of memory. tried to allocate", 20);
  const std::string backend = backend_before(passage.before);
  message.backend = backend.empty() ? "GPU" : backend;
  if (passage.lower.find("more than 1eb memory") != std::string::npos &&
      passage.lower.find("more than 1eb memory") < end) {
    message.requested = ByteInterval::exactly(std::uint64_t{1} << 60);
  } else {
    read_fields(passage, end, SizeStyle::kTorch, message);
    // cut in the middle of its first number, or with one that is none
    if (!message.requested) {
      const bool stands = passage.before == backend || passage.before.find("Error") != std::string::npos;
      if (backend.empty() || !stands) return std::nullopt;
      message.weak = true;
    }
  }
  read_device(passage, end, message);
  message.text =
      (backend.empty() ? std::string() : backend + " ") + trimmed(std::string_view(passage.words).substr(0, end), 1200);
  settle(message);
  return message;
}

}  // namespace faultline
