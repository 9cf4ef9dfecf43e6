// Runs tile IR in the interpreter, for interpreter.py:
//
//   interpret_ir FILE X,Y,Z ARGUMENT...
//
// FILE is what `kiln compile --emit ir` printed. An argument is the bits of a scalar as a decimal number, or @PATH: a
// file with the bytes of an array, which has the array's bytes after the run.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "compiler/interp/tile/interp.h"
#include "compiler/ir/ir.h"
#include "support/diag.h"
#include "support/source.h"

namespace {

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "interpret_ir: cannot read %s\n", path.c_str());
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: interpret_ir FILE X,Y,Z ARGUMENT...\n");
    return 2;
  }
  std::array<int32_t, 3> grid{1, 1, 1};
  if (std::sscanf(argv[2], "%d,%d,%d", &grid[0], &grid[1], &grid[2]) != 3) {
    std::fprintf(stderr, "interpret_ir: the grid is three numbers, as 1,1,1; got %s\n", argv[2]);
    return 2;
  }
  auto module = kiln::ir::parse_module(kiln::SourceText::make(argv[1], read(argv[1])));
  if (!module.ok()) {
    std::fprintf(stderr, "%s\n", kiln::render(module.error()).c_str());
    return 1;
  }
  kiln::interp::Memory memory;
  std::vector<std::pair<std::string, std::string>> arrays;  // path, bytes
  arrays.reserve(static_cast<size_t>(argc));
  std::vector<uint64_t> slots;
  for (int i = 3; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument[0] != '@') {
      slots.push_back(std::strtoull(argument.c_str(), nullptr, 10));
      continue;
    }
    auto& [path, bytes] = arrays.emplace_back(argument.substr(1), read(argument.substr(1)));
    memory.allow(bytes.data(), bytes.size());
    slots.push_back(reinterpret_cast<uint64_t>(bytes.data()));
  }
  kiln::Status done = kiln::interp::run(**module, grid, slots, memory);
  if (!done.ok()) {
    std::fprintf(stderr, "%s\n", kiln::render(done.error()).c_str());
    return 1;
  }
  for (auto& [path, bytes] : arrays)
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
