// Work that cannot be ended halfway (LLVM's passes, loading a library) while somebody may press Ctrl-C: a thread of its
// own does it, so that the one who waits for it can be called away.
#pragma once
#include <functional>

namespace kiln {

/// Calls `work` and returns true when it is done, with what it throws. With Ctrl-C it returns false at once: the work
/// goes on by itself, and nobody hears of it. So `work` owns all that it uses. Where nobody listens for Ctrl-C
/// (InterruptListener) and where the system has no more threads, `work` runs on this thread.
[[nodiscard]] bool run_aside(std::function<void()> work);

/// Runs `work`, which throws nothing, on a thread of its own that takes no signal of others: Ctrl-C would end a call of
/// the system there, opening a library's file say, as a failure. Where the system has no more threads, on this one.
void run_on_thread(std::function<void()> work);

/// How much work was left by Ctrl-C and is not done yet. A program that ends meanwhile ends by _exit(): destructors of
/// statics would take away what that work uses. Where it does not, its end waits for the work.
int work_left_aside();

}  // namespace kiln
