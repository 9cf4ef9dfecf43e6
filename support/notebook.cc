#include "support/notebook.h"

#include <charconv>

namespace kiln {

CellPlace cell_place(const Place& place) {
  constexpr std::string_view kBetween = ".ipynb, cell ";
  const size_t at = place.file.rfind(kBetween);
  int cell = 0;
  if (at != std::string::npos) {
    const char* end = place.file.data() + place.file.size();
    const auto [after, error] = std::from_chars(place.file.data() + at + kBetween.size(), end, cell);
    if (error != std::errc() || after != end) cell = 0;
  }
  return cell ? CellPlace{place.file.substr(0, at + std::string_view(".ipynb").size()), cell}
              : CellPlace{place.file, 0};
}

}  // namespace kiln
