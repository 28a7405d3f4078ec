#include "process/ending.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

namespace faultline::process {
namespace {

using std::chrono::milliseconds;

// A process that waits for its end, and a clock and a count of requests that the test sets.
class EndingTest : public testing::Test {
 protected:
  void SetUp() override {
    process_ = ::fork();
    if (process_ != 0) return;
    for (;;) ::pause();
  }
  void TearDown() override {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

  Ending ending(Patience patience = {}) {
    return Ending(
        process_, std::move(patience), [this] { return now_; }, [this] { return asked_; });
  }
  // Whether it was killed; waits for what was sent.
  bool is_killed() {
    int status = 0;
    if (::waitpid(process_, &status, 0) != process_) return false;
    process_ = 0;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  bool runs() const { return ::waitpid(process_, nullptr, WNOHANG) == 0; }

  pid_t process_ = 0;
  Ending::Time now_{};
  int asked_ = 0;
};

TEST_F(EndingTest, WhoAsksTwiceEndsItAtOnce) {
  Ending ending = this->ending();
  asked_ = 1;
  ending.look();
  now_ += milliseconds(600);
  ending.look();
  EXPECT_TRUE(runs());
  asked_ = 2;
  ending.look();
  EXPECT_TRUE(is_killed());
  EXPECT_FALSE(ending.out_of_time());
}

TEST_F(EndingTest, TwoSignalsOfOneRequestAreOne) {
  Ending ending = this->ending();
  asked_ = 1;
  ending.look();
  now_ += milliseconds(400);
  asked_ = 2;
  ending.look();
  now_ += milliseconds(4500);
  ending.look();
  EXPECT_TRUE(runs());
  now_ += milliseconds(200);
  ending.look();
  EXPECT_TRUE(is_killed());
}

TEST_F(EndingTest, ItsTimeIsOverWhenPatienceSays) {
  bool is_over = false;
  Ending ending = this->ending({[&] { return is_over; }, false});
  now_ += std::chrono::hours(1);
  ending.look();
  EXPECT_FALSE(ending.out_of_time());
  EXPECT_TRUE(runs());
  is_over = true;
  ending.look();
  EXPECT_TRUE(ending.out_of_time());
  int status = 0;
  EXPECT_EQ(::waitpid(process_, &status, 0), process_);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);  // it was asked, and had nothing against it
  process_ = 0;
}

}  // namespace
}  // namespace faultline::process
