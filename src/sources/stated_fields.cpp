#include "sources/stated_fields.h"

#include <array>
#include <charconv>
#include <limits>
#include <span>
#include <variant>

namespace faultline {
namespace {

constexpr std::array<std::string_view, 4> kAskedOf = {"", "driver", "context", "unified-memory"};

using Place = std::variant<std::string*, bool*, std::optional<bool>*, std::optional<ByteInterval>*,
                           std::optional<std::uint64_t>*, std::uint64_t*, AskedOf*>;

template <typename Of>
struct Field {
  std::string_view name;
  Place (*of)(Of&);
};

#define FAULTLINE_FIELD(name, type, member)            \
  {                                                    \
    name, [](type& of) -> Place { return &of.member; } \
  }

// What a reader of a message fills in, and one of several messages about one failure may add.
const Field<StatedError> kStated[] = {
    FAULTLINE_FIELD("requested", StatedError, requested),
    FAULTLINE_FIELD("capacity", StatedError, capacity),
    FAULTLINE_FIELD("free", StatedError, free),
    FAULTLINE_FIELD("allocated", StatedError, live),
    FAULTLINE_FIELD("cached", StatedError, cached),
    FAULTLINE_FIELD("graph_pool", StatedError, graph_pool),
    FAULTLINE_FIELD("reserved", StatedError, reserved),
    FAULTLINE_FIELD("allowed", StatedError, allowed),
    FAULTLINE_FIELD("this_process", StatedError, this_process),
    FAULTLINE_FIELD("used", StatedError, used),
    FAULTLINE_FIELD("other_metal", StatedError, other_metal),
    FAULTLINE_FIELD("executable_total", StatedError, executable_total),
    FAULTLINE_FIELD("executable_temporaries", StatedError, executable_temporaries),
    FAULTLINE_FIELD("limit", StatedError, limit),
    FAULTLINE_FIELD("start_free", StatedError, start_free),
    FAULTLINE_FIELD("start_capacity", StatedError, start_capacity),
    FAULTLINE_FIELD("start_pool", StatedError, start_pool),
    FAULTLINE_FIELD("refused_region", StatedError, refused_region),
    FAULTLINE_FIELD("refused_unified", StatedError, refused_unified),
    FAULTLINE_FIELD("asynchronous", StatedError, asynchronous),
    FAULTLINE_FIELD("benign", StatedError, benign),
    FAULTLINE_FIELD("guessed", StatedError, guessed),
    FAULTLINE_FIELD("cut", StatedError, cut),
    FAULTLINE_FIELD("disguise", StatedError, disguised),
    FAULTLINE_FIELD("for_constant", StatedError, for_constant),
    FAULTLINE_FIELD("for_autotuner", StatedError, for_autotuner),
    FAULTLINE_FIELD("at_pool_limit", StatedError, at_pool_limit),
    FAULTLINE_FIELD("of_unknown_memory", StatedError, of_unknown_memory),
    FAULTLINE_FIELD("asked_of", StatedError, asked_of),
    FAULTLINE_FIELD("backend", StatedError, backend),
    FAULTLINE_FIELD("status", StatedError, status),
    FAULTLINE_FIELD("call", StatedError, call),
    FAULTLINE_FIELD("tokens", StatedError, tokens),
    FAULTLINE_FIELD("scratch", StatedError, scratch),
    FAULTLINE_FIELD("tensor.shape", StatedError, tensor_shape),
    FAULTLINE_FIELD("tensor.type", StatedError, tensor_type),
    FAULTLINE_FIELD("op", StatedError, op),
    FAULTLINE_FIELD("op_type", StatedError, op_type),
    FAULTLINE_FIELD("allocator", StatedError, pool),
    FAULTLINE_FIELD("xid", StatedError, xid),
    FAULTLINE_FIELD("process", StatedError, process),
    FAULTLINE_FIELD("assert.expression", StatedError, assertion.expression),
    FAULTLINE_FIELD("assert.kernel", StatedError, assertion.kernel),
    FAULTLINE_FIELD("assert.block", StatedError, assertion.block),
    FAULTLINE_FIELD("assert.thread", StatedError, assertion.thread),
    FAULTLINE_FIELD("assert.lines", StatedError, assertion.lines),
};

// What is told of the message as a whole.
const Field<StatedError> kOfMessage[] = {
    FAULTLINE_FIELD("text", StatedError, text),
    FAULTLINE_FIELD("tag", StatedError, tag),
    FAULTLINE_FIELD("line", StatedError, line),
    FAULTLINE_FIELD("count", StatedError, count),
    FAULTLINE_FIELD("distinct", StatedError, distinct),
    FAULTLINE_FIELD("address", StatedError, address),
    FAULTLINE_FIELD("ended_by", StatedError, ended_by),
    FAULTLINE_FIELD("ended_while_handled", StatedError, ended_while_handled),
    FAULTLINE_FIELD("lives_on", StatedError, lives_on),
    FAULTLINE_FIELD("torch_version", StatedError, torch_version),
};

const Field<TextNotes> kNotes[] = {
    FAULTLINE_FIELD("quoted_by", TextNotes, quoted_by),
    FAULTLINE_FIELD("who", TextNotes, who.name),
    FAULTLINE_FIELD("who.is_rank", TextNotes, who.is_rank),
    FAULTLINE_FIELD("who.is_task", TextNotes, who.is_task),
    FAULTLINE_FIELD("launcher", TextNotes, launcher),
    FAULTLINE_FIELD("command", TextNotes, command),
    FAULTLINE_FIELD("program", TextNotes, program),
    FAULTLINE_FIELD("refused", TextNotes, refused),
    FAULTLINE_FIELD("gpu.name", TextNotes, gpu.name),
    FAULTLINE_FIELD("gpu.architecture", TextNotes, gpu.architecture),
    FAULTLINE_FIELD("gpu.built_for", TextNotes, gpu.built_for),
    FAULTLINE_FIELD("sets_expandable", TextNotes, sets_expandable),
    FAULTLINE_FIELD("has_traceback", TextNotes, has_traceback),
    FAULTLINE_FIELD("shows_no_exception", TextNotes, shows_no_exception),
    FAULTLINE_FIELD("lives_by_words", TextNotes, lives_by_words),
    FAULTLINE_FIELD("ended_because", TextNotes, ended_because),
    FAULTLINE_FIELD("names_torch", TextNotes, names_torch),
    FAULTLINE_FIELD("is_windows", TextNotes, is_windows),
    FAULTLINE_FIELD("is_of_other_language", TextNotes, is_of_other_language),
    FAULTLINE_FIELD("of_request", TextNotes, of_request),
    FAULTLINE_FIELD("ended_at.file", TextNotes, ended_at.file),
    FAULTLINE_FIELD("ended_at.function", TextNotes, ended_at.function),
    FAULTLINE_FIELD("ended_at.line", TextNotes, ended_at.line),
};

#undef FAULTLINE_FIELD

// Writing and reading are the same walk over the fields, each with its own end.
class Writer {
 public:
  explicit Writer(Properties& properties) : properties_(properties) {}

