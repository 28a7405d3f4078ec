#include "sources/error_text/error_text.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "sources/error_text/anchors.h"
#include "sources/error_text/log_lines.h"
#include "sources/error_text/peak_buffers.h"
#include "sources/error_text/printed_bytes.h"
#include "sources/error_text/surroundings.h"
#include "sources/error_text/traceback.h"
#include "sources/error_text/works_on.h"
#include "sources/statements.h"

namespace faultline {
namespace {

constexpr const char* kMessage =
    "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 7.79 GiB total capacity; 5.20 GiB already allocated; 1.08 "
    "GiB free; 5.50 GiB reserved in "
    "total by PyTorch)";

ByteInterval size_of(std::string_view text, SizeStyle style = SizeStyle::kTorch) {
  return parse_printed_size(text, 0, style).value().bytes;
}

TEST(PrintedSize, CoversEveryByteCountThatRoundsToIt) {
  const ByteInterval size = size_of("5.20 GiB");
  const auto printed = [](std::uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", static_cast<double>(bytes) / static_cast<double>(kGiB));
    return std::string(text);
  };
  EXPECT_EQ(printed(size.min), "5.20");
  EXPECT_EQ(printed(size.max), "5.20");
  EXPECT_EQ(printed(size.min - 2), "5.19");
  EXPECT_EQ(printed(size.max + 2), "5.21");
}

TEST(PrintedSize, OfNumpyAndOfAlmostNothing) {
  EXPECT_EQ(size_of("745. GiB"), (ByteInterval{1489 * kGiB / 2, 1491 * kGiB / 2}));
  EXPECT_EQ(size_of("1. MiB"), (ByteInterval{kMiB / 2, 3 * kMiB / 2}));
  EXPECT_EQ(size_of("0.00 MiB"), (ByteInterval{0, 5242}));
  EXPECT_FALSE(parse_printed_size("745. Gone", 0).has_value());
}

TEST(Surroundings, TheCommandThatATextShows) {
  const std::pair<const char*, const char*> cases[] = {
      {"$ python main.py\nboom", "python main.py"},
      {"me@box:~/w$ python3 -m pkg.fit --lr 1 > log 2>&1", "python3 -m pkg.fit --lr 1"},
      {"!python fit.py --n 3", "python fit.py --n 3"},
      {"+ torchrun --nproc_per_node 4 fit.py", "torchrun --nproc_per_node 4 fit.py"},
      {"run.sh: line 3: 4711 Killed                  python big.py", "python big.py"},
      {"bash: line 1: 12 Segmentation fault      (core dumped) python a.py -x", "python a.py -x"},
      {"$ python old.py\n$ python new.py\n", "python new.py"},
      {"try python train.py again", ""},
      {"File \"/usr/lib/python3/site.py\", line 3", ""},
      {"$ python\n>>> import torch", ""},
  };
  for (const auto& [text, command] : cases) EXPECT_EQ(command_of(text), command) << text;
  const std::pair<const char*, const char*> whole[] = {
      {"$ python t.py --batch 2", "python t.py --batch 2"},
      {"$ python t.py --batch 2 2>err.log", "python t.py --batch 2"},
      {"$ python t.py --name \"a | b\" --n 1 | tee x", "python t.py --name \"a | b\" --n 1"},
      {"$ python t.py --tag 'x > y'", "python t.py --tag 'x > y'"},
      {"$ python t.py --tag #1 # the first", "python t.py --tag"},
      {"$ python t.py \\\n    --batch 2 \\\n    --lr 3\nboom", "python t.py --batch 2 --lr 3"},
      {"$ python t.py --n 1\" he said", "python t.py --n 1"},
  };
  for (const auto& [text, command] : whole) EXPECT_EQ(command_of(text), command) << text;
  // The one that failed, not the one that was tried behind it.
  const std::pair<const char*, const char*> tries[] = {
      {"$ python t.py --batch 8\nMESSAGE\n$ python t.py --batch 2\nfine\n", "python t.py --batch 8"},
      {"MESSAGE\n$ python t.py --batch 2\nfine\n", ""},
      {"MESSAGE\nrun.sh: line 3: 4711 Killed    python t.py --batch 8\n", "python t.py --batch 8"},
      {"$ python a.py\nfine\n$ python b.py\nMESSAGE\n", "python b.py"},
  };
  for (const auto& [text, command] : tries)
    EXPECT_EQ(command_of(text, std::string_view(text).find("MESSAGE")), command) << text;
}

TEST(PlainText, AProgressBarThatWritesOverItsLine) {
  // What stands behind a bar on one line of a file stands on a line of its own, with the number that viewers give it.
  const std::string text =
      "start\n 10%|#   | 1/10 [00:01<00:09]\r 20%|##  | 2/10 [00:02<00:08]\rRuntimeError: CUDA error: misaligned "
      "address\rbye\n";
  const auto trace = read_error_text(text, "log");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->properties.at("error.kind"), "misaligned-address");
  EXPECT_EQ(trace->properties.at("error.line"), "2");
  const std::string oom = std::string("  0%|    | 0/9\r 11%|#   | 1/9\rRuntimeError: ") + kMessage + "\n";
  const auto lives = [&](const std::string& behind) {
    return read_error_text(oom + behind, "log")->properties.contains("error.lives_on");
  };
  EXPECT_FALSE(lives(" 11%|#   | 1/9\r 11%|#   | 1/9\n"));  // as it stood
  EXPECT_TRUE(lives(" 22%|##  | 2/9\r 33%|### | 3/9\n"));
}

TEST(PlainText, IsToldFromOtherFiles) {
  const auto is = [](std::string bytes) {
    return recognises_error_text({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  };
  const std::string nul(1, '\0'), words = "RuntimeError: CUDA error: misaligned address\n";
  for (const std::string& text : {words, std::string("x\n"), std::string(9000, '\0') + words, words + nul + words,
                                  "\xFF\xFE" + words, "\x1b[31m" + words + "\b\a", std::string("caf\xE9 ") + words})
    EXPECT_TRUE(is(text)) << text;
  for (const std::string& other : {"\x7f"
                                   "ELF\x02\x01\x01\xff\xff" +
                                       words,
                                   "\x7f"
                                   "ELF" +
                                       nul + words,
                                   nul + "\x01\x02" + words + nul + "\x03", std::string(4096, '\0'),
                                   "PK\x03\x04" + words, std::string(100, '\x01') + words})
    EXPECT_FALSE(is(other)) << other;
}

TEST(WorksOn, ASummaryOfTheWholeRunIsNoWork) {
  const auto lives = [](const std::string& before, const std::string& behind) {
    return read_error_text(before +
                               "Traceback (most recent call last):\n  File \"/w/t.py\", line 2, in f\n    g()\n"
                               "torch.OutOfMemoryError: " +
                               kMessage + "\n" + behind,
                           "log")
        ->properties.contains("error.lives_on");
  };
  const std::pair<const char*, const char*> ended[] = {
      {"Epoch 3: val_loss 0.31\n", "Best val_loss 0.31 (epoch 3), total time 120 s\n"},
      {"step 10 loss 0.5\n", "best loss: 0.5 at epoch 3\n"},
      {"step 10 loss 0.5\n", "Final loss 0.5 after step 10\n"},
      {"step 10 loss 0.5\n", "step 10 loss 0.5\n"},
      {"epoch 2 step 10 loss 0.5\n", "Average loss 0.61, average acc 0.7 over epoch 2\n"},
      {"Epoch 2/9\nloss 0.5\n", "Epoch 2 aborted\n"},
      {"iter 7 loss 0.5\n", "trained until iter 7, loss 0.5\n"},
      {"", "Training stopped: loss 0.5, epoch 3\n"},
  };
  for (const auto& [before, behind] : ended) EXPECT_FALSE(lives(before, behind)) << before << behind;
  const std::pair<const char*, const char*> works[] = {
      {"Epoch 3: val_loss 0.31\n", "Epoch 4: val_loss 0.30\n"},
      {"step 10 loss 0.5\n", "step 11 loss 0.5\n"},
      {"step 10 loss 0.5\n", "skipped\nbatch 3 step 12 loss 0.4\n"},
      {"step 10 loss 0.5\n", "step 1 loss 0.9\nstep 2 loss 0.8\n"},
      {"Trial 3 finished with value: 0.7\n", "Trial 5 finished with value: 0.8\n"},
      {"Epoch 2/9\n", "Epoch 3/9\n"},
      {"", "epoch 2 loss 0.3\nepoch 3 loss 0.2\n"},
  };
  for (const auto& [before, behind] : works) EXPECT_TRUE(lives(before, behind)) << before << behind;
}

TEST(FindAnchors, AWordAtTheEndOfOneLineDoesNotHideTheBeginningOfTheNext) {
  for (const char* end : {"on GPU", "out of", "CUDA", "the host ran out of", "failed to", "error:"}) {
    const std::string text = std::string("a line ") + end + "\nNVRM: Xid (PCI:0000:86:00): 999, weird\n";
    EXPECT_EQ(find_anchors(text).hits.size(), 1u) << text;
  }
  EXPECT_EQ(find_anchors("[rank0]: CUDA out of\n[rank0]: memory. Tried to allocate 2.00 GiB").hits.size(), 1u);
}

TEST(ReadErrorText, WhatFollowsAnErrorOfAKernelIsItsConsequence) {
  const std::string kernel = "x.cu:250: k: block: [0,0,0], thread: [5,0,0] Assertion `t < n` failed.\n",
                    own = "Traceback (most recent call last):\n  File \"a.py\", line 5, in f\n    g()\n",
                    error = "RuntimeError: CUDA error: device-side assert triggered\n",
                    fault = "RuntimeError: CUDA error: an illegal memory access was encountered\n",
                    during = "\nDuring handling of the above exception, another exception occurred:\n\n",
                    other = "Traceback (most recent call last):\n  File \"b.py\", line 7, in g\n    h()\n",
                    oom = std::string("torch.OutOfMemoryError: ") + kMessage + "\n";
  const auto kind = [](const std::string& text) { return read_error_text(text, "t")->properties.at("error.kind"); };
  EXPECT_EQ(kind(kernel + own + error + during + oom), "device-assert");
  EXPECT_EQ(kind(kernel + own + error + oom), "device-assert");
  EXPECT_EQ(kind(own + error + during + other + oom), "device-assert");
  EXPECT_EQ(kind(own + fault + during + other + oom), "illegal-address");
  EXPECT_EQ(kind(own + fault + oom), "illegal-address");
  EXPECT_EQ(kind(own + fault + "$ python b.py\n" + other + oom), "out-of-memory");  // another program's
}

TEST(OtherErrors, ASegmentationFaultNamesTheProgramOfTheText) {
  const std::pair<const char*, const char*> cases[] = {
      {"bash: line 1: 12 Segmentation fault      (core dumped) python a.py -x", "faulthandler a.py -x prints"},
      {"Fatal Python error: Segmentation fault\n\nCurrent thread 0x7f (most recent call first):\n  File "
       "\"/w/fit.py\", line 44 in <module>",
       "faulthandler fit.py prints"},
      {"Segmentation fault (core dumped)", "faulthandler PROGRAM.py prints"},
  };
  for (const auto& [text, words] : cases) {
    const auto trace = read_error_text(std::string(text), "log.txt");
    ASSERT_FALSE(trace.ok());
    EXPECT_NE(trace.error().next.find(words), std::string::npos) << trace.error().next;
  }
}

TEST(PrintedSize, IsExactWithoutDecimals) {
  EXPECT_EQ(size_of("512 bytes"), ByteInterval::exactly(512));
  EXPECT_EQ(size_of("4,000,000,000 bytes"), ByteInterval::exactly(4000000000));
  EXPECT_EQ(size_of("33554432B"), ByteInterval::exactly(33554432));
}

TEST(PrintedSize, TakesADecimalComma) { EXPECT_EQ(size_of("1900,00 MiB"), size_of("1900.00 MiB")); }

TEST(PrintedSize, LeavesOpenWhichGigabyteIsMeantUnlessTheWriterIsKnown) {
  EXPECT_LE(size_of("2 GB").min, 2000000000u);
  EXPECT_GE(size_of("2 GB").max, 2 * kGiB);
  EXPECT_EQ(size_of("2 GB", SizeStyle::kMetal), ByteInterval::exactly(2 * kGiB));
}

TEST(PrintedSize, SaturatesInsteadOfOverflowing) {
  EXPECT_EQ(size_of("99999999999999999999 TiB").max, std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(parse_printed_size("9999999999999999999999999999999 GiB", 0));
  EXPECT_FALSE(parse_printed_size("12 apples", 0));
}

TEST(ReadErrorText, PutsTheStatedNumbersIntoTheTrace) {
  const auto trace = read_error_text(kMessage, "error.txt");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->source_kind, "error-text");
  EXPECT_EQ(trace->source_path, "error.txt");
  ASSERT_EQ(trace->events.size(), 1u);
  const Event& event = trace->events[0];
  EXPECT_EQ(event.kind, EventKind::kAllocFailed);
  EXPECT_EQ(event.device, 1);
  EXPECT_EQ(event.size_bytes, 2 * kGiB);
  ASSERT_TRUE(event.has(kHasDeviceFree));
  EXPECT_EQ(event.address, read_statements(*trace).error.free->middle());
  ASSERT_EQ(trace->devices.size(), 1u);
  EXPECT_EQ(trace->devices[0].index, 1);
  EXPECT_EQ(trace->devices[0].capacity_bytes, read_statements(*trace).error.capacity->middle());
  // Idle is reserved minus allocated, as wide as both roundings together.
  const ByteInterval cached = read_statements(*trace).error.cached.value();
  EXPECT_EQ(cached, size_of("5.50 GiB") - size_of("5.20 GiB"));
  EXPECT_GT(cached.max - cached.min, 20 * kMiB);
}

TEST(ReadErrorText, BuildsTheStackInnermostLast) {
  const auto trace = read_error_text(
      std::string("Traceback (most recent call last):\n  File \"a.py\", line 1, in outer\n    inner()\n  File "
                  "\"b.py\", line 22, in inner\n    x()\nRuntimeError: ") +
          kMessage,
      "");
  ASSERT_TRUE(trace.ok());
  const StackId stack = trace->events[0].stack;
  ASSERT_EQ(trace->stacks.depth(stack), 2u);
  EXPECT_EQ(trace->strings.at(trace->stacks.frame(stack).file), "b.py");
  EXPECT_EQ(trace->stacks.frame(stack).line, 22u);
  EXPECT_EQ(trace->strings.at(trace->stacks.frame(trace->stacks.parent(stack)).function), "outer");
  EXPECT_TRUE(trace->can(kStacks));
}

TEST(ReadErrorText, FindsTheMessageBehindNulBytesAndInsideOneEndlessLine) {
  std::string text(300000, '\0');
  text += std::string(3000000, 'x') + " RuntimeError: " + kMessage + std::string(3000000, 'y');
  const auto trace = read_error_text(text, "");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(read_statements(*trace).error.requested, size_of("2.00 GiB"));
}

TEST(ReadErrorText, ReadsATruncatedMessageAsFarAsItGoes) {
  const std::string message = kMessage;
  for (std::size_t length = 0; length <= message.size(); ++length) {
    const auto trace = read_error_text(std::string_view(message).substr(0, length), "");
    // The words alone are recognised, without a number; half of them are not.
    EXPECT_EQ(trace.ok(), length >= std::string_view("CUDA out of memory").size()) << length;
    if (trace.ok() && length <= message.find(" 2.00")) {
      EXPECT_FALSE(read_statements(*trace).error.requested) << length;
    }
    if (length < message.find(" (GPU")) continue;
    ASSERT_TRUE(trace.ok()) << length;
    EXPECT_EQ(read_statements(*trace).error.requested, size_of("2.00 GiB"));
  }
}

TEST(ReadErrorText, CountsWhatItDidNotLookAt) {
  std::string text = std::string(kMessage) + "\n";
  for (std::size_t i = 0; i < kMaxAnchorHits + 10; ++i) text += "CUDA error: x\n";
  const auto trace = read_error_text(text, "");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->lost.at("lines with error messages that were not looked at"), kMaxAnchorHits + 11 - 5000);
}

TEST(FindAnchors, SeesWordsAcrossWrapsColoursAndPrefixes) {
  EXPECT_EQ(find_anchors("(pid=7) CUDA out of\n(pid=7) memory. Tried to\n(pid=7) allocate 1 MiB").hits.size(), 1u);
  EXPECT_EQ(find_anchors("out of \x1b[1mmemory\x1b[0m. Tried   to\r\n allocate").hits.size(), 1u);
  EXPECT_TRUE(find_anchors("out of memory; tried to allocate").hits.empty());
}

TEST(SplitPrefix, KnowsWhoWroteALine) {
  const auto split = [](std::string_view line) {
    const LinePrefix prefix = split_prefix(line);
    return prefix.tag + "|" + std::string(line.substr(prefix.length));
  };
  EXPECT_EQ(split("[rank3]:   File \"x\""), "[rank3]:|File \"x\"");
  EXPECT_EQ(split("2024-11-20 14:37:16 [rank3]: boom"), "[rank3]:|boom");
  EXPECT_EQ(split("(Worker rank=3 pid=10) ERROR 06-05 06:18:13 [exec.py:470] boom"), "(Worker rank=3 pid=10)|boom");
  EXPECT_EQ(split("Apr 17 23:09:42 host prog[77]: boom"), "Apr 17 23:09:42 host prog[77]:|boom");
  EXPECT_EQ(split("web-1  | boom"), "web-1  ||boom");
  EXPECT_EQ(split("E0812 11:25:13.4 123 file.cc:33] boom"), "|boom");
  EXPECT_EQ(split("RuntimeError: boom"), "|RuntimeError: boom");
}

TEST(TorchVersion, IsTheOneThatTheTextNames) {
  for (const auto& [text, version] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"torch 1.13.1", "1.13"},
           {"torch==2.0.1+cu118", "2.0"},
           {"PyTorch version: 1.6.0", "1.6"},
           {"pytorch   1.7.1   py3.8_cuda11.0", "1.7"},
           {"\"torch_version\": \"2.0.1+cu118\"", "2.0"},
           {"Python-3.7.13 torch-1.12.1+cu113 CUDA:0", "1.12"},
           {"load_entry_point('torch==2.3.0', 'console_scripts', 'torchrun')", "2.3"},
           {"pyTorch_version:   1.8.1+cu101", "1.8"},
           {"Torch: 2.10.0", "2.10"},
           {"torch 1.4.0\ntorch 2.1.0", "2.1"},
           {"/x/lib/python3.6/site-packages/torch/nn/f.py", "<=1.10"},
           {"/x/lib/python3.8/dist-packages/torch/nn/f.py\ntorch==1.9.0", "1.9"},
           {"PyTorch version: 1.5.0\nCUDA used to build PyTorch: 9.2", "1.5"},
           {"CUDA used to build PyTorch: 2.1", ""},
           {"torch>=1.6", ""},
           {"torchvision 0.14.1", ""},
           {"open-clip-torch==2.20.0", ""},
           {"pytorch-lightning==1.9.4", ""},
           {"/x/lib/python3.11/site-packages/torch/nn/f.py", ""},
           {"torch.nn 3 layers", ""},
           {"the torch has 2 ends", ""},
           {"torch 20240101", ""}}) {
    EXPECT_EQ(torch_version(text), version) << text;
  }
}

