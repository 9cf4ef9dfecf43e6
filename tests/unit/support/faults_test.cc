#include "support/faults.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <new>
#include <stdexcept>
#include <thread>

#include "kiln/faults.h"

namespace kiln::faults {
namespace {

volatile int* const kNowhere = reinterpret_cast<int*>(0x10);

void write_nowhere() { *kNowhere = 1; }

int deeper(int n) {
  volatile char room[4096];
  room[0] = static_cast<char>(n);
  return n > 0 ? deeper(n + 1) + room[0] : 0;
}

TEST(Faults, EndTheGuardedCallAlone) {
  install();
  auto write = [](void*) { *kNowhere = 1; };
  auto read = [](void* out) { *static_cast<int*>(out) = *kNowhere; };
  auto fine = [](void* out) { *static_cast<int*>(out) = 7; };
  for (int turn = 0; turn < 3; ++turn) {  // the signal is not blocked after the first
    auto fault = run_guarded(write, nullptr);
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->signal, SIGSEGV);
    EXPECT_EQ(fault->address, 0x10u);
#if defined(__x86_64__)
    EXPECT_EQ(describe(*fault), "wrote to address 0x10, where it has no memory to write");
#endif
  }
  int value = 0;
  std::thread([&] { EXPECT_EQ(run_guarded(read, &value)->address, 0x10u); }).join();
  EXPECT_FALSE(run_guarded(fine, &value));
  EXPECT_EQ(value, 7);
}

TEST(Faults, NestAndReachTheNearest) {
  install();
  auto outer = [](void*) {
    EXPECT_TRUE(run_guarded([](void*) { *kNowhere = 1; }, nullptr));
    raise(SIGFPE);
  };
  auto fault = run_guarded(outer, nullptr);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->signal, SIGFPE);
}

TEST(FaultsDeathTest, ElsewhereEndTheProcessWithAMessage) {
  auto restore = [] { [[maybe_unused]] ssize_t n = write(2, "[restored]", 10); };
  EXPECT_EXIT((install(), set_last_act(restore), write_nowhere()), ::testing::KilledBySignal(SIGSEGV),
              "\\[restored\\].*kiln: ended by an access to memory that is not there.* at 0x10, in code at 0x");
  auto own_code = [](void*) {
    Unguarded here;
    *kNowhere = 1;
  };
  EXPECT_EXIT((install(), run_guarded(own_code, nullptr)), ::testing::KilledBySignal(SIGSEGV), "kiln: ended by");
  EXPECT_EXIT((install(), deeper(1)), ::testing::KilledBySignal(SIGSEGV), "the stack has run out");
}

TEST(FaultsDeathTest, OfKernelsAloneLeaveOthersAsTheyWere) {
  auto write = [](void*) { write_nowhere(); };
  // In a process of its own: this one may have install()ed by now.
  auto in_a_program = [&](auto more) {
    catch_kernel_faults();
    for (int turn = 0; turn < 2; ++turn)
      if (run_guarded(write, nullptr)) std::fputs("[caught]", stderr);
    more();
  };
#ifndef __SANITIZE_ADDRESS__  // which takes what nobody else does, and exits
  EXPECT_EXIT(in_a_program([] { write_nowhere(); }), ::testing::KilledBySignal(SIGSEGV), "^\\[caught\\]\\[caught\\]$");
  EXPECT_EXIT(in_a_program([] { raise(SIGFPE); }), ::testing::KilledBySignal(SIGFPE), "^\\[caught\\]\\[caught\\]$");
#endif
  auto before = [](int) {
    std::fputs("[before]", stderr);
    _exit(3);
  };
  EXPECT_EXIT((signal(SIGSEGV, before), in_a_program([] { write_nowhere(); })), ::testing::ExitedWithCode(3),
              "^\\[caught\\]\\[caught\\]\\[before\\]$");
}

TEST(FaultsDeathTest, AnUncaughtExceptionEndsWithOneLine) {
  EXPECT_EXIT(
      {
        install();
        std::thread([] { throw std::bad_alloc(); }).join();
      },
      testing::ExitedWithCode(1), "^kiln: error: there is no more memory\n$");
  EXPECT_EXIT(
      {
        install();
        std::thread([] { throw std::runtime_error("no more threads"); }).join();
      },
      testing::ExitedWithCode(1), "^kiln: error: no more threads\n$");
}

}  // namespace
}  // namespace kiln::faults
