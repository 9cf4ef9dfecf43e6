// What the parts of a very long row say to each other while they scan it (looks_back(), docs/fusion.md): the lines that
// tell a part's total, and those that wait for the totals of the parts before it.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/fusion/emitter.h"

namespace kiln::fusion {

class LookBack {
 public:
  /// How a scan's text reduces a tile, and joins two elements; "" where that is an addition.
  struct Joint {
    std::string of_two;
    std::string reduce;  // a pattern with the tile and its axis
  };
  /// A program's part of its row, how many there are, and the number of its row, "" if there is one row.
  struct Part {
    std::string number, count, row;
    // Of rows that lie side by side: which of them the program has, how many there are, and the number of its tile.
    std::string rows = {}, n_rows = {}, tile = {};
  };

  LookBack(Emitter& emitter, const Dag& dag) : e_(emitter), dag_(dag) {}

  /// The lines that say where the parts of a row tell each other their totals, and which launch this is. `totals`: the
  /// plan's value for those of all scans.
  void begin(const std::vector<int>& members, int totals, const Part& part);
  /// The lines of a scan of `tile`, whose rows are runs of neighbours (of the shape `runs`), and what is to be joined
  /// to each run's own. The sums of runs are all that a program waits with: they give the part's total as early as that
  /// is known, and are scanned while the totals of other parts are on their way. What is in a run is scanned behind the
  /// wait, so that no thread holds running values meanwhile.
  std::string before_runs(int scan, const std::string& tile, const std::string& runs, const Part& part,
                          const Joint& joint);
  /// The same of rows that lie side by side: a total of each, ahead of the scan.
  std::string before_columns(int scan, const std::string& tile, const Part& part, const Joint& joint);
  /// The same of a row that one program has.
  std::string before_runs_of_row(int scan, const std::string& tile, const std::string& runs, const Joint& joint);
  /// The same of a scan that waits with all its running values, which become a line of their own ahead of the wait.
  /// Registers hold them meanwhile, and have no room for totals that are looked at before they are wanted.
  std::string before_tile(int scan, const std::string& tile, Text& running, const Part& part, const Joint& joint);

 private:
  /// So many totals of other parts, or of groups of them.
  struct Totals {
    std::string first, count, most;
    std::string seen = {};  // arguments: what look() saw of them
  };
  struct Told {
    std::string words, launch;
    std::string number;                 // where the number of the last launch is, of rows that lie side by side
    std::string in_group, group, each;  // the part's number in its group, the group's, and how many parts it has
    std::vector<Totals> ahead;  // of the parts before it in its group, and of the groups before, if there are any
  };

  /// The sums of runs; the lines that scan them, and what comes before each.
  std::string sums_of_runs(const std::string& tile, const Joint& joint);
  std::string scanned_sums(int scan, const std::string& sums, const std::string& runs, const Joint& joint);
  /// Tells the total `own` of this part. Gives its name.
  std::string tell(int scan, const std::string& own, const Part& part);
  /// Names the totals that a part waits for.
  void find(int scan, const Part& part);
  /// The lines that look at them, told or not.
  void look(int scan);
  /// Makes `carry`, the total of all parts before this one, whose own is `total`. The last of a group of parts tells
  /// the group's total, and who comes later waits for those and for the parts behind them. A program waits for those
  /// before it, which the hardware begins earlier.
  void wait(int scan, const std::string& total, const std::string& carry, const Part& part, const Joint& joint);

  Emitter& e_;
  const Dag& dag_;
  std::map<int, Told> told_;  // each scan
};

}  // namespace kiln::fusion
