#include "sources/torch_snapshot/json_reader.h"

#include <iterator>
#include <nlohmann/json.hpp>

namespace faultline::torch_snapshot {
namespace {

constexpr std::size_t kMaxDepth = 64;

// Feeds the parser byte by byte from the sliding window.
class Bytes {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  struct Source {
    ByteStream* stream;
    const std::uint8_t* at;
    std::optional<Error> error;
    char current = 0;
    bool ended = false;
    void load() {
      if (at == stream->end()) {
        Result<const std::uint8_t*> moved = stream->more(at, 1);
        if (!moved) {
          error = moved.error();
          ended = true;
          return;
        }
        at = *moved;
      }
      ended = at == stream->end();
      if (!ended) current = static_cast<char>(*at);
    }
  };
  Bytes() = default;
  explicit Bytes(Source* source) : source_(source) { source_->load(); }
  reference operator*() const { return source_->current; }
  Bytes& operator++() {
    ++source_->at;
    source_->load();
    return *this;
  }
  Bytes operator++(int) { return ++*this; }
  friend bool operator==(const Bytes& a, const Bytes& b) { return a.done() == b.done(); }
  friend bool operator!=(const Bytes& a, const Bytes& b) { return !(a == b); }

 private:
  bool done() const { return source_ == nullptr || source_->ended; }
  Source* source_ = nullptr;
};

class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  Handler(ObjectMachine& machine, const Bytes::Source& source) : machine_(machine), source_(source) {}
  bool null() override {
    machine_.push_none();
    return within();
  }
  bool boolean(bool value) override {
    machine_.push_bool(value);
    return within();
  }
  bool number_integer(number_integer_t value) override {
    machine_.push_integer(value);
    return within();
  }
  bool number_unsigned(number_unsigned_t value) override {
    machine_.push_unsigned(value);
    return within();
  }
  bool number_float(number_float_t value, const string_t&) override {
    machine_.push_float(value);
    return within();
  }
  bool string(string_t& value) override {
    machine_.push_string(value);
    return within();
  }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& value) override {
    machine_.push_string(value);
    return true;
  }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return keep(machine_.close_dict()) && within(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return keep(machine_.close_list()) && within(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& problem) override {
    error = Error{"this is not valid JSON (" + reason(problem.what()) + ")", position == 0 ? 0 : position - 1, {}};
    return false;
  }
  std::optional<Error> error;

 private:
  bool open() {
    if (machine_.mark_count() >= kMaxDepth) {
      error = Error{"the JSON is nested more than 64 deep", {}, {}};
      return false;
    }
    machine_.mark();
    return true;
  }
  bool keep(Status status) {
    if (!status) error = status.error();
    return status.ok();
  }
  // "[json.exception.parse_error.101] parse error at line 1, column 3: syntax error while …" → from "syntax error" on.
  static std::string reason(std::string_view text) {
    const std::size_t colon = text.find(": ");
    std::string result(colon == std::string_view::npos ? text : text.substr(colon + 2));
    if (result.size() > 160) result.resize(160);
    return result;
  }
  bool within() {
    if (!machine_.has_too_many(source_.stream->offset_of(source_.at))) return true;
    error = Error{"the JSON is made of empty objects", source_.stream->offset_of(source_.at), "No memory snapshot is."};
    return false;
  }
  ObjectMachine& machine_;
  const Bytes::Source& source_;
};

}  // namespace

Status read_json(ByteStream& stream, ObjectMachine& machine) {
  Bytes::Source source{&stream, stream.begin(), {}, 0, false};
  Handler handler(machine, source);
  const bool parsed = nlohmann::json::sax_parse(Bytes(&source), Bytes(), &handler);
  if (source.error) return *source.error;
  if (handler.error) return *handler.error;
  if (!parsed || machine.depth() != 1) return Error{"this is not valid JSON", {}, {}};
  return Ok{};
}

}  // namespace faultline::torch_snapshot