  void operator()(const std::string& name, std::string& word) { put(name, word); }
  void operator()(const std::string& name, bool& said) { put(name, said ? "yes" : ""); }
  void operator()(const std::string& name, std::optional<bool>& said) { put(name, !said ? "" : *said ? "yes" : "no"); }
  void operator()(const std::string& name, std::optional<ByteInterval>& bytes) {
    if (!bytes) return;
    put(name + "_bytes.min", std::to_string(bytes->min));
    put(name + "_bytes.max", std::to_string(bytes->max));
  }
  void operator()(const std::string& name, std::optional<std::uint64_t>& number) {
    if (number) put(name, std::to_string(*number));
  }
  void operator()(const std::string& name, std::uint64_t& number) {
    put(name, number == 0 && name != "error.line" ? "" : std::to_string(number));
  }
  void operator()(const std::string& name, AskedOf& asked) {
    put(name, std::string(kAskedOf[static_cast<std::size_t>(asked)]));
  }
  // Members of a list are counted from 1.
  template <typename Item, typename Each>
  void list(const std::string& name, std::vector<Item>& items, std::size_t, Each each) {
    for (std::size_t i = 0; i < items.size(); ++i) each(*this, name + std::to_string(i + 1), items[i]);
  }

 private:
  void put(const std::string& name, const std::string& word) {
    if (!word.empty()) properties_[name] = word;
  }
  Properties& properties_;
};

class Reader {
 public:
  explicit Reader(const Properties& properties) : properties_(properties) {}

