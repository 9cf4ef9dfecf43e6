#include "compiler/ir/attrs.h"

#include <fmt/format.h>

#include "support/diag.h"

namespace kiln::ir {

namespace {

constexpr std::string_view kAttrs[] = {
#define KILN_ATTR(e, name, kind) name,
#include "compiler/ir/attrs.def"
};

using namespace attr_kinds;

template <class Kind>
bool holds_kind(const Attr& a) {
  if constexpr (std::is_same_v<Kind, Number>)
    return std::holds_alternative<int64_t>(a) || std::holds_alternative<double>(a);
  else if constexpr (std::is_same_v<Kind, Text>)
    return std::holds_alternative<std::string>(a);
  else if constexpr (std::is_same_v<Kind, Ints>)
    return std::holds_alternative<std::vector<int64_t>>(a);
  else
    return std::holds_alternative<Kind>(a);
}

template <class Kind>
std::span<const Word> words_of_kind() {
  if constexpr (WordSet<Kind>)
    return kWords<Kind>;
  else
    return {};
}

template <class Kind>
std::optional<Attr> parse_as(std::string_view text) {
  if constexpr (WordSet<Kind>)
    if (const auto word = parse_word<Kind>(text)) return Attr(*word);
  return std::nullopt;
}

}  // namespace

std::string_view name(AttrName attr) { return kAttrs[static_cast<size_t>(attr)]; }

std::optional<AttrName> parse_attr_name(std::string_view text) {
  for (size_t i = 0; i < std::size(kAttrs); ++i)
    if (kAttrs[i] == text) return static_cast<AttrName>(i);
  return std::nullopt;
}

bool is_of_kind(AttrName attr, const Attr& value) {
  switch (attr) {
#define KILN_ATTR(e, name, kind) \
  case AttrName::k##e:           \
    return holds_kind<kind>(value);
#include "compiler/ir/attrs.def"
  }
  KILN_UNREACHABLE("attribute");
}

std::span<const Word> words_of(AttrName attr) {
  switch (attr) {
#define KILN_ATTR(e, name, kind) \
  case AttrName::k##e:           \
    return words_of_kind<kind>();
#include "compiler/ir/attrs.def"
  }
  KILN_UNREACHABLE("attribute");
}

std::optional<Attr> parse_word(AttrName attr, std::string_view text) {
  switch (attr) {
#define KILN_ATTR(e, name, kind) \
  case AttrName::k##e:           \
    return parse_as<kind>(text);
#include "compiler/ir/attrs.def"
  }
  KILN_UNREACHABLE("attribute");
}

const Word* word_in(const Attr& value) {
  return std::visit(
      [](const auto& v) -> const Word* {
        if constexpr (WordSet<std::decay_t<decltype(v)>>)
          return &kWords<std::decay_t<decltype(v)>>[static_cast<size_t>(v)];
        else
          return nullptr;
      },
      value);
}

bool Word::stands_on(std::string_view mnemonic) const {
  if (mnemonic.empty() || ops.empty()) return true;
  for (std::string_view rest = ops;;) {
    const size_t space = rest.find(' ');
    if (rest.substr(0, space) == mnemonic) return true;
    if (space == std::string_view::npos) return false;
    rest.remove_prefix(space + 1);
  }
}

std::string list_words(std::span<const Word> words, std::string_view mnemonic) {
  std::string list;
  for (const Word& w : words)
    if (w.stands_on(mnemonic)) list += fmt::format("{}'{}'", list.empty() ? "" : ", ", w.text);
  return list;
}

}  // namespace kiln::ir