TEST(OtherFramework, IsNamedOnlyWherePyTorchIsNot) {
  EXPECT_EQ(other_framework("numba.cuda.cudadrv.driver.CudaAPIError: [2]"), "numba");
  EXPECT_EQ(other_framework("import torch\nnumba.cuda.cudadrv.driver.CudaAPIError: [2]"), "");
  EXPECT_EQ(other_framework("ggml_cuda_error"), "llama.cpp");
  EXPECT_EQ(other_framework("on a g5.xlarge"), "");
}

TEST(LivesOn, IsWorkOfTheProgramAndNotWhatIsWrittenBelowIt) {
  for (const std::string_view work :
       {"step 12 loss 1.9", "Epoch 2/3", "skipping this batch", "{'train_runtime': 60.1, 'train_loss': 0.3}",
        "lr 0.1, val loss: 0.2, acc: 0.9\nlr 0.1, val loss: 0.1, acc: 0.9", "50%|#####     | 100/200 [00:10<00:10]",
        "saved checkpoint to out/3.pt"}) {
    EXPECT_TRUE(lives_on(std::string("10%|#   | 20/200 [00:02<00:20]\nboom\n") + std::string(work) + "\n", 31, {}))
        << work;
  }
  for (const std::string_view other :
       {"", "wandb: loss 0.4", "lr 0.1, val loss: 0.2, acc: 0.9", "10%|#   | 20/200 [00:02<00:22]",
        "How can I train epoch 3?", "Epoch 5 is where it always happens, before that the memory looks fine",
        "My batch size: 8, epoch: 3", "cleaning up", "Sending process 4712 closing signal SIGTERM\nstep 12 loss 1.9",
        "$ python train.py\nstep 12 loss 1.9", "- CUDA 11.6", "epoch: 30\nbatch: 8",
        "Command: python train.py --batch 8 --epoch 30", "        print('epoch 1 loss 0.3')",
        " 5%|5   | 100/2000 [10:00<3:10:00]", "[rank1]: step 12 loss 1.9"}) {
    EXPECT_FALSE(
        lives_on(std::string("10%|#   | 20/200 [00:02<00:20]\nboom\n") + std::string(other) + "\n", 31, "[rank0]:"))
        << other;
  }
}

