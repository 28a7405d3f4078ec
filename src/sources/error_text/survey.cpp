#include "sources/error_text/survey.h"

#include <algorithm>
#include <utility>

#include "sources/error_text/log_lines.h"
#include "sources/error_text/quotation.h"
#include "sources/error_text/text_limits.h"

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
  return message.xid == 45 || message.xid == 43 || message.xid == 154;
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

Survey survey(std::string_view text, const AnchorHits& found) {
  Survey survey;
  Refusals refusals;
  Framework owner = Framework::kNone;
  const AnchorHit* last = nullptr;  // of the latest message: several anchors can lie in one
  MessageKind last_kind = MessageKind::kNone;
  std::size_t unread_end = 0;
  for (const AnchorHit& hit : found.hits) {
    if (hit.anchor == Anchor::kAssertLine && survey.assertion) {
      const std::size_t begin = hit.begin > 120 ? hit.begin - 120 : 0;
      if (text.substr(begin, hit.begin - begin).find("thread: [") != std::string_view::npos) ++survey.assertion_lines;
      continue;
    }
    if (survey.readings == kMostReadings) {  // several anchors of a line are one message
      const std::size_t from = std::min(std::exchange(unread_end, hit.end), hit.begin);
      if (text.substr(from, hit.begin - from).find('\n') != std::string_view::npos) ++survey.not_read;
      continue;
    }
    unread_end = hit.end;
    ++survey.readings;
    auto message = read_message(text, hit);
    if (!message) continue;
    if (hit.anchor == Anchor::kBfcOom || hit.anchor == Anchor::kTfDriver || hit.anchor == Anchor::kTfAsync) {
      if (owner == Framework::kNone) owner = pool_owner(text, hit.begin);
      message->framework = owner;
    }
    if (message->kind == MessageKind::kPoolGrowth) refusals.add(message->requested.value_or(ByteInterval{}).middle());
    // What is told only where nothing else is.
    if (row_of(message->kind).is_harmless) {
      if (!survey.harmless) survey.harmless = Chosen{std::move(*message), hit.begin, hit.begin, 1};
      continue;
    }
    const Quotation quotation = quotation_of(text, hit.begin);
    if (quotation == Quotation::kSource) {
      if (survey.quoted.empty()) survey.quoted = message->text.substr(0, message->text.find_first_of("\"`\n"));
      continue;
    }
    if (quotation == Quotation::kQuoted && hit.anchor != Anchor::kKnown) message->quoted = true;
    const bool is_assertion = !message->assertion.expression.empty();
    survey.last[message->tag] = hit.begin;
    if (is_assertion) ++survey.assertion_lines;
    // One failure told twice: in one line, or by TensorFlow's allocator and then by the operation that wanted the memory.
    const bool told =
        last != nullptr && message->kind == last_kind &&
        (((hit.anchor == Anchor::kTfOom || hit.anchor == Anchor::kXlaOom) && last->anchor == Anchor::kBfcOom) ||
         text.substr(last->end, hit.begin - std::min(hit.begin, last->end)).find('\n') == std::string_view::npos);
    // "terminate called after throwing an instance of 'std::bad_alloc'", and "what():  std::bad_alloc" below it
    const std::size_t begin = line_begin(text, hit.begin, kLongestLine);
    const bool is_what = last != nullptr && message->kind == last_kind && hit.begin < last->end + 200 &&
                         clean_line(text.substr(begin, hit.begin - begin), kLongestLine).ends_with("what():");
    const bool again = told || is_what ||
                       (last != nullptr && message->kind == last_kind &&
                        hit.begin < last->end + (hit.anchor == last->anchor ? 0 : 400));
    if (!again && !is_assertion && !message->weak) {
      ++survey.counts[message->kind];
      survey.texts[message->kind].insert(message->tag + message->text);
    }
    if (!message->weak || hit.anchor != Anchor::kKnown) {  // what a program adds in words of its own is no new failure
      last = &hit;
      last_kind = message->kind;
    }
    const auto is_same = [&](const Chosen& other) {
      return other.message.kind == message->kind && other.message.text == message->text &&
             other.message.tag == message->tag;
    };
    if (!is_assertion && (!message->weak || ends_cuda(message->kind) || message->kind == MessageKind::kHostKilled)) {
      const auto known = std::find_if(survey.all.begin(), survey.all.end(), is_same);
      const std::uint64_t times = again || message->weak ? 0 : 1;
      if (known != survey.all.end()) {
        known->again = hit.begin;
        known->times += times;
      } else if (survey.all.size() < kMostCandidates) {
        survey.all.push_back({*message, hit.begin, hit.begin, times});
      }
    }
    std::optional<Chosen>& place = message->weak ? survey.first_weak : survey.first;
    if (is_assertion && !survey.assertion) survey.assertion = Chosen{*message, hit.begin, hit.begin};
    if (!is_assertion && message->kind == MessageKind::kDeviceAssert && !survey.assert_error)
      survey.assert_error = Chosen{*message, hit.begin, hit.begin};
    if (row_of(message->kind).is_of_kernel_log) add_kernel_line({*message, hit.begin, hit.begin}, survey);
    if (place && message->kind == MessageKind::kXid && is_consequence(place->message) && !is_consequence(*message))
      place.reset();
    // Of one line, a program's own words say more than the name of the error in them.
    if (place && message->weak && place->message.kind == message->kind &&
        place->message.framework == Framework::kNone && message->framework != Framework::kNone &&
        text.substr(place->begin, hit.begin - std::min(hit.begin, place->begin)).find('\n') == std::string_view::npos)
      place.reset();
    if (!place) place = Chosen{std::move(*message), hit.begin, hit.begin};
  }
  if (survey.first_weak && survey.first_weak->message.kind == MessageKind::kPoolGrowth && refusals.count > 1 &&
      refusals.are_alike) {
    survey.first_weak->message.kind = MessageKind::kOutOfMemory;
    survey.first_weak->message.asked_of = AskedOf::kDriver;
    survey.counts[MessageKind::kOutOfMemory] += survey.first ? 0 : refusals.count;
  }
  return survey;
}

}  // namespace faultline