  void operator()(const std::string& name, std::string& word) { word = find(name); }
  void operator()(const std::string& name, bool& said) { said = !find(name).empty(); }
  void operator()(const std::string& name, std::optional<bool>& said) {
    if (const std::string word = find(name); !word.empty()) said = word != "no";
  }
  void operator()(const std::string& name, std::optional<ByteInterval>& bytes) {
    std::optional<std::uint64_t> min, max;
    (*this)(name + "_bytes.min", min);
    (*this)(name + "_bytes.max", max);
    if (min && max && *min <= *max) bytes = ByteInterval{*min, *max};
  }
  void operator()(const std::string& name, std::optional<std::uint64_t>& number) {
    const std::string word = find(name);
    std::uint64_t value = 0;
    if (std::from_chars(word.data(), word.data() + word.size(), value).ec == std::errc()) number = value;
  }
  void operator()(const std::string& name, std::uint64_t& number) {
    std::optional<std::uint64_t> read;
    (*this)(name, read);
    number = read.value_or(number);
  }
  void operator()(const std::string& name, AskedOf& asked) {
    const std::string word = find(name);
    for (std::size_t at = 0; at < kAskedOf.size(); ++at) {
      if (kAskedOf[at] == word) asked = static_cast<AskedOf>(at);
    }
  }
  template <typename Item, typename Each>
  void list(const std::string& name, std::vector<Item>& items, std::size_t most, Each each) {
    for (std::size_t i = 1; i <= most; ++i) {
      Item item;
      if (!each(*this, name + std::to_string(i), item)) break;
      items.push_back(std::move(item));
    }
  }

