#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include "runtime/files/zip.h"

namespace kiln::runtime {

namespace {

static_assert(std::endian::native == std::endian::little, "fields are written as they lie in memory");

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kEnd64Locator = 0x07064b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr uint64_t kIn64 = 0xffffffff;  // what a 32-bit field says whose value is in the 64-bit extra
constexpr uint16_t kExtra64 = 1;        // that extra's id
constexpr uint16_t kVersion64 = 45;     // of the format, with 64-bit fields
constexpr uint16_t kUtf8Names = 1 << 11, kEncrypted = 1;
constexpr uint16_t kFirstDate = 1 << 5 | 1;  // 1 January 1980: the same tensors give the same file
constexpr uint16_t kDeflated = 8;
constexpr uint64_t kMostDeflated = 1032;  // bytes that one of deflate's becomes
constexpr size_t kLargestDirectory = 64 << 20;

/// The CRC-32 of zip, eight bytes at a time (Intel's slicing-by-8).
class Crc32 {
 public:
  void add(const void* data, size_t bytes) {
    static const auto tables = make_tables();
    const auto* p = static_cast<const unsigned char*>(data);
    uint32_t c = ~value_;
    for (; bytes >= 8; p += 8, bytes -= 8) {
      uint32_t low, high;
      std::memcpy(&low, p, 4);
      std::memcpy(&high, p + 4, 4);
      low ^= c;
      c = tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^ tables[5][low >> 16 & 255] ^ tables[4][low >> 24] ^
          tables[3][high & 255] ^ tables[2][high >> 8 & 255] ^ tables[1][high >> 16 & 255] ^ tables[0][high >> 24];
    }
    for (; bytes > 0; ++p, --bytes) c = tables[0][(c ^ *p) & 255] ^ c >> 8;
    value_ = ~c;
  }
  uint32_t value() const { return value_; }

 private:
  static std::array<std::array<uint32_t, 256>, 8> make_tables() {
    std::array<std::array<uint32_t, 256>, 8> t;
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = c & 1 ? 0xedb88320 ^ c >> 1 : c >> 1;
      t[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; ++i)
      for (size_t k = 1; k < 8; ++k) t[k][i] = t[0][t[k - 1][i] & 255] ^ t[k - 1][i] >> 8;
    return t;
  }

