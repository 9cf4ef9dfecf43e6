#include "runtime/files/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

namespace kiln::runtime {

namespace {

constexpr size_t kLongestJson = 100'000'000;  // of the reference implementation
constexpr std::string_view kMetadataKey = "__metadata__";

struct DTypeName {
  DType dtype;
  std::string_view name;
};
constexpr DTypeName kDTypeNames[] = {
    {DType::kI1, "BOOL"},   {DType::kI8, "I8"},          {DType::kI16, "I16"},        {DType::kI32, "I32"},
    {DType::kI64, "I64"},   {DType::kU8, "U8"},          {DType::kU16, "U16"},        {DType::kU32, "U32"},
    {DType::kU64, "U64"},   {DType::kF8E4M3, "F8_E4M3"}, {DType::kF8E5M2, "F8_E5M2"}, {DType::kF16, "F16"},
    {DType::kBF16, "BF16"}, {DType::kF32, "F32"},        {DType::kF64, "F64"},
};
static_assert(std::size(kDTypeNames) == kNumDTypes - 1);  // the format has all but f8e4b15

struct Row {
  std::string name, dtype;
  std::vector<uint64_t> shape, offsets;
};

/// Takes the header as it is parsed, and stops at what the format does not have: a header of 100 MB that is something
/// else makes no tree in memory.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<Row> rows;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::string problem;

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t v) override { return unexpected(fmt::format("{}", v)); }
  bool number_float(number_float_t, const string_t& text) override { return unexpected(text); }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool number_unsigned(number_unsigned_t v) override {
    if (state_ != State::kList) return unexpected(fmt::format("{}", v));
    if (list_->size() == kMostDimensions)
      return fail(fmt::format("tensor '{}' has too many dimensions", rows.back().name));
    list_->push_back(v);
    return true;
  }
  bool string(string_t& v) override {
    if (state_ == State::kTexts) {
      metadata.emplace_back(key_, std::move(v));
    } else if (state_ == State::kTensor && key_ == "dtype") {
      rows.back().dtype = std::move(v);
    } else {
      return unexpected("a string");
    }
    return true;
  }
  bool start_object(size_t) override {
    if (state_ == State::kFile) return state_ = State::kTensors, true;
    if (state_ != State::kTensors) return unexpected("an object");
    state_ = key_ == kMetadataKey ? State::kTexts : State::kTensor;
    keys_.clear();
    if (state_ == State::kTensor) rows.push_back({key_, {}, {}, {}});
    return true;
  }
  bool key(string_t& v) override {
    auto& keys = state_ == State::kTensors ? names_ : keys_;
    // Parsers differ in which of two equal keys they keep.
    if (!keys.insert(v).second) return fail(fmt::format("'{}' comes twice", v));
    key_ = std::move(v);
    if (state_ == State::kTensor && key_ != "dtype" && key_ != "shape" && key_ != "data_offsets")
      return fail(fmt::format("tensor '{}' has a field '{}', which the format has not", rows.back().name, key_));
    return true;
  }
  bool end_object() override {
    if (state_ == State::kTensor && keys_.size() != 3)
      return fail(fmt::format("tensor '{}' lacks one of dtype, shape and data_offsets", rows.back().name));
    state_ = state_ == State::kTensors ? State::kDone : State::kTensors;
    return true;
  }
  bool start_array(size_t) override {
    if (state_ != State::kTensor || key_ == "dtype") return unexpected("a list");
    list_ = key_ == "shape" ? &rows.back().shape : &rows.back().offsets;
    state_ = State::kList;
    return true;
  }
  bool end_array() override { return state_ = State::kTensor, true; }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception& e) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error while …"
    std::string_view what = e.what();
    if (const size_t colon = what.find(": "); colon != std::string_view::npos) what.remove_prefix(colon + 2);
    return fail(fmt::format("no JSON at byte {}: {}", at, what.substr(0, 200)));
  }

 private:
  enum class State { kFile, kTensors, kTensor, kTexts, kList, kDone };
  bool fail(std::string what) { return problem = std::move(what), false; }
  bool unexpected(std::string_view what) {
    return fail(state_ == State::kFile ? fmt::format("{} in the place of an object", what)
                                       : fmt::format("{} in the place of what belongs to '{}'", what, key_));
  }

  State state_ = State::kFile;
  std::string key_;
  std::set<std::string> names_, keys_;
  std::vector<uint64_t>* list_ = nullptr;
};

