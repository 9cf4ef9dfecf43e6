// Ctrl-C for work inside the library: what the process computes or waits for ends early.
#pragma once

namespace kiln {

/// Ends launches on the CPU that run and waits for a GPU, in all threads: they fail with kInterrupted, and so do later
/// ones until clear_interrupt(). What a launch had to write is undefined then; a kernel on a GPU runs on. For signal
/// handlers too.
void request_interrupt();
void clear_interrupt();
bool interrupt_requested();

}  // namespace kiln
