#include "plan/modules.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/units.h"
#include "facts/facts_test_support.h"

namespace faultline {
namespace {

// A model of two blocks, each with two numbered layers, an embedding, and optimizer state that belongs to no module.
const std::string kModel = R"(device 0 capacity=16GiB
tensor w0 = float32[1] op=parameter name=Net.blocks.0.up.weight
tensor a0 = float32[1] op=aten::mm name=Net.blocks.0.up
tensor a1 = float32[1] op=aten::mm name=Net.blocks.1.up
tensor b0 = float32[1] op=aten::mm name=Net.blocks.0.act
tensor b1 = float32[1] op=aten::mm name=Net.blocks.1.act
tensor e = float32[1] op=aten::embedding name=Net.embed
tensor t = float32[1] op=aten::add name=Net
alloc #w 1GiB at run.py:1 main
tensor-note #w tensor=w0
alloc #x 2GiB tensor=a0 at run.py:2 main
alloc #y 2GiB tensor=a1 at run.py:2 main
alloc #c 1GiB tensor=b0 at run.py:2 main
alloc #d 1GiB tensor=b1 at run.py:2 main
alloc #z 1GiB tensor=e at run.py:3 main
alloc #r 1GiB tensor=t at run.py:3 main
alloc #o 3GiB at run.py:4 main
)";

std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> rows(std::size_t most_rows) {
  static const Trace trace = traced(kModel);
  const Facts facts(trace, {});
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> found;
  for (const PlanModule& module :
       modules_at(facts, 0, static_cast<std::uint32_t>(trace.events.size() - 1), most_rows)) {
    found[module.path] = {module.count, module.bytes / kGiB};
  }
  return found;
}

TEST(Modules, NumberedSiblingsAreOneRowAndParametersBelongToTheirModule) {
  const auto found = rows(10);
  EXPECT_EQ(found.at("Net.blocks.*.up"), (std::pair<std::uint64_t, std::uint64_t>{2, 5}));
  EXPECT_EQ(found.at("Net.blocks.*.act"), (std::pair<std::uint64_t, std::uint64_t>{2, 2}));
  EXPECT_EQ(found.at("Net.embed"), (std::pair<std::uint64_t, std::uint64_t>{1, 1}));
  EXPECT_EQ(found.at("Net itself"), (std::pair<std::uint64_t, std::uint64_t>{1, 1}));
}

TEST(Modules, ACacheOfKeysAndBucketsOfDdpHaveRowsOfTheirOwn) {
  const Trace trace = traced(R"(device 0 capacity=16GiB
tensor k = float32[4,4,512,64] op=aten::zeros name=Net.attention
tensor c = float32[4,4,512,64] op=cache
tensor b = float32[1024] op=aten::empty
tensor o = float32[1024,1] op=aten::empty
alloc #k 2GiB tensor=k at run.py:1 main
alloc #b 1GiB tensor=b at /site-packages/torch/nn/parallel/distributed.py:900 _ddp_init_helper
alloc #o 1GiB tensor=o at /site-packages/torch/nn/parallel/distributed.py:901 _other
tensor-note #k tensor=c
)");
  const Facts facts(trace, {});
  std::map<std::string, std::uint64_t> found;
  for (const PlanModule& module : modules_at(facts, 0, 2))
    found[module.path] = module.bytes;  // before it is used as one
  EXPECT_EQ(found["(KV cache)"], 2 * kGiB);
  EXPECT_EQ(found["(DDP buckets)"], kGiB);
  EXPECT_EQ(found.size(), 3u);
}

TEST(Modules, WithLittleRoomTheRowsAreWiderAndStillAddUp) {
  for (const std::size_t most : {1u, 3u, 4u, 10u}) {
    std::uint64_t sum = 0;
    for (const auto& [path, numbers] : rows(most)) sum += numbers.second;
    EXPECT_EQ(sum, 12u);
  }
  EXPECT_TRUE(rows(1).contains("Net"));
}

}  // namespace
}  // namespace faultline
