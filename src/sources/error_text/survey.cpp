#include "sources/error_text/survey.h"

#include <algorithm>
#include <utility>

#include "sources/error_text/log_lines.h"
#include "sources/error_text/quotation.h"
#include "sources/error_text/text_limits.h"
#include "sources/messages/xids.h"

namespace faultline {
namespace {

// places that are read in full; a log with more messages is counted as cut
constexpr std::uint64_t kMostReadings = 5000;

constexpr std::size_t kMostCandidates = 256;
constexpr std::size_t kMostKernelLines = 8;

// Each kind of line once; of Xids each number.
void add_kernel_line(const Chosen& line, Survey& survey) {
  const auto is_same = [&](const Chosen& other) {
    return other.message.kind == line.message.kind &&
           (!other.message.xid || !line.message.xid || other.message.xid == line.message.xid);
  };
  if (survey.kernel_log.size() < kMostKernelLines &&
      std::none_of(survey.kernel_log.begin(), survey.kernel_log.end(), is_same))
    survey.kernel_log.push_back(line);
}

// What the driver refused, in order. A pool that grows asks for nine tenths next; the same size time and again is what a program asks the driver for itself.
struct Refusals {
  std::uint64_t count = 0, last = 0;
  bool are_alike = true;
  void add(std::uint64_t bytes) {
    are_alike &= count == 0 || bytes == last;
    last = bytes;
    ++count;
  }
};

}  // namespace

bool is_consequence(const ErrorMessage& message) {
  const Xid* const known = xid_of(message.xid);
  return known != nullptr && known->cause == Xid::kConsequence;
}

// Whose pool it is: TensorFlow and JAX print one allocator's lines, and only what stands around them tells.
Framework pool_owner(std::string_view text, std::size_t at) {
  const auto has = [](std::string_view words, std::initializer_list<std::string_view> marks) {
    return std::any_of(marks.begin(), marks.end(),
                       [&](std::string_view mark) { return words.find(mark) != std::string_view::npos; });
  };
  const std::size_t begin = line_begin(text, at, kLongestLine);
  const std::string_view line = text.substr(begin, at - begin);
  const std::string beside = neighbourhood(text, at).text;
  if (!beside.empty()) text = beside;
  if (has(line, {"local_xla", "local_tsl"})) return Framework::kTensorFlow;
  // XLA as jaxlib builds it; in TensorFlow it lies in external/local_xla
  if (has(text, {"external/xla+/", "external/xla/", "external/org_tensorflow/"}) &&
      !has(text, {"torch_xla", "local_xla"}))
    return Framework::kJax;
  const bool jax_raised = has(text, {"XlaRuntimeError", "JaxRuntimeError"}),
             tensorflow_raised = has(text, {"tensorflow.python", "/tensorflow/python/", "errors_impl."});
  if (jax_raised != tensorflow_raised) return jax_raised ? Framework::kJax : Framework::kTensorFlow;
  const bool jax = has(text, {"jaxlib", "/jax/", "import jax", "jax."}),
             tensorflow = has(text, {"/keras/", "keras.", "import tensorflow", " tf.", "(tf.", "tensorflow/core",
                                     "W tensorflow/", "I tensorflow/", "E tensorflow/"});
  if (jax != tensorflow) return jax ? Framework::kJax : Framework::kTensorFlow;
  // JAX's lines begin with a date, TensorFlow's newer ones with zeros, its older ones name their folder.
  const bool is_dated = has(line, {".cc:"}) && !has(line, {"tensorflow/", "0000 00:00:"});
  return jax || is_dated || has(line, {"external/"}) ? Framework::kTensorFlowOrJax : Framework::kTensorFlow;
}

namespace {

// Takes the hits in order; each message finds its place among those before it.
class Surveyor {
 public:
  explicit Surveyor(std::string_view text) : text_(text) {}

  void take(const AnchorHit& hit) {
    if (is_further_assertion(hit) || is_beyond_bounds(hit)) return;
    std::optional<ErrorMessage> message = read_message(text_, hit);
    if (!message) return;
    if (hit.anchor == Anchor::kBfcOom || hit.anchor == Anchor::kTfDriver || hit.anchor == Anchor::kTfAsync) {
      if (owner_ == Framework::kNone) owner_ = pool_owner(text_, hit.begin);
      message->framework = owner_;
    }
    if (message->kind == MessageKind::kPoolGrowth) refusals_.add(message->requested.value_or(ByteInterval{}).middle());
    // What is told only where nothing else is.
    if (row_of(message->kind).is_harmless) {
      if (!survey_.harmless) survey_.harmless = Chosen{std::move(*message), hit.begin, hit.begin, 1};
      return;
    }
    const Quotation quotation = quotation_of(text_, hit.begin);
    if (quotation == Quotation::kSource) {
      if (survey_.quoted.empty()) survey_.quoted = message->text.substr(0, message->text.find_first_of("\"`\n"));
      return;
    }
    if (quotation == Quotation::kQuoted && hit.anchor != Anchor::kKnown) message->quoted = true;
    survey_.last[message->tag] = hit.begin;
    count(*message, hit);
    choose(std::move(*message), hit);
  }