  uint32_t value_ = 0;
};

/// Fields one after the other.
class Fields {
 public:
  template <class T>
  Fields& put(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Fields& put(std::string_view text) {
    text_ += text;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Takes fields from the front of a text that is long enough for them.
template <class T>
T take(std::string_view& text) {
  T value;
  text.copy(reinterpret_cast<char*>(&value), sizeof value);
  text.remove_prefix(sizeof value);
  return value;
}

std::string local_header(const ZipEntry& e) {
  Fields f;
  f.put(kLocalHeader).put(kVersion64).put(kUtf8Names).put(e.method).put(uint16_t{0}).put(kFirstDate).put(e.crc);
  f.put(uint32_t{kIn64}).put(uint32_t{kIn64}).put(static_cast<uint16_t>(e.name.size())).put(uint16_t{20});
  f.put(std::string_view(e.name)).put(kExtra64).put(uint16_t{16}).put(e.bytes).put(e.stored);
  return f.text();
}

std::string central_header(const ZipEntry& e) {
  Fields f;
  f.put(kCentralHeader).put(kVersion64).put(kVersion64).put(kUtf8Names).put(e.method).put(uint16_t{0}).put(kFirstDate);
  f.put(e.crc).put(uint32_t{kIn64}).put(uint32_t{kIn64}).put(static_cast<uint16_t>(e.name.size())).put(uint16_t{28});
  f.put(uint16_t{0}).put(uint16_t{0}).put(uint16_t{0}).put(uint32_t{0}).put(uint32_t{kIn64});
  f.put(std::string_view(e.name)).put(kExtra64).put(uint16_t{24}).put(e.bytes).put(e.stored).put(e.header);
  return f.text();
}

struct Directory {
  uint64_t begin = 0, bytes = 0, entries = 0;
};

Result<Directory> find_directory(const InputFile& file, std::string_view kind) {
  const auto no_archive = [&] { return file.error(ErrorKind::kIo, "it is no {}: a zip archive ends otherwise", kind); };
  // The end is followed by a comment of at most 64 KiB.
  const uint64_t tail = std::min<uint64_t>(file.size(), kEndBytes + 0xffff);
  KILN_TRY(std::string text, file.text(file.size() - tail, tail));
  size_t at = tail < kEndBytes ? std::string::npos : tail - kEndBytes;
  for (; at != std::string::npos; at = at == 0 ? std::string::npos : at - 1) {
    std::string_view rest = std::string_view(text).substr(at);
    uint16_t comment;
    std::memcpy(&comment, rest.data() + kEndBytes - 2, 2);
    if (take<uint32_t>(rest) == kEnd && kEndBytes + comment == tail - at) break;
  }
  if (at == std::string::npos) return no_archive();
  std::string_view end = std::string_view(text).substr(at + 8);
  Directory out;
  take<uint16_t>(end);  // entries on this disk
  out.entries = take<uint16_t>(end);
  out.bytes = take<uint32_t>(end);
  out.begin = take<uint32_t>(end);
  uint64_t limit = file.size() - tail + at;
  if (out.entries == 0xffff || out.bytes == kIn64 || out.begin == kIn64) {
    if (limit < kLocatorBytes) return no_archive();
    KILN_TRY(std::string locator_text, file.text(limit - kLocatorBytes, kLocatorBytes));
    std::string_view locator = locator_text;
    if (take<uint32_t>(locator) != kEnd64Locator) return no_archive();
    take<uint32_t>(locator);  // its disk
    const auto place = take<uint64_t>(locator);
    if (place > limit - kLocatorBytes || limit - kLocatorBytes - place < kEnd64Bytes) return no_archive();
    KILN_TRY(std::string end64_text, file.text(place, kEnd64Bytes));
    std::string_view end64 = end64_text;
    if (take<uint32_t>(end64) != kEnd64) return no_archive();
    end64.remove_prefix(8 + 2 + 2 + 4 + 4 + 8);  // its length, versions, disks, entries on this disk
    out.entries = take<uint64_t>(end64);
    out.bytes = take<uint64_t>(end64);
    out.begin = take<uint64_t>(end64);
    limit = place;
  }
  if (out.begin > limit || out.bytes > limit - out.begin) return file.error(ErrorKind::kIo, "its directory is damaged");
  if (out.bytes > kLargestDirectory)
    return file.error(ErrorKind::kUnsupported, "its directory has {} bytes", out.bytes);
  return out;
}

/// One entry of the directory, which starts behind it afterwards; false: it is damaged.
bool take_entry(std::string_view& directory, ZipEntry& e) {
  if (directory.size() < kCentralBytes || take<uint32_t>(directory) != kCentralHeader) return false;
  directory.remove_prefix(4);  // versions
  e.flags = take<uint16_t>(directory);
  e.method = take<uint16_t>(directory);
  directory.remove_prefix(4);  // date
  e.crc = take<uint32_t>(directory);
  e.stored = take<uint32_t>(directory);
  e.bytes = take<uint32_t>(directory);
  const size_t name = take<uint16_t>(directory), extra_bytes = take<uint16_t>(directory),
               comment = take<uint16_t>(directory);
  directory.remove_prefix(8);  // disk, attributes
  e.header = take<uint32_t>(directory);
  if (directory.size() < name + extra_bytes + comment) return false;
  e.name = directory.substr(0, name);
  std::string_view extra = directory.substr(name, extra_bytes);
  directory.remove_prefix(name + extra_bytes + comment);
  while (extra.size() >= 4) {
    const auto id = take<uint16_t>(extra);
    const size_t bytes = take<uint16_t>(extra);
    if (bytes > extra.size()) return false;
    std::string_view fields = extra.substr(0, bytes);
    extra.remove_prefix(bytes);
    if (id != kExtra64) continue;
    // Only those are there whose 32-bit field says so, in this order.
    for (uint64_t* field : {&e.bytes, &e.stored, &e.header}) {
      if (*field != kIn64) continue;
      if (fields.size() < 8) return false;
      *field = take<uint64_t>(fields);
    }
  }
  return true;
}

/// Where its bytes begin, from the header before them, checked against the limits of the file.
Status find_bytes(const InputFile& file, const Directory& directory, ZipEntry& e) {
  const auto damaged = [&] { return file.error(ErrorKind::kIo, "the entry '{}' lies outside of the archive", e.name); };
  if (e.header > directory.begin || directory.begin - e.header < kLocalBytes) return damaged();
  KILN_TRY(std::string text, file.text(e.header, kLocalBytes));
  std::string_view fields = text;
  if (take<uint32_t>(fields) != kLocalHeader) return damaged();
  fields.remove_prefix(22);
  e.begin = e.header + kLocalBytes + take<uint16_t>(fields);
  e.begin += take<uint16_t>(fields);
  if (e.begin > directory.begin || e.stored > directory.begin - e.begin) return damaged();
  return {};
}

Status check_crc(const InputFile& file, const ZipEntry& e) {
  Crc32 crc;
  std::vector<char> piece(std::min<uint64_t>(e.bytes, 1 << 20));
  for (uint64_t done = 0; done < e.bytes;) {
    const size_t n = std::min<uint64_t>(piece.size(), e.bytes - done);
    KILN_CHECK_OK(file.read(e.begin + done, piece.data(), n));
    crc.add(piece.data(), n);
    done += n;
  }
  if (crc.value() != e.crc) return file.error(ErrorKind::kIo, "'{}' is damaged: its checksum differs", e.name);
  return {};
}

/// What a deflated entry holds, as a file in memory.
Result<InputFile> inflated(const InputFile& file, const ZipEntry& e) {
  const auto damaged = [&] { return file.error(ErrorKind::kIo, "'{}' is damaged", e.name); };
  const int fd = ::memfd_create("kiln-zip", MFD_CLOEXEC);
  if (fd < 0) return file.error(ErrorKind::kMemory, "no memory for '{}': {}", e.name, std::strerror(errno));
  InputFile out = InputFile::of(file.path(), fd, e.bytes);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return file.error(ErrorKind::kMemory, "no memory for '{}'", e.name);
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  std::vector<char> in(1 << 16), piece(1 << 18);
  Crc32 crc;
  uint64_t taken = 0, made = 0;
  for (int state = Z_OK; state != Z_STREAM_END;) {
    if (stream.avail_in == 0) {
      const size_t n = std::min<uint64_t>(in.size(), e.stored - taken);
      if (n == 0) return damaged();
      KILN_CHECK_OK(file.read(e.begin + taken, in.data(), n));
      taken += n;
      stream.next_in = reinterpret_cast<Bytef*>(in.data());
      stream.avail_in = static_cast<uInt>(n);
    }
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    if (state != Z_OK && state != Z_STREAM_END) return damaged();
    std::string_view left(piece.data(), piece.size() - stream.avail_out);
    made += left.size();
    if (made > e.bytes) return damaged();
    crc.add(left.data(), left.size());
    while (!left.empty()) {
      const ssize_t n = ::write(fd, left.data(), left.size());
      if (n < 0 && errno != EINTR)
        return file.error(ErrorKind::kMemory, "no memory for '{}': {}", e.name, std::strerror(errno));
      left.remove_prefix(static_cast<size_t>(std::max<ssize_t>(0, n)));
    }
  }
  if (made != e.bytes) return damaged();
  if (crc.value() != e.crc) return file.error(ErrorKind::kIo, "'{}' is damaged: its checksum differs", e.name);
  return out;
}

}  // namespace

Result<std::vector<ZipEntry>> read_zip(const InputFile& file, std::string_view kind) {
  KILN_TRY(Directory directory, find_directory(file, kind));
  KILN_TRY(std::string text, file.text(directory.begin, directory.bytes));
  std::string_view rest = text;
  std::vector<ZipEntry> entries;
  std::set<std::string> names;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    ZipEntry e;
    if (!take_entry(rest, e)) return file.error(ErrorKind::kIo, "its directory is damaged at entry {}", i + 1);
    if (!names.insert(e.name).second) return file.error(ErrorKind::kIo, "it has two entries '{}'", e.name);
    if (e.flags & kEncrypted) return file.error(ErrorKind::kUnsupported, "its entry '{}' is encrypted", e.name);
    if (e.method != 0 && e.method != kDeflated)
      return with_note(
          file.error(ErrorKind::kUnsupported, "its entry '{}' is compressed by method {}, which Kiln does not read",
                     e.name, e.method),
          "help: NumPy's savez and savez_compressed write what Kiln reads");
    const bool sizes_fit = e.method == 0 ? e.stored == e.bytes : e.bytes / kMostDeflated <= e.stored;
    if (!sizes_fit) return file.error(ErrorKind::kIo, "the sizes of its entry '{}' differ", e.name);
    KILN_CHECK_OK(find_bytes(file, directory, e));
    entries.push_back(std::move(e));
  }
  // Entries that share bytes would turn a small file into much memory.
  std::vector<const ZipEntry*> placed;
  for (const ZipEntry& e : entries) placed.push_back(&e);
  std::sort(placed.begin(), placed.end(), [](const ZipEntry* a, const ZipEntry* b) { return a->begin < b->begin; });
  for (size_t i = 1; i < placed.size(); ++i)
    if (placed[i - 1]->begin + placed[i - 1]->stored > placed[i]->header)
      return file.error(ErrorKind::kIo, "its entries '{}' and '{}' overlap", placed[i - 1]->name, placed[i]->name);
  return entries;
}

Result<ZipContent> ZipContent::open(const InputFile& archive, const ZipEntry& entry) {
  ZipContent out;
  out.archive_ = &archive;
  out.bytes_ = entry.bytes;
  if (entry.method == 0) {
    out.begin_ = entry.begin;
    KILN_CHECK_OK(check_crc(archive, entry));
  } else {
    KILN_TRY(InputFile made, inflated(archive, entry));
    out.inflated_.emplace(std::move(made));
  }
  return out;
}

Result<ZipWriter> ZipWriter::open(const std::string& path) {
  KILN_TRY(FileWriter file, FileWriter::open(path));
  return ZipWriter(std::move(file));
}

Status ZipWriter::add(std::string name, std::string_view before, std::string_view bytes) {
  Crc32 crc;
  crc.add(before.data(), before.size());
  crc.add(bytes.data(), bytes.size());
  ZipEntry e;
  e.name = std::move(name);
  e.crc = crc.value();
  e.bytes = e.stored = before.size() + bytes.size();
  e.header = place_;
  const std::string front = local_header(e) + std::string(before);
  KILN_CHECK_OK(file_.write(front));
  KILN_CHECK_OK(file_.write(bytes));
  place_ += front.size() + bytes.size();
  directory_ += central_header(e);
  ++count_;
  return {};
}

Status ZipWriter::finish() {
  const uint64_t bytes = directory_.size();
  Fields end;
  end.put(kEnd64).put(uint64_t{kEnd64Bytes - 12}).put(kVersion64).put(kVersion64).put(uint32_t{0}).put(uint32_t{0});
  end.put(count_).put(count_).put(bytes).put(place_);
  end.put(kEnd64Locator).put(uint32_t{0}).put(place_ + bytes).put(uint32_t{1});
  const auto few = static_cast<uint16_t>(std::min<uint64_t>(count_, 0xffff));
  end.put(kEnd).put(uint16_t{0}).put(uint16_t{0}).put(few).put(few).put(static_cast<uint32_t>(std::min(bytes, kIn64)));
  end.put(static_cast<uint32_t>(std::min(place_, kIn64))).put(uint16_t{0});
  KILN_CHECK_OK(file_.write(directory_ + end.text()));
  return file_.finish();
}

}  // namespace kiln::runtime
