#include "repl/editor/keys.h"

#include <algorithm>
#include <array>

#include "support/text_width.h"

namespace kiln::editor {

namespace {

constexpr char kEsc = '\033';
constexpr std::string_view kPasteEnd = "\033[201~";
constexpr size_t kLongestSequence = 64;  // what is longer is no key

struct NamedKey {
  std::string_view name;
  Special key;
};
constexpr NamedKey kNamedKeys[] = {
    {"Enter", Special::kEnter},   {"Tab", Special::kTab},       {"Backspace", Special::kBackspace},
    {"Escape", Special::kEscape}, {"Up", Special::kUp},         {"Down", Special::kDown},
    {"Left", Special::kLeft},     {"Right", Special::kRight},   {"Home", Special::kHome},
    {"End", Special::kEnd},       {"PageUp", Special::kPageUp}, {"PageDown", Special::kPageDown},
    {"Insert", Special::kInsert}, {"Delete", Special::kDelete},
};

// The last byte of CSI and SS3 sequences without a number.
constexpr std::pair<char, Special> kFinals[] = {
    {'A', Special::kUp},   {'B', Special::kDown}, {'C', Special::kRight},
    {'D', Special::kLeft}, {'H', Special::kHome}, {'F', Special::kEnd},
};

// The number of CSI sequences that end with ~ (and of rxvt's, with ^ for Ctrl and $ for Shift).
constexpr std::pair<int, Special> kNumbers[] = {
    {1, Special::kHome},   {2, Special::kInsert},   {3, Special::kDelete}, {4, Special::kEnd},
    {5, Special::kPageUp}, {6, Special::kPageDown}, {7, Special::kHome},   {8, Special::kEnd},
};

template <class Table, class Name>
Special look_up(const Table& table, Name name) {
  for (const auto& [n, key] : table)
    if (n == name) return key;
  return Special::kNone;
}

Key character(char32_t c) { return {Special::kNone, c}; }

/// What a code point is as a key: characters below 32 are Ctrl with a letter, but for those with a key of their own.
Key key_of(char32_t c) {
  switch (c) {
    case '\r':
    case '\n':
      return {Special::kEnter};
    case '\t':
      return {Special::kTab};
    case 0x7F:
    case '\b':
      return {Special::kBackspace};
    case 0x1B:
      return {Special::kEscape};
    default:
      break;
  }
  if (c == 0) return {Special::kNone, ' ', true};
  if (c < 0x1B) return {Special::kNone, U'a' + (c - 1), true};
  if (c < 0x20) return {Special::kNone, U'@' + c, true};  // Ctrl-\ ] ^ _
  return character(c);
}

/// xterm's number for the keys held: 1 + Shift + 2 Alt + 4 Ctrl.
Key with_modifiers(Key key, int number) {
  if (number < 2) return key;
  const int bits = number - 1;
  key.shift = key.shift || (bits & 1);
  key.alt = key.alt || (bits & 2);
  key.ctrl = key.ctrl || (bits & 4);
  return key;
}

/// A character that a terminal reports by its number, with the keys held (CSI u, modifyOtherKeys).
Key numbered_character(int code, int modifiers) {
  if (code <= 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {};
  Key key = with_modifiers(key_of(static_cast<char32_t>(code)), modifiers);
  if (key.special == Special::kNone) key.shift = false;  // the character has it already
  if (key.ctrl && key.character >= 'A' && key.character <= 'Z') key.character += 'a' - 'A';
  return key;
}

}  // namespace

std::optional<Key> parse_key(std::string_view name) {
  Key key;
  for (;;) {
    if (name.starts_with("Ctrl-"))
      key.ctrl = true, name.remove_prefix(5);
    else if (name.starts_with("Alt-"))
      key.alt = true, name.remove_prefix(4);
    else if (name.starts_with("Shift-"))
      key.shift = true, name.remove_prefix(6);
    else
      break;
  }
  key.special = look_up(kNamedKeys, name);
  if (key.special != Special::kNone) return key;
  const Character c = first_character(name);
  if (c.bytes == 0 || c.bytes != name.size()) return std::nullopt;
  key.character = c.code;
  if (key.ctrl && c.code >= 'A' && c.code <= 'Z') key.character = c.code + ('a' - 'A');
  return key;
}

void KeyDecoder::feed(std::string_view bytes) {
  pending_ += bytes;
  decode_all(false);
}

std::optional<KeyEvent> KeyDecoder::next() {
  if (events_.empty()) return std::nullopt;
  KeyEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void KeyDecoder::give_up() {
  if (in_paste_) {
    // A terminal that never ends its paste must not take the prompt with it.
    if (!pending_.ends_with('\003') && !paste_.ends_with('\003')) return;
    in_paste_ = false;
    pending_.clear(), paste_.clear();
    emit({Special::kNone, 'c', true});
    return;
  }
  decode_all(true);
}

void KeyDecoder::decode_all(bool at_end) {
  size_t at = 0;
  while (at < pending_.size()) {
    if (in_paste_) {
      pending_.erase(0, at);
      at = 0;
      take_paste();
      if (in_paste_) return;
      continue;
    }
    const size_t used = decode(std::string_view(pending_).substr(at), false, at_end);
    if (used == 0) break;
    at += used;
  }
  pending_.erase(0, at);
}

/// Moves what belongs to the paste out of pending_; a part that may be its end mark stays.
void KeyDecoder::take_paste() {
  const size_t end = pending_.find(kPasteEnd);
  size_t taken = end;
  if (end == std::string::npos) {
    size_t kept = std::min(kPasteEnd.size() - 1, pending_.size());
    while (kept > 0 && !kPasteEnd.starts_with(std::string_view(pending_).substr(pending_.size() - kept))) --kept;
    taken = pending_.size() - kept;
  }
  paste_.append(pending_, 0, taken);
  if (end == std::string::npos) {
    pending_.erase(0, taken);
    return;
  }
  pending_.erase(0, end + kPasteEnd.size());
  in_paste_ = false;
  KeyEvent event{{}, true, {}};
  for (size_t i = 0; i < paste_.size(); ++i) {
    if (paste_[i] == '\r') {
      event.paste += '\n';
      if (i + 1 < paste_.size() && paste_[i + 1] == '\n') ++i;
    } else {
      event.paste += paste_[i];
    }
  }
  paste_.clear();
  events_.push_back(std::move(event));
}

/// Emits the key that the bytes begin with and gives its length; 0: more bytes are needed.
size_t KeyDecoder::decode(std::string_view bytes, bool alt, bool at_end) {
  const uint8_t first = static_cast<uint8_t>(bytes[0]);
  if (first == kEsc) {
    if (bytes.size() == 1) {
      if (!at_end) return 0;
      emit({Special::kEscape, 0, false, alt});
      return 1;
    }
    if (bytes[1] == '[') return decode_csi(bytes, alt, at_end);
    if (bytes[1] == 'O') {
      if (bytes.size() == 2 && !at_end) return 0;
      const Special key = bytes.size() > 2 ? look_up(kFinals, bytes[2]) : Special::kNone;
      if (key != Special::kNone) return emit({key, 0, false, alt}), 3;
      if (bytes.size() > 2 && bytes[2] >= 'a' && bytes[2] <= 'd') {  // rxvt: Ctrl with an arrow
        emit({look_up(kFinals, static_cast<char>(bytes[2] - 'a' + 'A')), 0, true, alt});
        return 3;
      }
      if (bytes.size() > 2 && bytes[2] == 'M') return emit({Special::kEnter, 0, false, alt}), 3;  // of the keypad
      if (bytes.size() > 2 && bytes[2] >= 'P' && bytes[2] <= 'S') return 3;                       // F1 to F4
      emit({Special::kNone, 'O', false, true});
      return 2;
    }
    if (alt) {  // Escape was pressed twice and something else after it
      emit({Special::kEscape, 0, false, true});
      return 1;
    }
    const size_t used = decode(bytes.substr(1), true, at_end);
    return used ? used + 1 : 0;
  }
  size_t length = 1;
  if (first >= 0x80) {
    // The bytes of a character may come apart; as long as they continue one, wait.
    const size_t whole = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 1;
    while (length < std::min(whole, bytes.size()) && (static_cast<uint8_t>(bytes[length]) & 0xC0) == 0x80) ++length;
    if (length < whole && length == bytes.size() && !at_end) return 0;
  }
  const Character c = first_character(bytes.substr(0, length));
  Key key = key_of(c.code);
  key.alt = alt;
  emit(key);
  return c.bytes;
}

/// ESC [ numbers separated by ; and a last byte. What is no key of ours is dropped as a whole.
size_t KeyDecoder::decode_csi(std::string_view bytes, bool alt, bool at_end) {
  if (bytes.size() == 2) {
    if (!at_end) return 0;
    emit({Special::kNone, '[', false, true});
    return 2;
  }
  if (bytes[2] == '[') return bytes.size() > 3 ? 4 : at_end ? bytes.size() : 0;  // the Linux console's F1 to F5
  std::array<int, 3> numbers{};
  size_t count = 0, at = 2;
  for (; at < bytes.size() && bytes[at] >= 0x20 && bytes[at] <= 0x3F; ++at) {
    if (bytes[at] == '$') break;  // rxvt: Shift
    if (bytes[at] == ';')
      ++count;
    else if (bytes[at] >= '0' && bytes[at] <= '9' && count < numbers.size())
      numbers[count] = std::min(numbers[count] * 10 + (bytes[at] - '0'), 0x110000);
    if (at > kLongestSequence) return at;
  }
  if (at == bytes.size()) return at_end ? at : 0;
  const char last = bytes[at];
  if (last < 0x20 || last == 0x7F || static_cast<uint8_t>(last) >= 0x80) return at;  // broken off: its byte is a key
  const size_t used = at + 1;
  auto give = [&](Key key) {
    key.alt = key.alt || alt;
    if (key.special != Special::kNone || key.character) emit(key);
    return used;
  };
  const bool is_report = bytes[2] >= '<' && bytes[2] <= '?';  // an answer of the terminal
  if (is_report || (at > 2 && last >= 'a' && last <= 'd')) return used;
  switch (last) {
    case '~':
      if (numbers[0] == 200) {
        in_paste_ = true;
        return used;
      }
      if (numbers[0] == 27) return give(numbered_character(numbers[2], numbers[1]));
      return give(with_modifiers({look_up(kNumbers, numbers[0])}, numbers[1]));
    case '^':
      return give({look_up(kNumbers, numbers[0]), 0, true});
    case '$':
      return give({look_up(kNumbers, numbers[0]), 0, false, false, true});
    case 'u':
      return give(numbered_character(numbers[0], numbers[1]));
    case 'Z':
      return give({Special::kTab, 0, false, false, true});
    case 'a':
    case 'b':
    case 'c':
    case 'd':  // rxvt: Shift with an arrow
      return give({look_up(kFinals, static_cast<char>(last - 'a' + 'A')), 0, false, false, true});
    default:
      return give(with_modifiers({look_up(kFinals, last)}, numbers[1]));
  }
}

}  // namespace kiln::editor
