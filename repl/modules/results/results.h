// What the prompt remembers of its results, and how it shows them.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "profiler/report/table.h"
#include "repl/script/interp/interp.h"

namespace kiln::script {

/// `_`, `__` and `___` are the last three results, `_N` and Out[N] that of entry N, whose text is In[N]. They are
/// builtins: a script's own variable of such a name hides them.
class Results {
 public:
  explicit Results(Interp& in);

  /// The entry that runs now; 0: results have no number.
  void begin(int entry, std::string_view text);
  void keep(const Value& v);

  /// The text of a table as the program shows tables; `colored` where it goes to the screen. Null: report::to_text.
  std::function<std::string(const report::Table&, bool colored)> table_text;
  /// Columns that plots may take; null, or 0: as many as they like.
  std::function<int()> columns;
  int width() const { return columns ? columns() : 0; }
  /// Shows the text of a result; null: Interp::print.
  std::function<void(std::string_view text)> show;

 private:
  struct Kept {
    int entry;
    bool is_tensor;
  };
  Dict& out();
  void drop(int entry);

  Interp& in_;
  std::vector<Kept> kept_;  // in order
  int entry_ = 0;
};

/// Shows a result at the prompt.
void show_result(Interp& in, const Value& v);

}  // namespace kiln::script
