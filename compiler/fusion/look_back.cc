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
    for (const char* helper : {"tell_total", "look_at_totals", "told_halves", "told_totals"}) e_.use_helper(helper);
    std::string words = e_.pointer_to_value(totals, offset, "totals");
    offset += words_of_scan(n);
    if (!part.row.empty()) {
      const std::string all = std::exchange(words, e_.names.fresh("words_ptr"));
      e_.line(fmt::format("{} = {} + {} * {}", words, all, part.row, e_.size(words_of_row(n), "words")));
    }
    const std::string launch = e_.names.fresh("launch");
    e_.line(fmt::format("{} = tl.load({}, volatile=True) + (1 << 32)", launch, words));
    told_[m].words = words, told_[m].launch = launch;
  }
}

std::string LookBack::before_runs(int scan, const std::string& tile, const std::string& runs, const Part& part,
                                  const Joint& joint) {
  const DagNode& n = dag_.nodes[at(scan)];
  const std::string sums = e_.names.fresh("sums"), earlier = e_.names.fresh("earlier"), carry = e_.names.fresh("carry");
  const std::string with_before = joint.of_two.empty() ? "with_before" : joint.of_two + "_with_before";
  e_.use_helper(with_before);
  e_.line(fmt::format("{} = {}", sums, fmt::format(fmt::runtime(joint.reduce), tile, 1)));
  const std::string total = tell(scan, fmt::format(fmt::runtime(joint.reduce), sums, 0), part);
  look(scan, part);
  e_.line(fmt::format("_, {} = tl.associative_scan(({}, tl.full({}, {}, tl.{})), 0, {})", earlier, sums, runs,
                      Emitter::identity(reduction_of(n)), info(n.operand_type).triton, with_before));
  wait(scan, total, carry, part, joint);
  const std::string both = joint.of_two.empty() ? fmt::format("({} + {})", earlier, carry)
                                                : fmt::format("{}({}, {})", joint.of_two, earlier, carry);
  return both + "[:, None]";
}

std::string LookBack::tell(int scan, const std::string& own, const Part& part) {
  const Told& told = told_.at(scan);
  std::string total = e_.names.fresh("total");
  e_.line(fmt::format("{} = {}", total, own));
  e_.line(fmt::format("tell_total({}, {}, {}, {})", told.words, part.number, total, told.launch));
  return total;
}

LookBack::Seen LookBack::look_at(const Told& told, const DagNode& scan, std::string first, std::string count,
                                 std::string most) {
  Seen seen = {std::move(first), std::move(count), std::move(most), e_.names.fresh("low"), e_.names.fresh("high")};
  e_.line(fmt::format("{}, {} = look_at_totals({}, {}, {}, {}, {}, tl.{})", seen.low, seen.high, told.words, seen.first,
                      seen.count, told.launch, seen.most, info(scan.operand_type).triton));
  return seen;
}

void LookBack::look(int scan, const Part& part) {
  const DagNode& n = dag_.nodes[at(scan)];
  Told& told = told_.at(scan);
  told.each = e_.constant(kPartsOfGroup, "GROUP");
  told.in_group = fmt::format("{} % {}", part.number, told.each);
  told.group = fmt::format("{} // {}", part.number, told.each);
  told.of_group = look_at(told, n, fmt::format("{} * {}", told.group, told.each), told.in_group, told.each);
  const int64_t groups = groups_of_parts(n);
  if (groups == 1) return;
  constexpr int64_t kUsualGroups = 64;  // one kernel for all lengths that are met
  const std::string most = e_.constant(std::max(kUsualGroups, power_of_two(groups)), "MOST_GROUPS");
  told.of_groups = look_at(told, n, part.count, told.group, most);
}

void LookBack::wait(int scan, const std::string& total, const std::string& carry, const Part& part,
                    const Joint& joint) {
  const DagNode& n = dag_.nodes[at(scan)];
  const Told& told = told_.at(scan);
  auto joined = [&](const std::string& a, const std::string& b) {
    return joint.of_two.empty() ? fmt::format("{} + {}", a, b) : fmt::format("{}({}, {})", joint.of_two, a, b);
  };
  auto totals = [&](const Seen& seen) {
    const std::string tile =
        fmt::format("told_totals({}, {}, {}, {}, {}, {}, {}, {}, tl.{})", told.words, seen.first, seen.count,
                    told.launch, seen.low, seen.high, Emitter::identity(reduction_of(n)), seen.most,
                    info(n.operand_type).triton);
    return fmt::format(fmt::runtime(joint.reduce), tile, 0);
  };
  if (groups_of_parts(n) == 1) {
    e_.line(fmt::format("{} = {}", carry, totals(told.of_group)));
  } else {
    const std::string before = e_.names.fresh("before");
    e_.line(fmt::format("{} = {}", before, totals(told.of_group)));
    e_.line(fmt::format("if {} == {} - 1:", told.in_group, told.each));
    e_.line(fmt::format("    tell_total({}, {} + {}, {}, {})", told.words, part.count, told.group,
                        joined(before, total), told.launch));
    e_.line(fmt::format("{} = {}", carry, joined(totals(told.of_groups), before)));
  }
  e_.line(fmt::format("if {} == {} - 1:  # all parts have told, and so read which launch this is", part.number,
                      part.count));
  e_.line(fmt::format("    tl.store({}, {})", told.words, told.launch));
}

}  // namespace kiln::fusion
