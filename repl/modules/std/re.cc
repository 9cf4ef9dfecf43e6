// _re: compiled patterns and their matches, which library/re.py makes Python's re of.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <memory>

#include "repl/modules/std/std.h"
#include "repl/script/interp/interp.h"
#include "repl/script/value/text.h"
#include "support/text_width.h"

namespace kiln::script {

namespace {

class Regex : public Object {
 public:
  static inline const KindOf<Regex> kKind{"_re.Regex"};
  Regex() : Object(kKind) {}
  ~Regex() override { pcre2_code_free(code); }
  std::optional<Value> attribute(Interp& in, std::string_view name) override {
    if (name == "groups") return Value::integer(static_cast<int64_t>(groups));
    if (name != "names") return std::nullopt;
    auto dict = make<Dict>();
    uint32_t count = 0, size = 0;
    PCRE2_SPTR table = nullptr;
    pcre2_pattern_info(code, PCRE2_INFO_NAMECOUNT, &count);
    pcre2_pattern_info(code, PCRE2_INFO_NAMEENTRYSIZE, &size);
    pcre2_pattern_info(code, PCRE2_INFO_NAMETABLE, &table);
    // The table is sorted by name; groupindex goes by number.
    for (uint32_t number = 1; number <= groups; ++number)
      for (uint32_t i = 0; i < count; ++i)
        if (const PCRE2_SPTR row = table + size_t{i} * size; (row[0] << 8 | row[1]) == static_cast<int>(number))
          dict->table.set(in, Value::str(reinterpret_cast<const char*>(row + 2)), Value::integer(number));
    return Value(dict);
  }
  pcre2_code* code = nullptr;
  uint32_t groups = 0;
};

/// Writes what Python spells otherwise as PCRE2 does: \Z, \uXXXX and {,n}.
std::string translated(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      const size_t digits = next == 'u' ? 4 : next == 'U' ? 8 : 0;
      if (next == 'Z' && !in_class) {
        out += "\\z";
      } else if (digits && i + digits < pattern.size() &&
                 pattern.substr(i + 1, digits).find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos) {
        out += fmt::format("\\x{{{}}}", pattern.substr(i + 1, digits));
        i += digits;
      } else {
        out += {'\\', next};
      }
      continue;
    }
    if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
      out += c;
      // A bracket that comes first belongs to the class.
      if (i + 1 < pattern.size() && pattern[i + 1] == '^') out += pattern[++i];
      if (i + 1 < pattern.size() && pattern[i + 1] == ']') out += pattern[++i];
      continue;
    } else if (c == '{' && i + 1 < pattern.size() && pattern[i + 1] == ',') {
      out += "{0";
      continue;
    }
    out += c;
  }
  return out;
}

Value compile_pattern(Interp& in, NativeArgs& a) {
  const std::string& pattern = in.to_text(a[0], "the pattern");
  const int64_t flags = in.to_int(a[1], "the flags");
  // Python's values of re.I, re.M, re.S, re.X and re.A.
  struct Row {
    int64_t flag;
    uint32_t option;
  };
  static constexpr Row kFlags[] = {{2, PCRE2_CASELESS}, {8, PCRE2_MULTILINE}, {16, PCRE2_DOTALL}, {64, PCRE2_EXTENDED}};
  uint32_t options = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | (flags & 256 ? 0 : PCRE2_UCP);
  for (const Row& r : kFlags)
    if (flags & r.flag) options |= r.option;
  // PCRE2's verbs at the start of a pattern change its options; Python has none.
  if (pattern.starts_with("(*")) in.fail(ErrorKind::kValue, "nothing to repeat at position 1");
  const std::string text = translated(pattern);
  std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  if (context) pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  auto regex = make<Regex>();
  int code = 0;
  PCRE2_SIZE at = 0;
  regex->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), options, &code, &at, context.get());
  if (!regex->code) {
    std::array<PCRE2_UCHAR, 160> message{};
    pcre2_get_error_message(code, message.data(), message.size());
    in.fail(ErrorKind::kValue, "{} at position {}", reinterpret_cast<const char*>(message.data()),
            count_characters(std::string_view(text).substr(0, at)));
  }
  pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &regex->groups);
  return regex;
}

