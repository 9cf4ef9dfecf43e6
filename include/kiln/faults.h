// Faults of kernels on the CPU, for programs whose work must survive them.
#pragma once

namespace kiln {

/// From now on a fault (SIGSEGV, SIGBUS, SIGFPE, SIGILL) of a kernel on the CPU is an error of its launch, kLaunch with
/// the place in the source, where it would have ended the process. What the kernel wrote before may have changed other
/// memory; a checked launch (kiln/check.h) does not.
///
/// Installs handlers of these signals. All other faults go to the handlers that were there before. Whoever installs one
/// afterwards without calling the one before has the process end as ever. Later calls do nothing.
void catch_kernel_faults();

}  // namespace kiln
