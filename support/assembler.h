// PTX to machine code by an external assembler: the toolkit's libraries, or the driver of the GPU that will run it.
#pragma once
#include <string>
#include <string_view>

#include "kiln/result.h"

namespace kiln {

struct Assembled {
  std::string image;  // a cubin
  std::string log;    // verbose: registers, spills, remarks
};

/// The error of an assembler that rejects PTX of ours: kMemory where a block has too few registers for it, else
/// kInternal.
Diagnostic rejected_ptx(std::string_view assembler, std::string_view log);

/// Whether PTX says which lines its code is of. An assembler that is asked for lines gives those of the PTX otherwise.
inline bool has_lines(std::string_view ptx) { return ptx.find(".loc\t") != std::string_view::npos; }

/// Thread-safe.
class Assembler {
 public:
  virtual ~Assembler() = default;
  /// With its version, "nvJitLink 13.0": part of the keys of cached code.
  virtual std::string name() const = 0;
  /// The newest PTX that it reads, × 10: 84 for `.version 8.4`.
  virtual int ptx_version() const = 0;
  /// Assembles one PTX module. When it rejects the text, rejected_ptx() with its log.
  virtual Result<Assembled> assemble(std::string_view ptx) const = 0;
};

}  // namespace kiln
