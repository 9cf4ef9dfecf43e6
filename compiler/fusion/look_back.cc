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
    std::string words = e_.pointer_to_value(totals, offset, "totals");
    offset += words_of_scan(n);
    if (lies_across(n)) {
      for (const char* helper : {"tell_columns", "told_words", "told_columns"}) e_.use_helper(helper);
      Told& told = told_[m];
      told.number = fmt::format("{} + {}", words, part.tile), told.launch = e_.names.fresh("launch");
      told.words = e_.names.fresh("words_ptr");
      e_.line(fmt::format("{} = tl.load({}, volatile=True) + (1 << 32)", told.launch, told.number));
      e_.line(fmt::format("{} = {} + {}", told.words, words, part.n_rows));
      continue;
    }
    for (const char* helper : {"tell_total", "told_halves", "told_totals"}) e_.use_helper(helper);
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
  const std::string sums = sums_of_runs(tile, joint), carry = e_.names.fresh("carry");
  const std::string total = tell(scan, fmt::format(fmt::runtime(joint.reduce), sums, 0), part);
  find(scan, part);
  look(scan);
  const std::string earlier = scanned_sums(scan, sums, runs, joint);
  wait(scan, total, carry, part, joint);
  const std::string both = joint.of_two.empty() ? fmt::format("({} + {})", earlier, carry)
                                                : fmt::format("{}({}, {})", joint.of_two, earlier, carry);
  return both + "[:, None]";
}

std::string LookBack::before_columns(int scan, const std::string& tile, const Part& part, const Joint& joint) {
  const DagNode& n = dag_.nodes[at(scan)];
  find(scan, part);
  const Told& told = told_.at(scan);
  const std::string total = e_.names.fresh("total"), before = e_.names.fresh("before"), carry = e_.names.fresh("carry");
  const std::string all = e_.size(n.splits + groups_of_parts(n), "words");
  auto joined = [&](const std::string& a, const std::string& b) {
    return joint.of_two.empty() ? fmt::format("{} + {}", a, b) : fmt::format("{}({}, {})", joint.of_two, a, b);
  };
  auto tell = [&](const std::string& number, const std::string& what) {
    return fmt::format("tell_columns({}, {}, {}, {}, {}, {}, {})", told.words, number, part.rows, part.n_rows, all,
                       what, told.launch);
  };
  auto totals = [&](const Totals& t) {
    const std::string many = fmt::format("told_columns({}, {}, {}, {}, {}, {}, {}, {}, {}, tl.{})", told.words, t.first,
                                         t.count, part.rows, part.n_rows, all, told.launch,
                                         Emitter::identity(reduction_of(n)), t.most, info(n.operand_type).triton);
    return fmt::format(fmt::runtime(joint.reduce), many, 1);
  };
  e_.line(fmt::format("{} = {}", total, fmt::format(fmt::runtime(joint.reduce), tile, 1)));
  e_.line(tell(part.number, total));
  e_.line(fmt::format("{} = {}", before, totals(told.ahead[0])));
  if (told.ahead.size() == 1) {
    e_.line(fmt::format("{} = {}", carry, before));
  } else {
    e_.line(fmt::format("if {} == {} - 1:", told.in_group, told.each));
    e_.line("    " + tell(fmt::format("{} + {}", part.count, told.group), joined(before, total)));
    e_.line(fmt::format("{} = {}", carry, joined(totals(told.ahead[1]), before)));
  }
  e_.line(fmt::format("if {} == {} - 1:  # all parts have told, and so read which launch this is", part.number,
                      part.count));
  e_.line(fmt::format("    tl.store({}, {})", told.number, told.launch));
  return carry;
}

std::string LookBack::before_runs_of_row(int scan, const std::string& tile, const std::string& runs,
                                         const Joint& joint) {
  return scanned_sums(scan, sums_of_runs(tile, joint), runs, joint) + "[:, None]";
}

std::string LookBack::sums_of_runs(const std::string& tile, const Joint& joint) {
  std::string sums = e_.names.fresh("sums");
  e_.line(fmt::format("{} = {}", sums, fmt::format(fmt::runtime(joint.reduce), tile, 1)));
  return sums;
}