  Survey finish() {
    if (survey_.first_weak && survey_.first_weak->message.kind == MessageKind::kPoolGrowth && refusals_.count > 1 &&
        refusals_.are_alike) {
      survey_.first_weak->message.kind = MessageKind::kOutOfMemory;
      survey_.first_weak->message.asked_of = AskedOf::kDriver;
      survey_.counts[MessageKind::kOutOfMemory] += survey_.first ? 0 : refusals_.count;
    }
    return std::move(survey_);
  }

 private:
  static bool is_assertion(const ErrorMessage& message) { return !message.assertion.expression.empty(); }

  bool is_further_assertion(const AnchorHit& hit) {
    if (hit.anchor != Anchor::kAssertLine || !survey_.assertion) return false;
    const std::size_t begin = hit.begin > 120 ? hit.begin - 120 : 0;
    if (text_.substr(begin, hit.begin - begin).find("thread: [") != std::string_view::npos) ++survey_.assertion_lines;
    return true;
  }

  bool is_beyond_bounds(const AnchorHit& hit) {
    if (survey_.readings < kMostReadings) {
      unread_end_ = hit.end;
      ++survey_.readings;
      return false;
    }
    // several anchors of a line are one message
    if (has_line_end(std::exchange(unread_end_, hit.end), hit.begin)) ++survey_.not_read;
    return true;
  }

  bool has_line_end(std::size_t from, std::size_t to) const {
    from = std::min(from, to);
    return text_.substr(from, to - from).find('\n') != std::string_view::npos;
  }

  // The message before, told in other words.
  bool is_told_again(const ErrorMessage& message, const AnchorHit& hit) const {
    if (last_ == nullptr || message.kind != last_kind_) return false;
    // One failure told twice: in one line, or by TensorFlow's allocator and then by the operation that wanted the memory.
    const bool is_of_operation = hit.anchor == Anchor::kTfOom || hit.anchor == Anchor::kXlaOom;
    if ((is_of_operation && last_->anchor == Anchor::kBfcOom) || !has_line_end(last_->end, hit.begin)) return true;
    if (hit.begin < last_->end + (hit.anchor == last_->anchor ? 0 : 400)) return true;
    // "terminate called after throwing an instance of 'std::bad_alloc'", and "what():  std::bad_alloc" below it
    const std::size_t begin = line_begin(text_, hit.begin, kLongestLine);
    return hit.begin < last_->end + 200 &&
           clean_line(text_.substr(begin, hit.begin - begin), kLongestLine).ends_with("what():");
  }

  // How often it is told, and each wording once.
  void count(const ErrorMessage& message, const AnchorHit& hit) {
    const bool again = is_told_again(message, hit);
    if (is_assertion(message)) ++survey_.assertion_lines;
    if (!again && !is_assertion(message) && !message.weak) {
      ++survey_.counts[message.kind];
      survey_.texts[message.kind].insert(message.tag + message.text);
    }
    if (!message.weak || hit.anchor != Anchor::kKnown) {  // what a program adds in words of its own is no new failure
      last_ = &hit;
      last_kind_ = message.kind;
    }
    if (is_assertion(message) || (message.weak && !ends_cuda(message.kind) && message.kind != MessageKind::kHostKilled))
      return;
    const auto known = std::find_if(survey_.all.begin(), survey_.all.end(), [&](const Chosen& other) {
      return other.message.kind == message.kind && other.message.text == message.text &&
             other.message.tag == message.tag;
    });
    const std::uint64_t times = again || message.weak ? 0 : 1;
    if (known != survey_.all.end()) {
      known->again = hit.begin;
      known->times += times;
    } else if (survey_.all.size() < kMostCandidates) {
      survey_.all.push_back({message, hit.begin, hit.begin, times});
    }
  }

  // The first of each sort.
  void choose(ErrorMessage&& message, const AnchorHit& hit) {
    std::optional<Chosen>& place = message.weak ? survey_.first_weak : survey_.first;
    if (is_assertion(message) && !survey_.assertion) survey_.assertion = Chosen{message, hit.begin, hit.begin};
    if (!is_assertion(message) && message.kind == MessageKind::kDeviceAssert && !survey_.assert_error)
      survey_.assert_error = Chosen{message, hit.begin, hit.begin};
    if (row_of(message.kind).is_of_kernel_log) add_kernel_line({message, hit.begin, hit.begin}, survey_);
    if (place && message.kind == MessageKind::kXid && is_consequence(place->message) && !is_consequence(message))
      place.reset();
    // Of one line, a program's own words say more than the name of the error in them.
    if (place && message.weak && place->message.kind == message.kind && place->message.framework == Framework::kNone &&
        message.framework != Framework::kNone && !has_line_end(place->begin, hit.begin))
      place.reset();
    if (!place) place = Chosen{std::move(message), hit.begin, hit.begin};
  }

  std::string_view text_;
  Survey survey_;
  Refusals refusals_;
  Framework owner_ = Framework::kNone;
  const AnchorHit* last_ = nullptr;  // of the latest message: several anchors can lie in one
  MessageKind last_kind_ = MessageKind::kNone;
  std::size_t unread_end_ = 0;
};

}  // namespace

Survey survey(std::string_view text, const AnchorHits& found) {
  Surveyor surveyor(text);
  for (const AnchorHit& hit : found.hits) surveyor.take(hit);
  return surveyor.finish();
}

}  // namespace faultline
