#include "rules/calling_frame.h"

#include "facts/facts_test_support.h"

namespace faultline {
namespace {

std::string caller(const std::string& stack) {
  const Trace trace = traced("alloc 512 at " + stack + "\n");
  return place(trace, calling_frame(trace, trace.events[0].stack));
}

const std::string kLib = "/usr/lib/python3/dist-packages/torch/";

TEST(CallingFrame, WhatHandsTheOperationOnIsPassedOver) {
  EXPECT_EQ(caller("run.py:3 main > " + kLib + "_compile.py:54 inner > " + kLib + "_dynamo/eval_frame.py:1263 _fn"),
            "run.py:3 main");
  EXPECT_EQ(caller("run.py:3 main > " + kLib + "_tensor.py:39 wrapped"), "run.py:3 main");
  EXPECT_EQ(caller("run.py:3 main > " + kLib + "nn/functional.py:3104 cross_entropy > " + kLib +
                   "_dynamo/eval_frame.py:1263 _fn"),
            kLib + "nn/functional.py:3104 cross_entropy");
}

TEST(CallingFrame, AUsersOwnFileIsNeverPassedOver) {
  EXPECT_EQ(caller("run.py:3 main > /home/me/torch/_tensor.py:8 own"), "/home/me/torch/_tensor.py:8 own");
}

TEST(CallingFrame, CompiledFramesHaveNoPythonLine) {
  EXPECT_EQ(caller("run.py:3 main > Copy.cpp:12 at::native::_to_copy"), "run.py:3 main");
  EXPECT_EQ(caller("Copy.cpp:12 at::native::_to_copy"), "");
}

}  // namespace
}  // namespace faultline
