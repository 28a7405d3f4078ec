#include "capture/python_public.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace faultline::capture {

namespace {

// Owns one reference.
class Reference {
 public:
  Reference(const PythonApi& python, void* object) : python_(python), object_(object) {}
  ~Reference() { python_.Py_DecRef(object_); }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  void* get() const { return object_; }
  void reset(void* object) { python_.Py_DecRef(std::exchange(object_, object)); }

 private:
  const PythonApi& python_;
  void* object_;
};

// Frame objects are made on demand since 3.11, and making one may start a garbage collection: not inside somebody's CUDA call.
class Undisturbed {
 public:
  explicit Undisturbed(const PythonApi& python) : python_(python) {
    python_.PyErr_Fetch(&type_, &value_, &trace_);
    collects_ = python_.PyGC_Disable != nullptr && python_.PyGC_Disable() == 1;
  }
  ~Undisturbed() {
    if (collects_) python_.PyGC_Enable();
    python_.PyErr_Restore(type_, value_, trace_);  // drops any exception of our own
  }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

 private:
  const PythonApi& python_;
  void* type_ = nullptr;
  void* value_ = nullptr;
  void* trace_ = nullptr;
  bool collects_ = false;
};

bool integer(const PythonApi& python, void* object, const char* name, std::int32_t& value) {
  const Reference attribute(python, python.PyObject_GetAttrString(object, name));
  if (attribute.get() == nullptr) {
    python.PyErr_Clear();
    return false;
  }
  value = static_cast<std::int32_t>(python.PyLong_AsLong(attribute.get()));
  return true;
}

// Borrowed: the code object that has it is alive. The older name is what the version before had instead.
void* member(const PythonApi& python, void* object, const char* name, const char* older_name) {
  void* attribute = python.PyObject_GetAttrString(object, name);
  if (attribute == nullptr) {
    python.PyErr_Clear();
    attribute = python.PyObject_GetAttrString(object, older_name);
    if (attribute == nullptr) python.PyErr_Clear();
  }
  python.Py_DecRef(attribute);
  return attribute;
}

bool read_code(const PythonApi& python, void* code, CodeTruth& truth) {
  truth.code = reinterpret_cast<std::uintptr_t>(code);
  truth.file = reinterpret_cast<std::uintptr_t>(member(python, code, "co_filename", "co_filename"));
  truth.name = reinterpret_cast<std::uintptr_t>(member(python, code, "co_qualname", "co_name"));
  truth.line_table = reinterpret_cast<std::uintptr_t>(member(python, code, "co_linetable", "co_lnotab"));
  return truth.file != 0 && truth.name != 0 && truth.line_table != 0 &&
         integer(python, code, "co_firstlineno", truth.first_line);
}

// Calls visit(frame, code) from the innermost frame outwards until it returns false.
template <typename Visit>
bool for_each_frame(const PythonApi& python, void* thread, Visit visit) {
  Reference frame(python, python.PyThreadState_GetFrame(thread));
  while (frame.get() != nullptr) {
    const Reference code(python, python.PyFrame_GetCode(frame.get()));
    if (code.get() == nullptr || !visit(frame.get(), code.get())) return false;
    frame.reset(python.PyFrame_GetBack(frame.get()));
  }
  return true;
}

void append_utf8(std::uint32_t character, std::string& text) {
  const auto put = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if ((character >= 0xd800 && character < 0xe000) || character > 0x10ffff) character = 0xfffd;
  if (character < 0x80) {
    put(character);
    return;
  }
  const int more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  constexpr std::uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  put(kLead[more] | (character >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) put(0x80 | ((character >> (6 * i)) & 0x3f));
}

}  // namespace

bool read_public_stack(const PythonApi& python, void* thread, std::size_t most_frames, PublicStack& stack) {
  const Undisturbed undisturbed(python);
  bool understood = true;
  for_each_frame(python, thread, [&](void* frame, void* code) {
    FrameTruth truth{reinterpret_cast<std::uintptr_t>(code), 0};
    understood = integer(python, frame, "f_lasti", truth.instruction);
    if (!understood) return false;
    stack.frames.push_back(truth);
    stack.lines.push_back(python.PyFrame_GetLineNumber(frame));
    if (std::none_of(stack.codes.begin(), stack.codes.end(),
                     [&](const CodeTruth& known) { return known.code == truth.code; })) {
      understood = read_code(python, code, stack.codes.emplace_back());
    }
    return understood && stack.frames.size() < most_frames;
  });
  return understood;
}

std::size_t read_public_frames(const PythonApi& python, void* thread, std::span<PythonFrame> frames) {
  if (frames.empty()) return 0;
  const Undisturbed undisturbed(python);
  std::size_t count = 0;
  for_each_frame(python, thread, [&](void* frame, void* code) {
    CodeTruth truth;
    PythonFrame& out = frames[count];
    if (!integer(python, frame, "f_lasti", out.instruction) || !read_code(python, code, truth)) return false;
    out.code = code;
    out.instruction = std::max(out.instruction, -1);
    out.identity = static_cast<std::uint64_t>(truth.first_line);
    for (const std::uintptr_t object : {truth.file, truth.name, truth.line_table}) {
      const auto hash = static_cast<std::uint64_t>(python.PyObject_Hash(reinterpret_cast<void*>(object)));
      out.identity = (out.identity ^ hash) * 0x9e3779b97f4a7c15u;
    }
    return ++count < frames.size();
  });
  return count;
}

bool describe_public_frame(const PythonApi& python, const PythonFrame& frame, PythonFrameText& text) {
  const Undisturbed undisturbed(python);
  void* code = const_cast<void*>(frame.code);
  CodeTruth truth;
  if (!read_code(python, code, truth)) return false;
  const int line = python.PyCode_Addr2Line(code, frame.instruction);
  text.line = static_cast<std::uint32_t>(std::max(line > 0 ? line : truth.first_line, 0));
  return copy_text(python, reinterpret_cast<void*>(truth.file), text.file) &&
         copy_text(python, reinterpret_cast<void*>(truth.name), text.function);
}

bool learn_objects(const PythonApi& python, PythonLayout& layout) {
  const Undisturbed undisturbed(python);
  constexpr char kText[] = "a text of our own";
  const std::ptrdiff_t length = sizeof kText - 1;
  const Reference text(python, python.PyUnicode_FromString(kText));
  const Reference bytes(python, python.PyBytes_FromStringAndSize(kText, length));
  if (text.get() == nullptr || bytes.get() == nullptr) return false;
  const auto hash = static_cast<std::uintptr_t>(python.PyObject_Hash(text.get()));

  const auto word = [](void* object, std::size_t offset) {
    std::uintptr_t value = 0;
    std::memcpy(&value, static_cast<const char*>(object) + offset, sizeof value);
    return value;
  };
  layout.code_type = reinterpret_cast<std::uintptr_t>(python.PyCode_Type);
  layout.text_type = reinterpret_cast<std::uintptr_t>(python.PyUnicode_Type);
  layout.type_offset = 0;
  while (layout.type_offset <= 24 && word(text.get(), layout.type_offset) != layout.text_type) {
    layout.type_offset = static_cast<std::uint16_t>(layout.type_offset + 8);
  }
  layout.size_offset = static_cast<std::uint16_t>(layout.type_offset + 8);
  layout.text_hash_offset = static_cast<std::uint16_t>(layout.type_offset + 16);
  const auto text_offset = python.PyUnicode_AsUTF8AndSize(text.get(), nullptr) - static_cast<const char*>(text.get());
  const auto bytes_offset = python.PyBytes_AsString(bytes.get()) - static_cast<const char*>(bytes.get());
  layout.text_offset = static_cast<std::uint16_t>(text_offset);
  layout.bytes_offset = static_cast<std::uint16_t>(bytes_offset);
  return text_offset >= 24 && text_offset <= 128 && bytes_offset >= 24 && bytes_offset <= 128 &&
         word(text.get(), layout.type_offset) == layout.text_type &&
         word(text.get(), layout.size_offset) == static_cast<std::uintptr_t>(length) &&
         word(text.get(), layout.text_hash_offset) == hash &&
         word(bytes.get(), layout.type_offset) == reinterpret_cast<std::uintptr_t>(python.PyBytes_Type) &&
         word(bytes.get(), layout.size_offset) == static_cast<std::uintptr_t>(length);
}

bool copy_text(const PythonApi& python, void* object, std::string& text) {
  text.clear();
  const std::ptrdiff_t length = python.PyUnicode_GetLength(object);
  if (length < 0) return false;
  text.reserve(static_cast<std::size_t>(length));
  for (std::ptrdiff_t i = 0; i < length; ++i) append_utf8(python.PyUnicode_ReadChar(object, i), text);
  return true;
}

}  // namespace faultline::capture
