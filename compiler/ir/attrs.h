// What an op's attributes hold (attrs.def): numbers, lists, texts, and words of closed sets, which are enums.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace kiln::ir {

enum class AttrName : uint8_t {
#define KILN_ATTR(e, name, kind) k##e,
#include "compiler/ir/attrs.def"
};
std::string_view name(AttrName attr);
std::optional<AttrName> parse_attr_name(std::string_view text);

#define KILN_WORDS(set) enum class set : uint8_t {
#define KILN_WORD(set, enumerator, word, ops) k##enumerator,
#define KILN_WORDS_END(set) \
  }                         \
  ;
#include "compiler/ir/attrs.def"

using Attr = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>
#define KILN_WORDS(set) , set
#include "compiler/ir/attrs.def"
                          >;

/// A word of a closed set, as it is written.
struct Word {
  std::string_view text;
  std::string_view ops;  // mnemonics of those that may carry it; "" all that have the attribute

  bool stands_on(std::string_view mnemonic) const;
};

/// The words of each set, in the order of the enum.
template <class E>
inline constexpr Word kWords[1] = {};  // no set
#define KILN_WORDS(set) \
  template <>           \
  inline constexpr Word kWords<set>[] = {
#define KILN_WORD(set, enumerator, word, ops) {word, ops},
#define KILN_WORDS_END(set) \
  }                         \
  ;
#include "compiler/ir/attrs.def"

template <class E>
concept WordSet = std::is_enum_v<E> && !kWords<E>[0].text.empty();

template <WordSet E>
constexpr std::string_view spelling(E word) {
  return kWords<E>[static_cast<size_t>(word)].text;
}
template <WordSet E>
constexpr std::optional<E> parse_word(std::string_view text) {
  for (size_t i = 0; i < std::size(kWords<E>); ++i)
    if (kWords<E>[i].text == text) return static_cast<E>(i);
  return std::nullopt;
}
/// "'relaxed', 'acquire'": the words that may stand on the op; all for an empty mnemonic.
std::string list_words(std::span<const Word> words, std::string_view mnemonic = {});

/// What attrs.def calls the kinds that are no type of C++ or a set.
namespace attr_kinds {
struct Number;
struct Text;
struct Ints;
}  // namespace attr_kinds

/// The attribute that holds a word of the set.
template <WordSet E>
consteval AttrName attr_of() {
  using namespace attr_kinds;
#define KILN_ATTR(e, name, kind) \
  if (std::is_same_v<E, kind>) return AttrName::k##e;
#include "compiler/ir/attrs.def"
}

/// Whether the value is of the attribute's kind.
bool is_of_kind(AttrName attr, const Attr& value);
/// The words that the attribute may hold, none when it holds something else; and one of them, read.
std::span<const Word> words_of(AttrName attr);
std::optional<Attr> parse_word(AttrName attr, std::string_view text);
/// The word that the attribute holds; nullptr when it holds something else.
const Word* word_in(const Attr& value);

}  // namespace kiln::ir
