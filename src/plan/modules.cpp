#include "plan/modules.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace faultline {
namespace {

constexpr double kWorthOpening = 0.10;  // of all bytes; a smaller row says enough as it is

struct Node {
  std::string path;                             // with numbers as *
  std::set<std::string, std::less<>> concrete;  // the paths behind it
  std::uint64_t bytes = 0;
  CategoryBytes live{};
  std::uint64_t own_bytes = 0;  // made by the module itself, not by one inside it
  CategoryBytes own_live{};
  std::map<std::string, Node, std::less<>> children;
};

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

// DistributedDataParallel keeps gradients in flat buffers, made in C++ from its own Python code.
bool is_made_by_ddp(const Trace& trace, const Event& event, const Tensor& tensor) {
  if (event.stack.value == 0 || tensor.shape.size() != 1) return false;
  return trace.strings.at(trace.stacks.frame(event.stack).file).ends_with("torch/nn/parallel/distributed.py");
}

void add(Node& root, std::string_view name, std::uint64_t bytes, std::size_t category) {
  Node* node = &root;
  std::string path;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view word = name.substr(begin, end - begin);
    const std::string key = is_number(word) ? "*" : std::string(word);
    path += (path.empty() ? "" : ".") + key;
    node = &node->children[key];
    node->path = path;
    node->concrete.emplace(name.substr(0, end));
    node->bytes += bytes;
    node->live[category] += bytes;
    begin = end + 1;
  }
  node->own_bytes += bytes;
  node->own_live[category] += bytes;
}

struct Row {
  const Node* node = nullptr;
  bool only_itself = false;
  std::uint64_t bytes() const { return only_itself ? node->own_bytes : node->bytes; }
};

PlanModule described(const std::string& path, std::uint64_t count, std::uint64_t bytes, const CategoryBytes& live) {
  PlanModule module{path, count, bytes, {}};
  for (std::size_t at = 0; at < kCategoryCount; ++at) {
    if (live[at] != 0) module.live.emplace_back(std::string(name_of(static_cast<Category>(at))), live[at]);
  }
  std::stable_sort(module.live.begin(), module.live.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return module;
}

// What a row opens into. Numbered parts that have none of their own say no more than their parent, and are not opened.
std::vector<Row> parts_of(const Node& node) {
  std::vector<Row> parts;
  if (node.own_bytes == 0 && node.children.size() == 1) {
    const auto& [word, only] = *node.children.begin();
    if (word == "*" && only.children.empty()) return parts;
    if (word == "*" || only.concrete.size() == node.concrete.size())
      return only.children.empty() ? std::vector<Row>{{&only, false}} : parts_of(only);
  }
  if (node.own_bytes != 0 && !node.children.empty()) parts.push_back({&node, true});
  for (const auto& [word, child] : node.children) parts.push_back({&child, false});
  return parts;
}

std::vector<Row> cut(const Node& root, std::uint64_t all_bytes, std::size_t most_rows) {
  std::vector<Row> rows;
  for (const auto& [word, model] : root.children) rows.push_back({&model, false});
  while (true) {
    std::size_t largest = rows.size();
    std::vector<Row> parts;
    for (std::size_t at = 0; at < rows.size(); ++at) {
      if (rows[at].only_itself || (largest < rows.size() && rows[at].bytes() <= rows[largest].bytes())) continue;
      std::vector<Row> opened = parts_of(*rows[at].node);
      if (opened.empty()) continue;
      largest = at;
      parts = std::move(opened);
    }
    if (largest == rows.size() ||
        static_cast<double>(rows[largest].bytes()) < kWorthOpening * static_cast<double>(all_bytes))
      return rows;
    if (rows.size() - 1 + parts.size() > most_rows) return rows;
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(largest));
    rows.insert(rows.end(), parts.begin(), parts.end());
  }
}

}  // namespace

// A name of the tensor itself is its module's without the last word; a
// variable of the program says nothing of modules.
std::vector<std::string_view> module_names(const Facts& facts, std::uint32_t until) {
  const Trace& trace = facts.trace;
  std::vector<std::string_view> names(trace.allocation_count + std::size_t{1});
  for (std::size_t index = 0; index < trace.events.size(); ++index) {
    const Event& event = trace.events[index];
    const bool names_one = event.kind == EventKind::kAlloc || event.kind == EventKind::kTensorNote;
    if (!names_one || event.allocation.value == 0 || event.extra == 0) continue;
    const Tensor& tensor = trace.tensors.at(TensorId(event.extra));
    std::string_view name = trace.strings.at(tensor.name);
    const std::string_view kind = trace.strings.at(tensor.op);
    if (index > until && kind != "cache") continue;  // what is used as one later was made for it
    if (kind == "cache") name = "(KV cache)";
    if (event.kind == EventKind::kAlloc && is_made_by_ddp(trace, event, tensor)) name = "(DDP buckets)";
    if (name.empty()) continue;
    if (kind == "variable") continue;
    if (kind == "parameter" || kind == "buffer" || kind == "attribute")
      name = name.substr(0, std::min(name.rfind('.'), name.size()));
    names[event.allocation.index()] = name;
  }
  return names;
}

std::vector<PlanModule> modules_at(const Facts& facts, std::size_t device_slot, std::uint32_t event,
                                   std::size_t most_rows) {
  const std::vector<std::string_view> names = module_names(facts, event);
  Node root;
  CategoryBytes nameless{};
  std::uint64_t all_bytes = 0;
  facts.lifetimes.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
    if (!life.alive_at(event) || birth.kind != EventKind::kAlloc) return;
    if (birth.device != facts.usage[device_slot].device || !facts.uses.is_program(birth.heap)) return;
    const std::uint64_t bytes = facts.lifetimes.held_bytes(id);
    const auto category = static_cast<std::size_t>(facts.categories[device_slot].of(id));
    all_bytes += bytes;
    if (names[id.index()].empty())
      nameless[category] += bytes;
    else
      add(root, names[id.index()], bytes, category);
  });
  std::vector<PlanModule> modules;
  for (const Row& row : cut(root, all_bytes, most_rows)) {
    const bool has_inner = row.only_itself && !row.node->children.empty();
    modules.push_back(described(row.node->path + (has_inner ? " itself" : ""), row.node->concrete.size(), row.bytes(),
                                row.only_itself ? row.node->own_live : row.node->live));
  }
  for (std::size_t at = 0; at < kCategoryCount; ++at) {
    if (nameless[at] == 0) continue;
    CategoryBytes only{};
    only[at] = nameless[at];
    modules.push_back(described("(" + std::string(name_of(static_cast<Category>(at))) + ")", 1, nameless[at], only));
  }
  std::erase_if(modules, [](const PlanModule& module) { return module.bytes == 0; });
  std::stable_sort(modules.begin(), modules.end(),
                   [](const PlanModule& a, const PlanModule& b) { return a.bytes > b.bytes; });
  return modules;
}

}  // namespace faultline