TEST(WorksOn, IsShownByTheShapeOfTheLogOrOnlySaidInWords) {
  const std::string before =
      "INFO loading llama\nINFO worker ready on port 8000\nINFO: 10.0.0.7:5010 - \"POST /generate HTTP/1.1\" 200 "
      "OK\njob 41 done in 10 "
      "ms\nqueue length 7\nloaded 3 files in 2.5 s\nCell In[2], line 1\n";
  const std::size_t at = before.size();
  for (const auto& [behind, shown] : std::initializer_list<std::pair<std::string_view, WorksOn>>{
           {"job 42 done in 12 ms", WorksOn::kByShape},
           {"2024-05-01 10:00:07,113 INFO job 42 done in 9 ms", WorksOn::kByShape},
           {"INFO: 10.0.0.9:6000 - \"GET /health HTTP/1.1\" 200 OK", WorksOn::kByShape},
           {"INFO: 10.0.0.9:6000 - \"POST /generate HTTP/1.1\" 500 Internal Server Error", WorksOn::kByShape},
           {"Process finished with exit code 0", WorksOn::kByShape},
           {"web-1 exited with code 0", WorksOn::kByShape},
           {"step 3 loss 0.5 acc 0.9", WorksOn::kByShape},
           {"skipping this one", WorksOn::kByWords},
           {"retrying with fp16", WorksOn::kByWords},
           {"job 41 done in 10 ms", WorksOn::kNo},
           {"job 12 failed in 99 ms", WorksOn::kNo},
           {"Process finished with exit code 1", WorksOn::kNo},
           {"job 42 done in 12 ms\nweb-1 exited with code 137", WorksOn::kNo},
           {"INFO loading llama\nINFO worker ready on port 8000\njob 42 done in 12 ms", WorksOn::kNo},
           {"INFO worker ready on port 8000\njob 42 done in 12 ms", WorksOn::kByShape},
           {"loaded 3 files in 2.9 s", WorksOn::kNo},
           {"My job 50 done in 12 ms?", WorksOn::kNo},
           {"    job 42 done in 12 ms", WorksOn::kNo},
           {"closing 3 connections", WorksOn::kNo},
           {"Cell In[9], line 2", WorksOn::kNo}}) {
    EXPECT_EQ(works_on(before + "boom\n" + std::string(behind) + "\n", at, {}), shown) << behind;
  }
}