std::string LookBack::scanned_sums(int scan, const std::string& sums, const std::string& runs, const Joint& joint) {
  const DagNode& n = dag_.nodes[at(scan)];
  std::string earlier = e_.names.fresh("earlier");
  const std::string with_before = joint.of_two.empty() ? "with_before" : joint.of_two + "_with_before";
  e_.use_helper(with_before);
  e_.line(fmt::format("_, {} = tl.associative_scan(({}, tl.full({}, {}, tl.{})), 0, {})", earlier, sums, runs,
                      Emitter::identity(reduction_of(n)), info(n.operand_type).triton, with_before));
  return earlier;
}

std::string LookBack::before_tile(int scan, const std::string& tile, Text& running, const Part& part,
                                  const Joint& joint) {
  const std::string carry = e_.names.fresh("carry");
  const std::string total = tell(scan, fmt::format(fmt::runtime(joint.reduce), tile, 0), part);
  running = e_.named(std::move(running), "");
  find(scan, part);
  wait(scan, total, carry, part, joint);
  return carry;
}

std::string LookBack::tell(int scan, const std::string& own, const Part& part) {
  const Told& told = told_.at(scan);
  std::string total = e_.names.fresh("total");
  e_.line(fmt::format("{} = {}", total, own));
  e_.line(fmt::format("tell_total({}, {}, {}, {})", told.words, part.number, total, told.launch));
  return total;
}

void LookBack::find(int scan, const Part& part) {
  const DagNode& n = dag_.nodes[at(scan)];
  Told& told = told_.at(scan);
  told.each = e_.constant(parts_of_group(n), "GROUP");
  told.in_group = fmt::format("{} % {}", part.number, told.each);
  told.group = fmt::format("{} // {}", part.number, told.each);
  told.ahead.push_back({fmt::format("{} * {}", told.group, told.each), told.in_group, told.each});
  const int64_t groups = groups_of_parts(n);
  if (groups == 1) return;
  const int64_t kUsualGroups = lies_across(n) ? 1 : 64;  // one kernel for all lengths that are met
  told.ahead.push_back(
      {part.count, told.group, e_.constant(std::max(kUsualGroups, power_of_two(groups)), "MOST_GROUPS")});
}

void LookBack::look(int scan) {
  Told& told = told_.at(scan);
  e_.use_helper("look_at_totals");
  for (Totals& t : told.ahead) {
    const std::string low = e_.names.fresh("low"), high = e_.names.fresh("high");
    e_.line(fmt::format("{}, {} = look_at_totals({}, {}, {}, {}, {}, tl.{})", low, high, told.words, t.first, t.count,
                        told.launch, t.most, info(dag_.nodes[at(scan)].operand_type).triton));
    t.seen = fmt::format(", {}, {}", low, high);
  }
}

void LookBack::wait(int scan, const std::string& total, const std::string& carry, const Part& part,
                    const Joint& joint) {
  const DagNode& n = dag_.nodes[at(scan)];
  const Told& told = told_.at(scan);
  auto joined = [&](const std::string& a, const std::string& b) {
    return joint.of_two.empty() ? fmt::format("{} + {}", a, b) : fmt::format("{}({}, {})", joint.of_two, a, b);
  };
  auto totals = [&](const Totals& t) {
    const std::string tile =
        fmt::format("told_totals({}, {}, {}, {}, {}, {}, tl.{}{})", told.words, t.first, t.count, told.launch,
                    Emitter::identity(reduction_of(n)), t.most, info(n.operand_type).triton, t.seen);
    return fmt::format(fmt::runtime(joint.reduce), tile, 0);
  };
  if (told.ahead.size() == 1) {
    e_.line(fmt::format("{} = {}", carry, totals(told.ahead[0])));
  } else {
    const std::string before = e_.names.fresh("before");
    e_.line(fmt::format("{} = {}", before, totals(told.ahead[0])));
    e_.line(fmt::format("if {} == {} - 1:", told.in_group, told.each));
    e_.line(fmt::format("    tell_total({}, {} + {}, {}, {})", told.words, part.count, told.group,
                        joined(before, total), told.launch));
    e_.line(fmt::format("{} = {}", carry, joined(totals(told.ahead[1]), before)));
  }
  e_.line(fmt::format("if {} == {} - 1:  # all parts have told, and so read which launch this is", part.number,
                      part.count));
  e_.line(fmt::format("    tl.store({}, {})", told.words, told.launch));
}

}  // namespace kiln::fusion
