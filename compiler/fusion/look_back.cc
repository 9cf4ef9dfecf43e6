#include "compiler/fusion/look_back.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/fusion/split.h"
#include "compiler/fusion/writer.h"

namespace kiln::fusion {

void LookBack::begin(const std::vector<int>& members, int totals, const Part& part) {
  int64_t offset = 0;
  for (int m : members) {
    const DagNode& n = dag_.nodes[at(m)];
    if (!looks_back(n)) continue;
    for (const char* helper : {"tell_total", "told_halves", "told_totals"}) e_.use_helper(helper);
    std::string words = e_.pointer_to_value(totals, offset, "totals");
    offset += words_of_scan(n);
    if (!part.row.empty()) {
      const std::string all = std::exchange(words, e_.names.fresh("words_ptr"));
      e_.line(fmt::format("{} = {} + {} * {}", words, all, part.row, e_.size(words_of_row(n), "words")));
    }
    const std::string launch = e_.names.fresh("launch");
    e_.line(fmt::format("{} = tl.load({}, volatile=True) + (1 << 32)", launch, words));
    told_[m] = {words, launch};
  }
}

std::string LookBack::tell(int scan, const std::string& own, const Part& part) {
  const Told& told = told_.at(scan);
  std::string total = e_.names.fresh("total");
  e_.line(fmt::format("{} = {}", total, own));
  e_.line(fmt::format("tell_total({}, {}, {}, {})", told.words, part.number, total, told.launch));
  return total;
}

void LookBack::wait(int scan, const std::string& total, const std::string& carry, const Part& part,
                    const Joint& joint) {
  const DagNode& n = dag_.nodes[at(scan)];
  const Told& told = told_.at(scan);
  auto joined = [&](const std::string& a, const std::string& b) {
    return joint.of_two.empty() ? fmt::format("{} + {}", a, b) : fmt::format("{}({}, {})", joint.of_two, a, b);
  };
  auto totals = [&](const std::string& first, const std::string& count, const std::string& most) {
    const std::string tile =
        fmt::format("told_totals({}, {}, {}, {}, {}, {}, tl.{})", told.words, first, count, told.launch,
                    Emitter::identity(reduction_of(n)), most, info(n.operand_type).triton);
    return fmt::format(fmt::runtime(joint.reduce), tile);
  };
  const std::string each = e_.constant(kPartsOfGroup, "GROUP"), in_group = fmt::format("{} % {}", part.number, each);
  const std::string of_group = totals(fmt::format("{0} // {1} * {1}", part.number, each), in_group, each);
  const int64_t groups = groups_of_parts(n);
  if (groups == 1) {
    e_.line(fmt::format("{} = {}", carry, of_group));
  } else {
    constexpr int64_t kUsualGroups = 64;  // one kernel for all lengths that are met
    const std::string before = e_.names.fresh("before"), group = fmt::format("{} // {}", part.number, each);
    e_.line(fmt::format("{} = {}", before, of_group));
    e_.line(fmt::format("if {} == {} - 1:", in_group, each));
    e_.line(fmt::format("    tell_total({}, {} + {}, {}, {})", told.words, part.count, group, joined(before, total),
                        told.launch));
    const std::string most = e_.constant(std::max(kUsualGroups, power_of_two(groups)), "MOST_GROUPS");
    e_.line(fmt::format("{} = {}", carry, joined(totals(part.count, group, most), before)));
  }
  e_.line(fmt::format("if {} == {} - 1:  # all parts have told, and so read which launch this is", part.number,
                      part.count));
  e_.line(fmt::format("    tl.store({}, {})", told.words, told.launch));
}

}  // namespace kiln::fusion
