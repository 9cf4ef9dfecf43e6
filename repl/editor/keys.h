// Bytes from a terminal as key presses: UTF-8, control characters, Alt, CSI and SS3 sequences, bracketed paste.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace kiln::editor {

/// Keys that are no character. Control characters are the character with `ctrl`: Ctrl-A is {'a', ctrl}.
enum class Special : uint8_t {
  kNone,
  kEnter,
  kTab,
  kBackspace,
  kEscape,
  kUp,
  kDown,
  kLeft,
  kRight,
  kHome,
  kEnd,
  kPageUp,
  kPageDown,
  kInsert,
  kDelete,
};

struct Key {
  Special special = Special::kNone;
  char32_t character = 0;  // when not special
  bool ctrl = false, alt = false, shift = false;

  auto operator<=>(const Key&) const = default;
};

/// A key by the name that the table of bindings and the documentation use: "Ctrl-A", "Alt-Backspace", "Shift-Tab",
/// "Up"; nullopt when there is no such key.
std::optional<Key> parse_key(std::string_view name);

struct KeyEvent {
  Key key;
  bool is_paste = false;
  std::string paste;  // ends of lines are \n

  bool operator==(const KeyEvent&) const = default;
};

class KeyDecoder {
 public:
  /// Bytes as they were read, cut anywhere.
  void feed(std::string_view bytes);
  /// The next press that is complete.
  std::optional<KeyEvent> next();
  /// The same, left where it is; null: there is none.
  const KeyEvent* peek() const { return events_.empty() ? nullptr : &events_.front(); }
  /// Whether bytes wait for more: Escape, or a sequence's beginning. After kEscapeMs without any, call give_up().
  bool is_waiting() const { return !pending_.empty() || in_paste_; }
  /// No more bytes came: Escape was the key itself. A paste goes on, unless what came last is Ctrl-C.
  void give_up();

  static constexpr int kEscapeMs = 50;

 private:
  size_t decode(std::string_view bytes, bool alt, bool at_end);
  size_t decode_csi(std::string_view bytes, bool alt, bool at_end);
  void decode_all(bool at_end);
  void emit(Key key) { events_.push_back({key, false, {}}); }
  void take_paste();

  std::string pending_;
  std::string paste_;
  bool in_paste_ = false;
  std::deque<KeyEvent> events_;
};

}  // namespace kiln::editor
