#include "compiler/codegen/cubin.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include "compiler/codegen/ptxas.h"
#include "compiler/target/occupancy.h"
#include "support/diag.h"
#include "support/dynlib.h"
#include "support/process.h"

namespace kiln::codegen {

namespace {

// nvJitLink.h, as far as it is used; unversioned entry points exist from 12.3 on and have not changed since.
using Handle = void*;
constexpr int kSuccess = 0, kUnknownOption = 1, kInputPtx = 2;

struct NvJitLink {
  int (*create)(Handle*, uint32_t, const char**);
  int (*destroy)(Handle*);
  int (*add_data)(Handle, int, const void*, size_t, const char*);
  int (*complete)(Handle);
  int (*cubin_size)(Handle, size_t*);
  int (*cubin)(Handle, void*);
  int (*error_log_size)(Handle, size_t*);
  int (*error_log)(Handle, char*);
  int (*info_log_size)(Handle, size_t*);
  int (*info_log)(Handle, char*);
  unsigned major = 0, minor = 0;
};

std::optional<NvJitLink> open_nvjitlink() {
  std::vector<std::string> names;
  for (const char* file : {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"}) {
    for (const std::string& root : toolkit_roots()) names.push_back(root + "/lib64/" + file);
    names.push_back(file);
  }
  auto library = DynLib::open(names, "nvJitLink");
  if (!library) return std::nullopt;
  NvJitLink api;
  bool complete = true;
  auto bind = [&]<class F>(F& f, const char* name) {
    f = library->function<F>(name);
    complete = complete && f;
  };
  bind(api.create, "nvJitLinkCreate");
  bind(api.destroy, "nvJitLinkDestroy");
  bind(api.add_data, "nvJitLinkAddData");
  bind(api.complete, "nvJitLinkComplete");
  bind(api.cubin_size, "nvJitLinkGetLinkedCubinSize");
  bind(api.cubin, "nvJitLinkGetLinkedCubin");
  bind(api.error_log_size, "nvJitLinkGetErrorLogSize");
  bind(api.error_log, "nvJitLinkGetErrorLog");
  bind(api.info_log_size, "nvJitLinkGetInfoLogSize");
  bind(api.info_log, "nvJitLinkGetInfoLog");
  int (*version)(unsigned*, unsigned*) = nullptr;
  bind(version, "nvJitLinkVersion");
  if (!complete) return std::nullopt;
  version(&api.major, &api.minor);
  return api;
}

/// Searched once: a library stays loaded for the life of the process anyhow.
const std::optional<NvJitLink>& nvjitlink() {
  static const std::optional<NvJitLink> api = open_nvjitlink();
  return api;
}

const std::optional<Ptxas>& ptxas() {
  static const std::optional<Ptxas> found = find_ptxas(toolkit_roots());
  return found;
}

std::string read_log(Handle handle, int (*size_of_log)(Handle, size_t*), int (*get)(Handle, char*)) {
  size_t size = 0;
  if (size_of_log(handle, &size) != kSuccess || size == 0) return "";
  std::string text(size, '\0');
  if (get(handle, text.data()) != kSuccess) return "";
  text.resize(std::strlen(text.c_str()));
  return text;
}

/// The sum of the numbers before `what` in the log, which has a line for each function: "… 16 bytes spill stores, …".
/// -1 when there is none.
int64_t numbers_before(std::string_view log, std::string_view what) {
  int64_t sum = -1;
  for (size_t at = log.find(what); at != std::string_view::npos; at = log.find(what, at + what.size())) {
    size_t end = at;
    while (end > 0 && log[end - 1] == ' ') --end;
    size_t begin = end;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(log[begin - 1]))) --begin;
    int64_t value = 0;
    const auto [read, error] = std::from_chars(log.data() + begin, log.data() + end, value);
    if (error == std::errc()) sum = std::max<int64_t>(sum, 0) + value;
  }
  return sum;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// Records of a cubin's .nv.info section that give a number for each kernel.
enum Fact : uint8_t { kRegisters = 0x2f, kFrameSize = 0x11 };

/// The largest number of that kind in a cubin; -1 when it has none or is not a cubin.
int largest_fact(std::string_view image, Fact fact) {
  // A record is {format, attribute, size, payload}; the payload of these is (symbol, number).
  constexpr uint8_t kSized = 0x04;
  auto read = [&]<class T>(T& out, size_t at) {
    if (at > image.size() || image.size() - at < sizeof(T)) return false;
    std::memcpy(&out, image.data() + at, sizeof(T));
    return true;
  };
  Elf64_Ehdr header;
  if (!read(header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return -1;
  auto section = [&](size_t i, Elf64_Shdr& s) { return read(s, header.e_shoff + i * sizeof(Elf64_Shdr)); };
  Elf64_Shdr names;
  if (!section(header.e_shstrndx, names)) return -1;
  int most = -1;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr s;
    if (!section(i, s)) return -1;
    const size_t name_at = names.sh_offset + s.sh_name;
    if (name_at >= image.size() || std::string_view(image.data() + name_at) != ".nv.info") continue;
    for (size_t at = s.sh_offset; at + 4 <= s.sh_offset + s.sh_size;) {
      uint8_t format = 0, attribute = 0;
      uint16_t size = 0;
      if (!read(format, at) || !read(attribute, at + 1) || !read(size, at + 2)) return most;
      uint32_t number = 0;
      if (format == kSized && attribute == fact && size >= 8 && read(number, at + 8))
        most = std::max(most, static_cast<int>(number));
      at += 4 + (format == kSized ? size : size_t{0});
    }
  }
  return most;
}

/// What the machine code and the assembler's verbose log tell.
Cubin cubin_of(Assembled done, std::string assembler) {
  Cubin cubin;
  cubin.image = std::move(done.image);
  cubin.assembler = std::move(assembler);
  cubin.registers = registers_of_cubin(cubin.image);
  const std::string_view log = done.log;
  const int64_t stores = numbers_before(log, "bytes spill stores"), loads = numbers_before(log, "bytes spill loads");
  if (stores >= 0 && loads >= 0) cubin.spill_bytes = stores + loads;
  // A linker that finds the machine code in the driver's cache may say nothing; the code itself tells its stack frame,
  // and without one nothing is spilled.
  cubin.stack_bytes = largest_fact(cubin.image, kFrameSize);
  if (cubin.spill_bytes < 0 && cubin.stack_bytes == 0) cubin.spill_bytes = 0;
  for (std::string_view line : lines_of(log)) {
    const size_t code = line.find("(C7");
    const bool remark = code != std::string_view::npos || line.find("arning") != std::string_view::npos;
    if (remark) cubin.messages.emplace_back(line);
  }
  return cubin;
}

Result<Assembled> link_with_nvjitlink(const NvJitLink& api, std::string_view ptx, const target::Target& target) {
  const std::string arch = fmt::format("-arch={}", target.name);
  // The library's own cache asks the driver for its cache at every link, says nothing of spills when it finds the code,
  // and stands behind ours anyhow. Its first versions cannot turn it off.
  const char* options[] = {arch.c_str(), "-O3", "-verbose", "-Xptxas=-v", has_lines(ptx) ? "-lineinfo" : "-O3",
                           "-no-cache"};
  constexpr auto kCount = static_cast<uint32_t>(std::size(options));
  Handle handle = nullptr;
  int rc = api.create(&handle, kCount, options);
  if (rc == kUnknownOption) rc = api.create(&handle, kCount - 1, options);
  if (rc != kSuccess)
    return error(ErrorKind::kUnsupported, "nvJitLink {}.{} does not link for {} (code {})", api.major, api.minor,
                 target.name, rc);
  std::unique_ptr<void, int (*)(void*)> closer(handle, [](void* h) -> int { return nvjitlink()->destroy(&h); });
  const bool linked = api.add_data(handle, kInputPtx, ptx.data(), ptx.size(), "kernel.ptx") == kSuccess &&
                      api.complete(handle) == kSuccess;
  if (!linked) return rejected_ptx("nvJitLink", read_log(handle, api.error_log_size, api.error_log));
  Assembled done;
  size_t size = 0;
  if (api.cubin_size(handle, &size) != kSuccess) return error(ErrorKind::kInternal, "nvJitLink gives no cubin");
  done.image.resize(size);
  if (api.cubin(handle, done.image.data()) != kSuccess) return error(ErrorKind::kInternal, "nvJitLink gives no cubin");
  done.log = read_log(handle, api.info_log_size, api.info_log);
  return done;
}

bool serves(const Assembler* device, const target::Target& target) {
  return device && device->ptx_version() >= target.ptx;
}

}  // namespace

int registers_of_cubin(std::string_view image) { return largest_fact(image, kRegisters); }

std::string toolkit_assembler_name() {
  if (const auto& api = nvjitlink()) return fmt::format("nvJitLink {}.{}", api->major, api->minor);
  if (const auto& tool = ptxas()) return tool->version;
  return "";
}

std::string assembler_name(const target::Target& target, const Assembler* device) {
  return serves(device, target) ? device->name() : toolkit_assembler_name();
}

Result<Cubin> link_cubin(std::string_view ptx, const target::Target& target, const Assembler* device,
                         bool shares_registers) {
  // The driver and nvJitLink compile for linking, where setmaxnreg is ignored (C7504) and what it was to give is
  // spilled; ptxas compiles whole programs.
  const bool whole_program = shares_registers && ptxas();
  if (serves(device, target) && !whole_program) {
    KILN_TRY(Assembled done, device->assemble(ptx));
    return cubin_of(std::move(done), device->name());
  }
  if (const auto& api = nvjitlink(); api && !whole_program) {
    KILN_TRY(Assembled done, link_with_nvjitlink(*api, ptx, target));
    return cubin_of(std::move(done), toolkit_assembler_name());
  }
  if (const auto& tool = ptxas()) {
    KILN_TRY(Assembled done, run_ptxas(*tool, ptx, target.name));
    return cubin_of(std::move(done), tool->version);
  }
  return Cubin{};
}

namespace {

/// The most registers (of 32 bits) that are live at once where PTX is read from top to bottom. Assemblers order
/// instructions anew, and what a loop carries counts too little: an estimate.
int live_registers(std::string_view ptx) {
  struct Range {
    uint32_t first = UINT32_MAX, last = 0;
  };
  std::vector<Range> words, halves, pairs;  // %r, %rs and %rd are numbered each for themselves
  uint32_t place = 0;
  for (size_t at = ptx.find("%r"); at != std::string_view::npos; at = ptx.find("%r", at)) {
    at += 2;
    const char kind = at < ptx.size() ? ptx[at] : '\0';
    at += kind == 'd' || kind == 's';
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(ptx.data() + at, ptx.data() + ptx.size(), number);
    constexpr uint32_t kMost = 1 << 24;  // of a name that is no register
    if (error != std::errc() || number >= kMost) continue;
    at = static_cast<size_t>(end - ptx.data());
    std::vector<Range>& ranges = kind == 'd' ? pairs : kind == 's' ? halves : words;
    if (number >= ranges.size()) ranges.resize(number + 1);
    ranges[number].first = std::min(ranges[number].first, place);
    ranges[number].last = place++;
  }
  std::vector<int> change(place + 1, 0);
  for (const auto& [ranges, size] : {std::pair(&words, 1), std::pair(&halves, 1), std::pair(&pairs, 2)})
    for (const Range& r : *ranges)
      if (r.first <= r.last) change[r.first] += size, change[r.last] -= size;
  int now = 0, most = 0;
  for (const int by : change) most = std::max(most, now += by);
  return most;
}

/// Of a thread: fewer let no more of them on an SM.
constexpr int kFewestRegisters = 32;

}  // namespace

Result<Cubin> link_for_occupancy(std::string& ptx, const target::Target& target, const KernelFacts& facts,
                                 const Assembler* device) {
  constexpr std::string_view kThreads = ".reqntid ";
  const size_t at = ptx.find(kThreads);
  const size_t line_end = ptx.find('\n', at);
  const bool is_free = !facts.limits_registers && at != std::string::npos;
  auto limited = [&](std::string_view directive, int limit) {
    std::string text = ptx;
    text.insert(line_end, fmt::format("\n{} {}", directive, limit));
    return text;
  };
  // Where not all values fit, ptxas up to 13.0 spills down to 32 registers, unless it is told how many there are
  // (nvJitLink does not). It is told at once where twice as many values are live as fit: such code takes it up to half
  // a minute.
  const int most = target::registers_for(target, {.threads = facts.threads}, 1);
  std::optional<Cubin> whole;
  std::string whole_ptx;
  const int live = is_free ? live_registers(ptx) : 0;
  if (live > 2 * most) {
    whole_ptx = limited(".maxnreg", most);
    KILN_TRY(whole, link_cubin(whole_ptx, target, device, facts.shares_registers));
    if (whole->spill_bytes > 0) {
      ptx = std::move(whole_ptx);
      return *std::move(whole);
    }
  }
  KILN_TRY(Cubin plain, link_cubin(ptx, target, device, facts.shares_registers));
  if (is_free && plain.spill_bytes > 0 && plain.registers <= most / 2) {
    if (!whole) {
      whole_ptx = limited(".maxnreg", most);
      KILN_TRY(whole, link_cubin(whole_ptx, target, device, facts.shares_registers));
    }
    if (whole->spill_bytes >= 0 && whole->spill_bytes < plain.spill_bytes) {
      ptx = std::move(whole_ptx);
      return *std::move(whole);
    }
  }
  if (plain.registers < 0 || plain.spill_bytes != 0 || !is_free) return plain;
  target::BlockResources block{.threads = facts.threads, .shared_bytes = facts.shared_bytes};
  auto with = [&](int registers) {
    block.registers_per_thread = registers;
    return target::occupancy(target, block);
  };
  const target::Occupancy now = with(plain.registers);
  // A grid of few blocks gains nothing from room for more: it runs the code that keeps its registers.
  auto crowd = [&](std::string text, Cubin dense) {
    if (now.blocks_per_sm > 0 && with(dense.registers).blocks_per_sm > now.blocks_per_sm)
      dense.roomy = RoomyCode{std::move(plain.image), plain.registers, now.blocks_per_sm};
    ptx = std::move(text);
    return dense;
  };
  // Of 28 tries over published kernels each spilled that asked for less than a 1.6th of the registers, or a 2.25th of
  // what is live; the others did so in one of two cases.
  auto limit_of = [&](int blocks) { return target::registers_for(target, {.threads = facts.threads}, blocks); };
  auto holds = [&](int blocks) { return live * 4 <= limit_of(blocks) * 9; };
  // Without loops nothing but other threads hides the wait for loads, and an assembler that takes far more registers
  // than values live does so for loads that none of them needs. Half of an SM's threads are asked for as well: it may
  // order the loads otherwise than they are written.
  const int half = std::min(now.by_threads / 2, now.by_shared);
  const int most_blocks = with(std::max(kFewestRegisters, live)).blocks_per_sm;
  if (facts.elementwise && plain.registers > live * 3 / 2) {
    for (const int blocks : {std::max(half, most_blocks), std::min(half, most_blocks)}) {
      if (blocks <= now.blocks_per_sm || (blocks > most_blocks && !holds(blocks))) continue;
      std::string crowded = limited(".minnctapersm", blocks);
      KILN_TRY(Cubin dense, link_cubin(crowded, target, device, facts.shares_registers));
      if (dense.spill_bytes == 0) return crowd(std::move(crowded), std::move(dense));
    }
  }
  // A block that has an SM for itself leaves it idle at each barrier. It is tried whatever seems to live: columns and
  // masks, which the assembler computes again, are most of that in a row's loop.
  if (now.blocks_per_sm == 1 && now.by_threads == 2 && now.by_shared > 1 && !facts.products) {
    std::string crowded = limited(".minnctapersm", 2);
    KILN_TRY(Cubin dense, link_cubin(crowded, target, device, facts.shares_registers));
    if (dense.spill_bytes == 0) return crowd(std::move(crowded), std::move(dense));
  }
  constexpr int kFewestOfWaiting = 40;
  int blocks = facts.waits ? std::min(now.by_shared, with(kFewestOfWaiting).by_registers) : half;
  // Accumulators can do with no fewer. Other code rarely gives up more than two fifths, and each try is a compilation.
  if (!facts.products) blocks = std::min(blocks, with(plain.registers * (facts.waits ? 2 : 3) / 5).by_registers);
  // Sums of products stay in registers. Of 70 tries over published kernels two of three fitted that were asked to give
  // up a quarter of the registers at most, or had less live than 1.25 times what they were to keep; one of four others.
  auto is_hopeless = [&](int count) {
    const int limit = limit_of(count);
    const bool gives_up_much =
        facts.products ? plain.registers * 11 > limit * 15 && live * 4 > limit * 5 : plain.registers * 5 > limit * 8;
    return !facts.waits && (gives_up_much || !holds(count));
  };
  for (int tries = facts.products ? 1 : facts.waits ? 3 : 2; tries > 0; --tries) {
    while (blocks > now.blocks_per_sm && is_hopeless(blocks)) --blocks;
    if (blocks <= now.blocks_per_sm) break;
    std::string crowded = limited(".minnctapersm", blocks);
    KILN_TRY(Cubin dense, link_cubin(crowded, target, device, facts.shares_registers));
    if (dense.spill_bytes == 0) return crowd(std::move(crowded), std::move(dense));
    // What spills tells how many registers were short: an estimate, and rather one block more.
    const int needed = std::min(plain.registers, dense.registers + static_cast<int>(dense.stack_bytes / 4));
    blocks = std::min(blocks - 1, with(needed).by_registers + 1);
  }
  return plain;
}

}  // namespace kiln::codegen
