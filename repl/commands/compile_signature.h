// What `kiln compile` and `kiln check` assume about parameters for which no signature was given.
//
//   tl.constexpr parameters   the --constexpr value, else what assumed_constexpr finds in the file: the default, the
//                             first triton.Config, @triton.heuristics, the first launch, how it is used (fp32 where a
//                             dtype belongs, False for a flag, the first word that it is compared with), else 1024, or
//                             32 each when several are left
//   annotated (n: tl.int64)   that type
//   pointers                  parameters that lead the address of a load, store, atomic or descriptor, directly,
//                             through local names or through functions that they are handed to: *fp32 (aligned to 16
//                             bytes); *i32, *i64 or *i1 where what is read indexes, is an address or masks;
//                             *fp16, … where tl.dot multiplies it with what is of that type; *i8 where such products
//                             are added up in int32; *u8 for operands and scales of tl.dot_scaled; what the tensor of
//                             the first launch is made of, where the file shows it
//   tuples                    parameters that are indexed by numbers or unpacked: as many pointers or integers
//   descriptors               parameters that load or store blocks (`x.load([i, j])`): of that rank, of fp32 or what
//                             a launch or tl.dot tells, with the block that a hook of a configuration, the launch or
//                             the offsets tell (assumed_descriptors.h), else 32 in each dimension, 1024 in one
//   last strides              of a descriptor that the kernel makes: the constexpr 1
//   None by default           the constexpr None
//   float by default          fp32; also what the first launch gives a float
//   masks of loads and stores i1
//   everything else           i32, a multiple of 16 (as sizes and strides usually are)
//
// `kiln check` looks at files of which nothing else is known, and takes names for evidence too: one that ends in "ptr"
// is a pointer; eps, p, alpha, beta, scale, … are fp32. What does not compile it tries once more for other guesses
// (Revision).
#pragma once
#include <set>
#include <string>
#include <vector>

#include "compiler/frontend/constexpr_text.h"
#include "kiln/result.h"

namespace kiln::repl {

using frontend::parse_constexpr;

struct AssumedSignature {
  std::string signature;  // as --signature takes it
  std::vector<std::pair<std::string, frontend::Global>> constexprs;
  std::vector<std::string> assumptions;  // "x_ptr: *fp32:16"
  // What nothing in the text decides, and a Revision may.
  std::vector<std::string> guessed_pointers;  // *fp32
  bool guessed_integers = false;              // *i32
  bool guessed_sizes = false;
  bool guessed_flags = false;
  bool used_launch = false;
};

enum class Evidence { kUse, kNamesToo };

/// Other guesses, for a kernel that does not compile with the first.
struct Revision {
  bool launch = true;                                // what a launch tells counts
  bool wide = false;                                 // integers that pointers point to are i64, torch's default
  bool truths = false;                               // these are i1
  bool halves = false;                               // floats that pointers point to are fp16
  bool flags = false;                                // what flags are of which nothing is known
  int64_t size = 1;                                  // times the size of tiles
  std::set<std::string, std::less<>> integers = {};  // pointers to *i32
};

/// Parameters that `constexprs` names keep their given value.
AssumedSignature assume_signature(const frontend::JitFunction& function,
                                  const std::vector<std::pair<std::string, frontend::Global>>& constexprs,
                                  Evidence evidence, const Revision& revision = {});

/// Names of functions that a function calls directly: helpers are compiled through their callers.
std::vector<std::string> called_names(const ast::FunctionDef& function);

}  // namespace kiln::repl