/// Positions in characters of offsets in bytes, and back.
class Positions {
 public:
  explicit Positions(std::string_view text) : ascii_(count_characters(text) == text.size()), size_(text.size()) {
    if (ascii_) return;
    for (size_t i = 0; i < text.size(); i += character_bytes(text, i)) starts_.push_back(i);
    starts_.push_back(text.size());
  }
  size_t characters() const { return ascii_ ? size_ : starts_.size() - 1; }
  size_t byte(size_t character) const { return ascii_ ? character : starts_[character]; }
  int64_t character(size_t byte) const {
    if (ascii_) return static_cast<int64_t>(byte);
    return std::lower_bound(starts_.begin(), starts_.end(), byte) - starts_.begin();
  }

 private:
  bool ascii_;
  size_t size_;
  std::vector<size_t> starts_;
};

/// scan(regex, text, start, end, mode, limit): ([(before, (start, end, …), (text, …)), …], the text behind the last).
Value scan(Interp& in, NativeArgs& a) {
  auto* regex = a[0].get<Regex>();
  if (!regex) in.fail(ErrorKind::kType, "the pattern is none of re.compile()");
  const std::string& whole = in.to_text(a[1], "the text");
  // A file may have other bytes; PCRE2 reads what it is told to be UTF-8 without looking.
  for (size_t i = 0; i < whole.size();) {
    const Character c = first_character(std::string_view(whole).substr(i));
    if (c.code == 0xFFFD && c.bytes == 1) in.fail(ErrorKind::kValue, "the text is not UTF-8: byte {}", i);
    i += c.bytes;
  }
  const Positions positions(whole);
  const auto n = static_cast<int64_t>(positions.characters());
  const int64_t end = a[3].is_none() ? n : std::clamp<int64_t>(in.to_int(a[3], "endpos"), 0, n);
  const int64_t start = std::max<int64_t>(0, in.to_int(a[2], "pos"));
  const std::string& mode = in.to_text(a[4], "the mode");
  const int64_t limit = in.to_int(a[5], "the limit");  // 0: all matches
  const uint32_t options = mode == "match"       ? PCRE2_ANCHORED
                           : mode == "fullmatch" ? PCRE2_ANCHORED | PCRE2_ENDANCHORED
                                                 : 0;
  std::vector<Value> matches;
  const std::string_view text = std::string_view(whole).substr(0, positions.byte(static_cast<size_t>(end)));
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create_from_pattern(regex->code, nullptr), pcre2_match_data_free);
  if (!data) in.fail(ErrorKind::kMemory, "no memory for a match");
  size_t at = start <= end ? positions.byte(static_cast<size_t>(start)) : text.size() + 1,
         behind = std::min(at, text.size());
  uint32_t again = 0;  // behind an empty match the next one is not empty there
  while (at <= text.size() && (limit == 0 || static_cast<int64_t>(matches.size()) < limit)) {
    in.check_interrupt();
    const int found = pcre2_match(regex->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                  options | again | PCRE2_NO_UTF_CHECK, data.get(), nullptr);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) {
      std::array<PCRE2_UCHAR, 160> message{};
      pcre2_get_error_message(found, message.data(), message.size());
      in.fail_as("RuntimeError", "the pattern takes too long on this text: {}",
                 reinterpret_cast<const char*>(message.data()));
    }
    const PCRE2_SIZE* spans = pcre2_get_ovector_pointer(data.get());
    if (spans[0] > spans[1]) in.fail(ErrorKind::kValue, "a match that ends before it starts (\\K) is not supported");
    std::vector<Value> bounds, texts;
    for (uint32_t g = 0; g <= regex->groups; ++g) {
      const bool set = spans[2 * g] != PCRE2_UNSET;
      for (uint32_t k = 0; k < 2; ++k)
        bounds.push_back(Value::integer(set ? positions.character(spans[2 * g + k]) : -1));
      texts.push_back(set ? Value::str(std::string(text.substr(spans[2 * g], spans[2 * g + 1] - spans[2 * g])))
                          : Value::none());
    }
    matches.push_back(make<Tuple>(std::vector<Value>{Value::str(std::string(text.substr(behind, spans[0] - behind))),
                                                     make<Tuple>(std::move(bounds)), make<Tuple>(std::move(texts))}));
    again = spans[0] == spans[1] ? PCRE2_NOTEMPTY_ATSTART : 0;
    at = behind = spans[1];
  }
  return make<Tuple>(std::vector<Value>{make<List>(std::move(matches)), Value::str(std::string(text.substr(behind)))});
}

constexpr NativeDef kRe[] = {
    {"compile(pattern, flags)", compile_pattern, "a compiled pattern"},
    {"scan(regex, text, start, end, mode, limit)", scan, "its matches, and the text behind them"},
};

}  // namespace

void fill_re(Interp&, ModuleObject& m) { add_functions(m, kRe); }

}  // namespace kiln::script