struct Placed {
  const Row* row;
  DType dtype;
  std::vector<int64_t> shape;
};

Result<Placed> check_row(const InputFile& file, const Row& row, uint64_t data_bytes) {
  Placed out{&row, {}, {}};
  const auto dtype =
      std::find_if(std::begin(kDTypeNames), std::end(kDTypeNames), [&](auto& n) { return n.name == row.dtype; });
  if (dtype == std::end(kDTypeNames))
    return file.error(ErrorKind::kUnsupported, "tensor '{}': tensors have no dtype {}", row.name, row.dtype);
  out.dtype = dtype->dtype;
  if (row.offsets.size() != 2 || row.offsets[0] > row.offsets[1] || row.offsets[1] > data_bytes)
    return file.error(ErrorKind::kIo, "tensor '{}' lies at [{}], the file has {} bytes of tensors", row.name,
                      fmt::join(row.offsets, ", "), data_bytes);
  std::optional<uint64_t> bytes;
  // Larger ones might be negative as int64.
  if (std::all_of(row.shape.begin(), row.shape.end(), [](uint64_t d) { return d <= uint64_t{1} << 60; })) {
    out.shape.assign(row.shape.begin(), row.shape.end());
    bytes = bytes_of(out.dtype, out.shape);
  }
  if (!bytes || *bytes != row.offsets[1] - row.offsets[0])
    return file.error(ErrorKind::kIo, "tensor '{}' of shape [{}] and dtype {} has {} bytes in the file", row.name,
                      fmt::join(row.shape, ", "), row.dtype, row.offsets[1] - row.offsets[0]);
  return out;
}

/// Each byte belongs to one tensor, as the format asks: so a file has one meaning, and hides nothing.
Status check_places(const InputFile& file, const std::vector<Row>& rows, uint64_t data_bytes) {
  std::vector<const Row*> order;
  for (const Row& r : rows) order.push_back(&r);
  std::sort(order.begin(), order.end(), [](const Row* a, const Row* b) { return a->offsets < b->offsets; });
  uint64_t end = 0;
  for (const Row* r : order) {
    if (r->offsets[0] < end)
      return file.error(ErrorKind::kIo, "tensor '{}' overlaps another, at byte {} of the tensors", r->name,
                        r->offsets[0]);
    if (r->offsets[0] > end) break;
    end = r->offsets[1];
  }
  if (end != data_bytes) return file.error(ErrorKind::kIo, "no tensor has byte {} of the tensors", end);
  return {};
}

/// Fills the reader, and gives the place of the first tensor's bytes.
Result<uint64_t> read_header(const InputFile& file, HeaderReader& header) {
  uint64_t length = 0;
  if (file.size() < sizeof length)
    return file.error(ErrorKind::kIo, "it is no .safetensors file: it has {} bytes", file.size());
  KILN_CHECK_OK(file.read(0, &length, sizeof length));
  // By a difference: a length near 2^64 would overflow the sum.
  if (length > file.size() - sizeof length)
    return file.error(ErrorKind::kIo, "it is no .safetensors file or ends too early: a header of {} bytes, {} follow",
                      length, file.size() - sizeof length);
  if (length > kLongestJson)
    return file.error(ErrorKind::kUnsupported, "a header of {} bytes; the format allows 100 MB", length);
  KILN_TRY(std::string text, file.text(sizeof length, length));
  // As the format asks: blanks may stand behind the header, not before it.
  if (!text.starts_with('{'))
    return file.error(ErrorKind::kIo, "it is no .safetensors file: its header begins without {{");
  if (!nlohmann::json::sax_parse(text, &header)) return file.error(ErrorKind::kIo, "its header: {}", header.problem);
  return sizeof length + length;
}

}  // namespace