 private:
  std::string find(const std::string& name) const {
    const auto found = properties_.find(name);
    return found == properties_.end() ? std::string() : found->second;
  }
  const Properties& properties_;
};

constexpr std::size_t kMostBuffers = 5, kMostSurvived = 8, kMostProcesses = 64, kMostAlso = 4, kMostJobs = 16,
                      kMostFurther = 8;

template <typename Of, std::size_t kCount>
void walk(const Field<Of> (&fields)[kCount], const std::string& prefix, Of& of, auto& end) {
  for (const Field<Of>& field : fields)
    std::visit([&](auto* member) { end(prefix + std::string(field.name), *member); }, field.of(of));
}

void walk_kind(const std::string& name, MessageKind& kind, auto& end) {
  std::string word(name_of(kind));
  end(name, word);
  kind = kind_named(word);
}

const auto kWord = [](auto& end, const std::string& name, std::string& word) {
  end(name, word);
  return !word.empty();
};

void walk_error(StatedError& stated, auto& end) {
  const std::string prefix = "error.";
  walk_kind(prefix + "kind", stated.kind, end);
  if (!stated) return;
  std::string maker = stated.maker_name(), other = stated.other_words();
  end(prefix + "framework", maker);
  end(prefix + "other_framework", other);
  stated.set_maker(maker);
  stated.other_framework = framework_named(other);
  if (stated.other_framework == Framework::kOther) stated.other_program = other;
  std::optional<std::uint64_t> device = stated.device;
  end(prefix + "device", device);
  if (device && *device <= std::numeric_limits<std::uint16_t>::max())
    stated.device = static_cast<std::uint16_t>(*device);
  walk(kOfMessage, prefix, stated, end);
  walk(kStated, prefix, stated, end);
  end.list(prefix + "process.", stated.processes, kMostProcesses,
           [](auto& of, const std::string& name, StatedError::ListedProcess& process) {
             of(name + ".pid", process.pid);
             of(name, process.bytes);
             return !process.pid.empty();
           });
  end.list(prefix + "buffer.", stated.buffers, kMostBuffers,
           [](auto& of, const std::string& name, StatedError::Buffer& buffer) {
             std::optional<ByteInterval> bytes = buffer.bytes;
             if (std::is_same_v<decltype(of), Reader&>) bytes.reset();
             of(name, bytes);
             of(name + ".what", buffer.what);
             of(name + ".place", buffer.place);
             buffer.bytes = bytes.value_or(ByteInterval{});
             return bytes.has_value();
           });
  end.list(prefix + "survived.", stated.survived, kMostSurvived, kWord);
}

void walk_notes(TextNotes& notes, auto& end) {
  const std::string prefix = "error.";
  walk(kNotes, prefix, notes, end);
  end.list(prefix + "also.", notes.also, kMostAlso, kWord);
  end.list(prefix + "job.", notes.jobs, kMostJobs, [](auto& of, const std::string& name, TextNotes::Job& job) {
    of(name + ".pid", job.pid);
    of(name + ".who", job.who);
    return !job.pid.empty();
  });
  end.list(prefix + "further.", notes.further, kMostFurther, [](auto& of, const std::string& name, StatedError& line) {
    walk_kind(name + ".kind", line.kind, of);
    of(name + ".text", line.text);
    of(name + ".xid", line.xid);
    of(name + ".process", line.process);
    of(name + ".line", line.line);
    return static_cast<bool>(line);
  });
}

void take(auto& own, auto& other) {
  using Member = std::remove_reference_t<decltype(own)>;
  if constexpr (std::is_same_v<Member, AskedOf>) {
    if (own == AskedOf::kAllocator) own = other;
  } else if (own == Member{}) {
    own = other;
  }
}

}  // namespace

void write_statements(const StatedError& stated, const TextNotes& notes, Properties& properties) {
  Writer writer(properties);
  StatedError error = stated;
  TextNotes beside = notes;
  walk_error(error, writer);
  walk_notes(beside, writer);
}

StatedError read_stated_error(const Properties& properties) {
  Reader reader(properties);
  StatedError stated;
  walk_error(stated, reader);
  return stated;
}

TextNotes read_text_notes(const Properties& properties) {
  Reader reader(properties);
  TextNotes notes;
  walk_notes(notes, reader);
  return notes;
}

void fill_in(StatedError& stated, const StatedError& other) {
  StatedError from = other;
  for (const Field<StatedError>& field : kStated) {
    const Place source = field.of(from);
    std::visit([&](auto* own) { take(*own, *std::get<decltype(own)>(source)); }, field.of(stated));
  }
  if (stated.processes.empty()) stated.processes = other.processes;
}

std::size_t drop_numbers_above(StatedError& stated, std::uint64_t most) {
  std::size_t dropped = 0;
  const auto drop = [&](std::optional<ByteInterval>& number) {
    if (!number || number->min <= most) return;
    number.reset();
    ++dropped;
  };
  for (const Field<StatedError>& field : kStated) {
    const Place place = field.of(stated);
    auto* const* const number = std::get_if<std::optional<ByteInterval>*>(&place);
    if (number != nullptr && *number != &stated.requested) drop(**number);
  }
  for (StatedError::ListedProcess& process : stated.processes) drop(process.bytes);
  return dropped;
}

std::optional<ByteInterval>* number_named(StatedError& stated, std::string_view name) {
  for (const Field<StatedError>& field : kStated) {
    if (field.name != name) continue;
    const Place place = field.of(stated);
    auto* const* const number = std::get_if<std::optional<ByteInterval>*>(&place);
    return number == nullptr ? nullptr : *number;
  }
  return nullptr;
}

}  // namespace faultline
