// The text form of a layout, and the pictures that `--emit layout` shows.
#include <fmt/format.h>

#include <cctype>
#include <charconv>

#include "compiler/layout/algebra.h"
#include "support/diag.h"

namespace kiln::layout {

namespace {

constexpr std::string_view kInNames[] = {"register", "lane", "warp", "block", "offset"};
constexpr int64_t kLargestDrawn = 256, kMostColumns = 32, kColumnsOfVectors = 16;

std::string coord_text(const Coord& c, int rank) {
  std::string s = "(";
  for (int d = 0; d < rank; ++d) s += fmt::format("{}{}", d ? "," : "", c[d]);
  return s + ")";
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<LinearLayout> parse() {
    std::vector<int32_t> shape;
    if (!numbers('[', ']', shape)) return bad("a shape such as [128, 64]");
    if (shape.size() > kMaxDims) return bad(fmt::format("at most {} dimensions", kMaxDims));
    for (int32_t d : shape)
      if (d <= 0 || (d & (d - 1)) != 0) return bad("dimensions that are powers of two");
    LinearLayout layout(shape);
    int previous = -1;
    for (skip(); at_ < text_.size(); skip()) {
      int in = word();
      if (in < 0) return bad("register, lane, warp, block or offset");
      if (in <= previous) return bad("each group once, in the order register, lane, warp, block, offset");
      previous = in;
      int count = 0;
      for (skip(); at_ < text_.size() && text_[at_] == '('; skip(), ++count) {
        std::vector<int32_t> c;
        if (!numbers('(', ')', c) || c.size() != shape.size()) return bad("a coordinate with one number per dimension");
        Coord basis;
        for (size_t d = 0; d < c.size(); ++d) {
          if (c[d] < 0 || c[d] >= shape[d]) return bad("coordinates inside the shape");
          basis[static_cast<int>(d)] = c[d];
        }
        if (layout.bits(static_cast<In>(in)) >= 24) return bad("at most 24 bits in a group");
        layout.push(static_cast<In>(in), basis);
      }
      if (count == 0) return bad("at least one coordinate in a group");
    }
    return layout;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool numbers(char open, char close, std::vector<int32_t>& out) {
    if (!take(open)) return false;
    if (take(close)) return true;
    while (true) {
      skip();
      int32_t n = 0;
      auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), n);
      if (error != std::errc{}) return false;
      at_ = static_cast<size_t>(end - text_.data());
      out.push_back(n);
      if (take(close)) return true;
      if (!take(',')) return false;
    }
  }
  int word() {
    for (int i = 0; i < kNumIns; ++i)
      if (text_.substr(at_).starts_with(kInNames[i])) {
        at_ += kInNames[i].size();
        return i;
      }
    return -1;
  }
  Diagnostic bad(std::string_view expected) const {
    return error(ErrorKind::kSyntax, "in a layout, expected {} at '{}'", expected, text_.substr(at_, 20));
  }

  std::string_view text_;
  size_t at_ = 0;
};

/// "w1.t5:r3" of the holder whose free bits are 0; warps are left out when there is one.
std::string holder_text(const LinearLayout& layout, const Coord& holder) {
  std::string s;
  if (layout.bits(In::kOffset)) return fmt::format("{}", holder[static_cast<int>(In::kOffset)]);
  if (layout.bits(In::kBlock)) s += fmt::format("b{}.", holder[static_cast<int>(In::kBlock)]);
  if (layout.bits(In::kWarp)) s += fmt::format("w{}.", holder[static_cast<int>(In::kWarp)]);
  return s + fmt::format("{}:{}", holder[static_cast<int>(In::kLane)], holder[static_cast<int>(In::kRegister)]);
}

int64_t columns_of(const LinearLayout& layout) { return layout.rank() ? layout.shape().back() : 1; }

/// Elements in row-major order, one line per row; a vector in lines of 16.
std::string draw_table(const LinearLayout& layout) {
  LinearLayout inverse = invert(layout);
  int64_t columns = layout.rank() == 1 ? std::min<int64_t>(layout.shape()[0], kColumnsOfVectors) : columns_of(layout);
  std::vector<std::string> cells;
  size_t width = 0;
  for (int64_t i = 0; i < num_elements(layout); ++i) {
    cells.push_back(holder_text(layout, inverse.apply(In::kOffset, static_cast<uint32_t>(i))));
    width = std::max(width, cells.back().size());
  }
  std::string s =
      layout.bits(In::kOffset) ? "each element's offset\n" : "each element's holder, [warp.]lane:register\n";
  for (int64_t i = 0; i < num_elements(layout); ++i)
    s += fmt::format("{:>{}}{}", cells[static_cast<size_t>(i)], width, (i + 1) % columns == 0 ? "\n" : " ");
  return s;
}

}  // namespace

std::string to_string(const LinearLayout& layout) {
  std::string s = fmt::format("[{}]", fmt::join(layout.shape(), ", "));
  for (int i = 0; i < kNumIns; ++i) {
    auto bases = layout.bases(static_cast<In>(i));
    if (bases.empty()) continue;
    s += fmt::format(" {} ", kInNames[i]);
    for (const Coord& c : bases) s += coord_text(c, layout.rank());
  }
  return s;
}

Result<LinearLayout> parse_layout(std::string_view text) { return Parser(text).parse(); }

std::string draw(const LinearLayout& layout) {
  std::string s = fmt::format("tile [{}]: {} registers x {} lanes x {} warps\n", fmt::join(layout.shape(), ", "),
                              layout.num_registers(), layout.size(In::kLane), layout.size(In::kWarp));
  if (layout.bits(In::kOffset)) s = fmt::format("tile [{}]\n", fmt::join(layout.shape(), ", "));
  for (int i = 0; i < kNumIns; ++i) {
    auto bases = layout.bases(static_cast<In>(i));
    for (size_t bit = 0; bit < bases.size(); ++bit)
      s += fmt::format("  {:<8} +{:<4} -> {}\n", kInNames[i], 1 << bit,
                       bases[bit] == Coord{} ? "copy" : coord_text(bases[bit], layout.rank()));
  }
  bool fits = num_elements(layout) <= kLargestDrawn && (layout.rank() == 1 || columns_of(layout) <= kMostColumns);
  if (fits && is_surjective(layout)) s += draw_table(layout);
  return s;
}

}  // namespace kiln::layout