Status save_safetensors(const Safetensors& content, const std::string& path) {
  // The data begin with the widest elements, so that each tensor is aligned where a reader maps the file.
  std::vector<size_t> order(content.tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return size_of(content.tensors[a].tensor.dtype()) > size_of(content.tensors[b].tensor.dtype());
  });
  std::vector<uint64_t> begin(order.size());
  uint64_t end = 0;
  for (size_t i : order) {
    begin[i] = end;
    end += static_cast<uint64_t>(content.tensors[i].tensor.numel() * size_of(content.tensors[i].tensor.dtype()));
  }
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!content.metadata.empty()) {
    auto& texts = header[std::string(kMetadataKey)] = nlohmann::ordered_json::object();
    for (const auto& [key, text] : content.metadata) texts[key] = text;
  }
  std::set<std::string_view> names = {kMetadataKey};
  for (size_t i = 0; i < content.tensors.size(); ++i) {
    const auto& [name, tensor] = content.tensors[i];
    if (!names.insert(name).second)
      return name == kMetadataKey ? error(ErrorKind::kValue, "{}: '{}' is no name for a tensor", path, name)
                                  : error(ErrorKind::kValue, "{}: two tensors are named '{}'", path, name);
    const auto dtype = std::find_if(std::begin(kDTypeNames), std::end(kDTypeNames),
                                    [&, wanted = tensor.dtype()](auto& n) { return n.dtype == wanted; });
    if (dtype == std::end(kDTypeNames))
      return error(ErrorKind::kUnsupported, "{}: .safetensors files have no {}", path, kiln::name(tensor.dtype()));
    const auto bytes = static_cast<uint64_t>(tensor.numel() * size_of(tensor.dtype()));
    header[name] = {{"dtype", dtype->name},
                    {"shape", std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end())},
                    {"data_offsets", {begin[i], begin[i] + bytes}}};
  }
  // Bytes of a name that are no UTF-8 are replaced; dump() would throw.
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  // Blanks, so that the tensors begin at a multiple of 8 bytes.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kLongestJson)
    return error(ErrorKind::kUnsupported, "{}: a header of {} bytes; the format allows 100 MB", path, text.size());
  const uint64_t length = text.size();
  KILN_TRY(FileWriter file, FileWriter::open(path));
  KILN_CHECK_OK(file.write({reinterpret_cast<const char*>(&length), sizeof length}));
  KILN_CHECK_OK(file.write(text));
  for (size_t i : order) KILN_CHECK_OK(write_elements(file, content.tensors[i].tensor));
  return file.finish();
}

Result<std::vector<std::pair<std::string, std::string>>> load_safetensors_metadata(const std::string& path) {
  KILN_TRY(InputFile file, InputFile::open(path));
  HeaderReader header;
  KILN_TRY([[maybe_unused]] const uint64_t data, read_header(file, header));
  return std::move(header.metadata);
}

Result<Safetensors> load_safetensors(const Device& device, const std::string& path) {
  KILN_TRY(InputFile file, InputFile::open(path));
  HeaderReader header;
  KILN_TRY(const uint64_t data, read_header(file, header));
  const uint64_t data_bytes = file.size() - data;
  std::vector<Placed> placed;
  for (const Row& row : header.rows) {
    KILN_TRY(Placed p, check_row(file, row, data_bytes));
    placed.push_back(std::move(p));
  }
  KILN_CHECK_OK(check_places(file, header.rows, data_bytes));
  Safetensors out;
  out.metadata = std::move(header.metadata);
  for (const Placed& p : placed) {
    KILN_TRY(Tensor t, file.tensor(device, p.dtype, p.shape, data + p.row->offsets[0]));
    out.tensors.push_back({p.row->name, std::move(t)});
  }
  return out;
}

}  // namespace kiln::runtime