TEST(WorksOn, ARequestIsToldByItsServer) {
  const std::string traceback = "Traceback (most recent call last):\n  File \"/w/app.py\", line 3, in f\nboom\n";
  for (const auto& [text, is_request] : std::initializer_list<std::pair<std::string, bool>>{
           {"ERROR:    Exception in ASGI application\n" + traceback, true},
           {"[2024-05-01] ERROR in app: Exception on /predict [POST]\n" + traceback, true},
           {"*** Error completing request\n" + traceback, true},
           {"Traceback (most recent call last):\n  File \"/v/lib/python3.10/site-packages/gradio/queueing.py\", line "
            "5, in "
            "call\nboom\n",
            true},
           {traceback + "INFO:     127.0.0.1:5000 - \"POST /api/predict HTTP/1.1\" 500 Internal Server Error\n", true},
           {traceback, false},
           {traceback + "step 3 loss 0.5\n", false},
           {traceback + "INFO: \"GET /health HTTP/1.1\" 200 OK\n", false}}) {
    EXPECT_EQ(is_of_request(text, text.find("boom")), is_request) << text;
  }
}

TEST(PeakBuffers, AreTheLargestWithTheirLines) {
  const auto buffers = peak_buffers(
      "Peak buffers:\n\tBuffer 1:\n\t\tSize: 1.00MiB\n\t\tEntry Parameter Subshape: f32[512,512]\n\t\t====\n\n\tBuffer "
      "2:\n\t\tSize: 6.00MiB\n\t\tOperator: op_name=\"jit(f)/jit(main)/concatenate[dimension=0]\" "
      "source_file=\"/a/models.py\" source_line=689\n\t\tXLA Label: concatenate\n\t\tShape: "
      "f32[4096,128,3]\n\t\t====\n\nTraceback\n\tBuffer 3:\n\t\tSize: 9.00GiB\n",
      5);
  ASSERT_EQ(buffers.size(), 2u);
  EXPECT_EQ(buffers[0].bytes, size_of("6.00MiB", SizeStyle::kXla));
  EXPECT_EQ(buffers[0].operation + "|" + buffers[0].place + "|" + buffers[0].shape,
            "concatenate|/a/models.py:689|f32[4096,128,3]");
  EXPECT_EQ(buffers[1].operation, "parameter");
  EXPECT_TRUE(peak_buffers("Peak buffers", 5).empty());
}

TEST(ParseFrame, ReadsEachSpelling) {
  TracebackFrame frame;
  ASSERT_TRUE(parse_frame("File \"/a/b.py\", line 12, in f", frame));
  EXPECT_EQ(frame.file + ":" + std::to_string(frame.line) + ":" + frame.function, "/a/b.py:12:f");
  ASSERT_TRUE(parse_frame("File ~/b.py:7, in Net.forward(self, x)", frame));
  EXPECT_EQ(frame.file + ":" + std::to_string(frame.line) + ":" + frame.function, "~/b.py:7:Net.forward");
  ASSERT_TRUE(parse_frame("Cell In[3], line 92, in inference(frames)", frame));
  EXPECT_EQ(frame.file + ":" + std::to_string(frame.line) + ":" + frame.function, "cell [3]:92:inference");
  EXPECT_FALSE(parse_frame("File \"/a/b.py\", line twelve, in f", frame));
  EXPECT_FALSE(parse_frame("see b.py:7 for more", frame));
}

}  // namespace
}  // namespace faultline
