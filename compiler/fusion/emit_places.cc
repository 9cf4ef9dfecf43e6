// Loads from places that integers say, and stores there.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/fusion/emitter.h"
#include "compiler/fusion/place_range.h"

namespace kiln::fusion {

Text Emitter::taken(int node) {
  const DagNode& n = dag_.nodes[at(node)];
  const Operand& from = n.operands[0];
  const DagNode& table = dag_.nodes[at(from.node)];
  double span = std::abs(static_cast<double>(from.offset));
  for (size_t d = 0; d < from.shape.size(); ++d)
    span += std::abs(static_cast<double>(from.strides[d]) * static_cast<double>(from.shape[d]));
  for (const Taken& t : n.taken) span += std::abs(static_cast<double>(t.stride) * static_cast<double>(t.size));

  Text out;
  std::vector<Text> places, inside;
  for (size_t k = 0; k < n.taken.size(); ++k) {
    const Taken& t = n.taken[k];
    Text place = operand(node, k + 1);
    if (bits(place.type) < 64 && (bits(place.type) < 32 || span >= 0x1p31))
      place = converted(std::move(place), span >= 0x1p31 ? DType::kI64 : DType::kI32);
    place = named(std::move(place), "place");
    const std::optional<Range> range = range_of(dag_, n.operands[k + 1]);
    const bool never_below = range && range->low >= 0;
    const bool never_above = range && range->high < static_cast<double>(t.size);
    // Of parts that lie one after the other: a number in the text, with which accesses up to a part's end are wide.
    auto size_text = [&] { return t.any_outside ? std::to_string(t.size) : size(t.size, "n_places"); };
    if (!t.any_outside && is_signed(place.type) && !never_below) {
      place.text = fmt::format("tl.where({0} < 0, {0} + {1}, {0})", place.text, size_text());
      place = named(std::move(place), "place");
    }
    out.level |= place.level;
    const bool checks_low = is_signed(place.type) && !never_below;
    if (checks_low || !never_above) {
      Text test = place;
      test.text = checks_low && !never_above ? fmt::format("({0} >= 0) & ({0} < {1})", place.text, size_text())
                  : checks_low               ? place.text + " >= 0"
                                             : fmt::format("{} < {}", place.text, size_text());
      test.type = DType::kI1;
      inside.push_back(named(std::move(test), "inside"));
    }
    places.push_back(std::move(place));
  }
  out.type = register_type(table.dtype);
  const bool is_float_table = is_float(table.dtype);
  const bool any = std::any_of(n.taken.begin(), n.taken.end(), [](const Taken& t) { return t.any_outside; });
  const std::string missing = is_float_table && !any ? "float(\"nan\")" : is_float_table ? "0.0" : "0";
  const Access a = access(node, 0);
  for (size_t d = 0; d < index.size(); ++d)
    if (a.strides[d] != 0) out.level |= index[d].level;
  const std::string base = table.counts ? std::to_string(a.offset) : pointer(a.node, a.offset, false);
  std::string where_from = address(a, base, &out.level);
  std::string test = mask(out.level);
  for (size_t k = 0; k < places.size(); ++k) {
    const int64_t stride = n.taken[k].stride;
    where_from += " + " + spread(places[k], out.level, 10);
    if (stride != 1)
      where_from += " * " + (stride > 0 && stride < 10 ? std::to_string(stride) : size(stride, "stride"));
  }
  for (const Text& t : inside) test += (test.empty() ? "" : " & ") + spread(t, out.level, 10);
  // Windows in the loop of a product have an address for each element: one index of 32 bits, widened once.
  if (places.size() > 1 && cluster_.is_for_operands(node) && span < 0x1p31) where_from = widened_once(base, where_from);
  if (table.counts) {
    // Where an element is counts in whatever integers its place has.
    const std::string place =
        test.empty() ? "(" + where_from + ")" : fmt::format("tl.where({}, {}, {})", test, where_from, missing);
    out.text = fmt::format("{}.to(tl.{})", place, info(table.dtype).triton);
    out.type = table.dtype;
    return settled(node, named(std::move(out), n.name));
  }
  out.text = test.empty()     ? fmt::format("tl.load({})", where_from)
             : inside.empty() ? fmt::format("tl.load({}, mask={})", where_from, test)
                              : fmt::format("tl.load({}, mask={}, other={})", where_from, test, missing);
  if (out.type != table.dtype) out.text += ".to(" + std::string("tl.") + std::string(info(out.type).triton) + ")";
  return settled(node, named(std::move(out), table.name.empty() ? "x" : table.name));
}

void Emitter::put(int node) {
  const DagNode& n = dag_.nodes[at(node)];
  Text value = operand(node, 0);
  if (!value.number) value = converted(std::move(value), n.dtype);
  const Text place = named(operand(node, 1), "place"), inside = operand(node, 2);
  // Each element is stored once, also along dimensions that change neither its place nor its value.
  unsigned level = value.level | place.level | inside.level;
  const Access own = store_access(node);
  for (size_t d = 0; d < index.size(); ++d)
    if (own.strides[d] != 0) level |= index[d].level;
  std::string to = pointer(node, 0, true) + " + " + spread(place, level, 7);
  unsigned missing = level & ~place.level;
  for (size_t d = 0; d < index.size(); ++d) {
    if (!(index[d].level & missing)) continue;
    missing &= ~index[d].level;
    Text along;
    along.text = index[d].text, along.level = index[d].level;
    to += " + 0 * " + spread(std::move(along), level, 8);
  }
  std::string test = mask(level);
  if (!(inside.number && inside.text == "True"))
    test += (test.empty() ? "" : " & ") + spread(inside, level, test.empty() ? 0 : 5);
  std::string text = fmt::format("tl.{}({}, {}", n.adds ? "atomic_add" : "store", to, spread(value, level, 0));
  if (!test.empty()) text += ", mask=" + test;
  if (n.adds) text += ", sem=\"relaxed\"";
  line_of(level, text + ")");
}

bool Emitter::is_of_places(int node) {
  if (places_.empty()) {
    std::vector<int> work;
    auto push = [&](const Operand& o) {
      if (!o.is_number() && cluster_.contains(o.node) && places_.insert(o.node).second) work.push_back(o.node);
    };
    for (int m : cluster_.members) {
      const DagNode& n = dag_.nodes[at(m)];
      if (n.op == ExprOp::kPut) push(n.operands[1]);
      for (size_t i = 1; n.op == ExprOp::kTake && i < n.operands.size(); ++i) push(n.operands[i]);
    }
    while (!work.empty()) {
      const DagNode& n = dag_.nodes[at(work.back())];
      work.pop_back();
      for (const Operand& o : n.operands) push(o);
    }
    places_.insert(-1);  // looked for
  }
  return places_.contains(node);
}

}  // namespace kiln::fusion
