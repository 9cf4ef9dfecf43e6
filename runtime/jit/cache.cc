#include "runtime/jit/cache.h"

#include <algorithm>
#include <chrono>
#include <concepts>

#include "support/diag.h"
#include "support/hash.h"
#include "support/knobs.h"

namespace kiln::runtime {
namespace {

// The number goes up with the format: files of another one are unknown rather than damaged.
constexpr std::string_view kMagic = "kiln kernel 4\n";
// The folder's size is looked at after so many stores, and at a process's first one unless a process did so lately: a
// cache of a gigabyte has tens of thousands of files, and to list them takes longer than to compile a kernel.
constexpr unsigned kStoresPerSweep = 256;
constexpr int64_t kLatelyNs = 10 * 60 * 1'000'000'000LL;
constexpr std::string_view kSweptName = "swept";  // empty; modified when the folder was last looked at

int64_t now_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

// A time to come, by a clock that was set back, is no reason to wait for it.
bool swept_lately(const TrustedFolder& folder) {
  const auto swept = folder.modified_ns(std::string(kSweptName));
  const int64_t now = now_ns();
  return swept && *swept <= now && now - *swept < kLatelyNs;
}

class Writer {
 public:
  void number(int64_t v) { bytes_.append(reinterpret_cast<const char*>(&v), sizeof v); }
  void real(double v) { bytes_.append(reinterpret_cast<const char*>(&v), sizeof v); }
  void text(std::string_view v) {
    number(static_cast<int64_t>(v.size()));
    bytes_ += v;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads what Writer wrote; after a read past the end everything is zero and ok() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  int64_t number() { return raw<int64_t>(); }
  double real() { return raw<double>(); }
  std::string_view text() {
    int64_t n = number();
    if (n < 0 || static_cast<uint64_t>(n) > rest_.size()) ok_ = false;
    if (!ok_) return {};
    std::string_view v = rest_.substr(0, static_cast<size_t>(n));
    rest_.remove_prefix(static_cast<size_t>(n));
    return v;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && rest_.empty(); }

 private:
  template <class T>
  T raw() {
    T v{};
    if (rest_.size() < sizeof v) ok_ = false;
    if (!ok_) return T{};
    rest_.copy(reinterpret_cast<char*>(&v), sizeof v);
    rest_.remove_prefix(sizeof v);
    return v;
  }
  std::string_view rest_;
  bool ok_ = true;
};

void write(Writer& w, const HostExpression& e) {
  w.number(static_cast<int64_t>(e.steps.size()));
  for (const HostExpression::Step& s : e.steps)
    w.number(static_cast<int64_t>(s.op)), w.number(static_cast<int64_t>(s.type)), w.number(s.number);
}

void write(Writer& w, const TensorMapRecipe& m) {
  w.text(m.name), w.number(static_cast<int64_t>(m.dtype)), w.number(m.swizzle), w.number(m.stored);
  w.number(static_cast<int64_t>(m.box.size()));
  write(w, m.base);
  for (size_t d = 0; d < m.box.size(); ++d) w.number(m.box[d]), write(w, m.sizes[d]), write(w, m.strides[d]);
}

/// False for what cannot be evaluated with that many parameters.
bool read(Reader& r, HostExpression& e, int num_params) {
  // Whatever length a damaged list claims, r.ok() ends it with the bytes.
  for (int64_t n = r.number(); n > 0 && r.ok(); --n) {
    HostExpression::Step s;
    s.op = static_cast<HostOp>(r.number()), s.type = static_cast<DType>(r.number()), s.number = r.number();
    e.steps.push_back(s);
  }
  return r.ok() && is_well_formed(e, num_params);
}

bool read(Reader& r, TensorMapRecipe& m, int num_params) {
  m.name = r.text();
  const int64_t dtype = r.number();
  if (dtype < 0 || dtype >= kNumDTypes) return false;
  m.dtype = static_cast<DType>(dtype), m.swizzle = static_cast<int32_t>(r.number()), m.stored = r.number();
  int64_t rank = r.number();
  if (!read(r, m.base, num_params)) return false;
  for (; rank > 0 && r.ok(); --rank) {
    m.box.push_back(static_cast<int32_t>(r.number()));
    if (!read(r, m.sizes.emplace_back(), num_params) || !read(r, m.strides.emplace_back(), num_params)) return false;
  }
  return r.ok();
}

// The fields of KernelInfo.
void write(Writer& w, std::integral auto v) { w.number(static_cast<int64_t>(v)); }
void write(Writer& w, const std::string& v) { w.text(v); }
void write(Writer& w, const PhaseTime& v) { w.text(v.name), w.real(v.ms); }
template <class T>
void write(Writer& w, const std::vector<T>& list) {
  w.number(static_cast<int64_t>(list.size()));
  for (const T& v : list) write(w, v);
}
template <std::integral T>
void read(Reader& r, T& v) {
  v = static_cast<T>(r.number());
}
void read(Reader& r, std::string& v) { v = r.text(); }
void read(Reader& r, PhaseTime& v) { v.name = r.text(), v.ms = r.real(); }
template <class T>
void read(Reader& r, std::vector<T>& list) {
  for (int64_t n = r.number(); n > 0 && r.ok(); --n) read(r, list.emplace_back());
}

// What a launch passes to the kernel, and which code it may choose.
void write_launch(Writer& w, const CompiledKernel& k) {
  w.number(static_cast<int64_t>(k.params.size()));
  for (const KernelParam& p : k.params) {
    KILN_ASSERT(p.type.is_scalar(), "kernel parameter {} is a tile", p.name);
    w.text(p.name), w.number(static_cast<int64_t>(p.type.dtype)), w.number(p.type.pointer), w.number(p.written);
  }
  w.number(static_cast<int64_t>(k.tensor_maps.size()));
  for (const TensorMapRecipe& m : k.tensor_maps) write(w, m);
  w.number(k.roomy.has_value());
  if (k.roomy) w.text(k.roomy->cubin), w.number(k.roomy->registers), w.number(k.roomy->blocks_per_sm);
}

bool read_launch(Reader& r, CompiledKernel& k) {
  for (int64_t n = r.number(); n > 0 && r.ok(); --n) {
    KernelParam p;
    p.name = r.text();
    const int64_t dtype = r.number();
    if (dtype < 0 || dtype >= kNumDTypes) return false;
    p.type = r.number() ? ir::pointer_type(static_cast<DType>(dtype)) : ir::scalar_type(static_cast<DType>(dtype));
    p.written = r.number() != 0;
    k.params.push_back(std::move(p));
  }
  for (int64_t n = r.number(); n > 0 && r.ok(); --n)
    if (!read(r, k.tensor_maps.emplace_back(), static_cast<int>(k.params.size()))) return false;
  if (r.number()) {
    RoomyCode& roomy = k.roomy.emplace();
    read(r, roomy.cubin), read(r, roomy.registers), read(r, roomy.blocks_per_sm);
  }
  return r.ok();
}

// magic, checksum of the rest, key, kernel
std::string pack(const std::string& key, const CompiledKernel& kernel) {
  Writer body;
  body.text(key);
  body.text(serialize(kernel));
  std::string content = body.take();
  return std::string(kMagic) + hash128(content).hex() + content;
}

struct Unpacked {
  std::string_view key;
  std::string_view kernel;  // for deserialize()
};

/// nullopt for what pack() did not write.
std::optional<Unpacked> unpack(std::string_view file) {
  if (!file.starts_with(kMagic)) return std::nullopt;
  file.remove_prefix(kMagic.size());
  // hash128 has 32 digits.
  if (file.size() < 32 || hash128(file.substr(32)).hex() != file.substr(0, 32)) return std::nullopt;
  Reader reader(file.substr(32));
  Unpacked u;
  u.key = reader.text();
  u.kernel = reader.text();
  if (!reader.at_end()) return std::nullopt;
  return u;
}

}  // namespace

std::string serialize(const CompiledKernel& k) {
  Writer w;
  for_each_field(k, [&](const KernelField& field, const auto& value) {
    if (field.has('K')) write(w, value);
  });
  write_launch(w, k);
  return w.take();
}

std::optional<CompiledKernel> deserialize(std::string_view bytes) {
  Reader r(bytes);
  CompiledKernel k;
  for_each_field(k, [&](const KernelField& field, auto& value) {
    if (field.has('K')) read(r, value);
  });
  if (!read_launch(r, k) || !r.at_end()) return std::nullopt;
  return k;
}

std::string code_hash(const CompiledKernel& k) {
  Writer w;
  const bool on_host = !k.object.empty();
  for_each_field(k, [&](const KernelField& field, const auto& value) {
    if (field.has('C') && !(on_host && field.name == "num_warps")) write(w, value);  // the CPU has no warps
  });
  write_launch(w, k);
  return hash128(w.take()).hex();
}

Result<TrustedFolder> DiskCache::open_folder() {
  if (!knob_on(Knob::kCache)) return error(ErrorKind::kIo, "the kernel cache is off (KILN_CACHE=0)");
  KILN_TRY(const std::string root, cache_directory());
  return TrustedFolder::open(root + "/kernels", /*create=*/true);
}

std::optional<TrustedFolder> DiskCache::folder() {
  if (!knob_on(Knob::kCache)) return std::nullopt;
  auto opened = open_folder();
  if (!opened.ok()) return warn_once(opened.error().message), std::nullopt;
  return *std::move(opened);
}

void DiskCache::warn_once(const std::string& sentence) {
  if (!warned_.exchange(true))
    warn_(sentence +
          "; compiled kernels are not kept (KILN_CACHE_DIR names another folder, KILN_CACHE=0 turns the "
          "cache off)");
}

std::optional<CompiledKernel> DiskCache::find(const std::string& key) {
  auto kept = folder();
  if (!kept) return std::nullopt;
  const std::string name = hash128(key).hex();
  auto file = kept->read(name);
  if (!file.ok()) return warn_once(file.error().message), std::nullopt;
  if (!*file) return std::nullopt;
  const auto found = unpack(**file);
  // A file's name is a hash; the key in it decides.
  if (!found || found->key != key) return std::nullopt;
  auto kernel = deserialize(found->kernel);
  if (kernel) kept->touch(name);  // last used now: remove_old starts with the oldest
  return kernel;
}

void DiskCache::store(const std::string& key, const CompiledKernel& kernel) {
  auto kept = folder();
  if (!kept) return;
  if (Status kept_file = keep(*kept, key, pack(key, kernel)); !kept_file.ok()) warn_once(kept_file.error().message);
}

Status DiskCache::keep(const TrustedFolder& kept, const std::string& key, std::string_view file) {
  KILN_CHECK_OK(kept.write(hash128(key).hex(), file));
  const unsigned before = stores_++;
  if (before % kStoresPerSweep == 0 && (before > 0 || !swept_lately(kept))) remove_old(kept);
  return {};
}

Result<std::vector<std::string>> DiskCache::export_files() {
  KILN_TRY(const TrustedFolder kept, open_folder());
  KILN_TRY(std::vector<FileEntry> entries, kept.list());
  std::ranges::sort(entries, std::greater(), &FileEntry::modified_ns);
  std::vector<std::string> files;
  for (const FileEntry& entry : entries) {
    auto file = kept.read(entry.path);
    if (file.ok() && *file && unpack(**file)) files.push_back(**std::move(file));
    // Files of another version of Kiln are passed over.
  }
  return files;
}

Status DiskCache::import_file(std::string_view file) {
  const auto found = unpack(file);
  if (!found || !deserialize(found->kernel))
    return error(ErrorKind::kValue, "a kernel in it is damaged, or of another version of Kiln");
  KILN_TRY(const TrustedFolder kept, open_folder());
  return keep(kept, std::string(found->key), file);
}

void DiskCache::remove_old(const TrustedFolder& kept) {
  // First, so that processes which start together do not all do it.
  if (Status stamp = kept.write(std::string(kSweptName), ""); !stamp.ok()) return warn_once(stamp.error().message);
  auto limit = knob_bytes(Knob::kCacheLimit);
  if (!limit.ok()) return warn_once(limit.error().message);
  auto files = kept.list();
  if (!files.ok()) return warn_once(files.error().message);
  const int64_t now = now_ns();
  constexpr int64_t kHour = 3'600'000'000'000;
  int64_t total = 0;
  for (FileEntry& f : *files) {
    // A writer that died left its temporary file.
    // No write takes an hour.
    if (f.path.ends_with(".tmp") && now - f.modified_ns > kHour && kept.remove(f.path).ok()) f.bytes = 0;
    total += f.bytes;
  }
  if (total <= limit->value_or(INT64_MAX)) return;
  std::sort(files->begin(), files->end(),
            [](const FileEntry& a, const FileEntry& b) { return a.modified_ns < b.modified_ns; });
  int64_t goal = **limit / 5 * 4;  // well below, so that the next store does not sweep for one file
  for (const FileEntry& f : *files) {
    if (total <= goal) break;
    if (f.path.ends_with(".tmp") || f.path == kSweptName) continue;
    if (kept.remove(f.path).ok()) total -= f.bytes;
  }
}

}  // namespace kiln::runtime
