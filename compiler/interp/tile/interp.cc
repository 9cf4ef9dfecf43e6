#include "compiler/interp/tile/interp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <unordered_map>

#include "compiler/interp/dot.h"
#include "compiler/interp/element.h"
#include "compiler/interp/eval.h"
#include "compiler/interp/tensor_block.h"
#include "support/diag.h"

namespace kiln::interp {

using ir::AttrName;
using ir::OpKind;

namespace {

using Elements = std::vector<uint64_t>;

/// A tile seen as outer × axis × inner around one dimension.
struct Axis {
  int64_t outer = 1, size, inner = 1;

  Axis(const ir::Shape& shape, int axis) : size(shape[axis]) {
    for (int d = 0; d < axis; ++d) outer *= shape[d];
    for (int d = axis + 1; d < shape.rank; ++d) inner *= shape[d];
  }
  /// Element k along the axis in row r of the outer × inner other elements.
  int64_t at(int64_t r, int64_t k) const { return (r / inner * size + k) * inner + r % inner; }
  int64_t rows() const { return outer * inner; }
};

class TileMachine {
 public:
  TileMachine(const ir::Module& module, std::array<int32_t, 3> grid, const Memory& memory, const Options& options)
      : memory_(memory), options_(options), grid_(grid) {
    number(*module.body());
    values_.resize(slots_.size());
  }

  Status run_program(const ir::Module& module, std::array<int32_t, 3> id, std::span<const uint64_t> args, int rank) {
    program_ = id;
    rank_ = rank;
    steps_ = 0;
    const auto& params = module.body()->args;
    for (size_t i = 0; i < params.size(); ++i)
      of(params[i]).assign(1, args[i] & element_mask(params[i]->type.element_bits()));
    return block(*module.body());
  }

 private:
  void number(const ir::Block& block) {
    for (const ir::Value* v : block.args) slots_.emplace(v, slots_.size());
    for (const ir::Op* op : block) {
      for (const ir::Value* v : op->results) slots_.emplace(v, slots_.size());
      for (const ir::Block* region : op->regions) number(*region);
    }
  }

  Elements& of(const ir::Value* v) { return values_[slots_.find(v)->second]; }

  Diagnostic fault(const ir::Op& op, std::string what) const {
    return error_at(op.range, ErrorKind::kLaunch, "{} in program ({}, {}, {})", what, program_[0], program_[1],
                    program_[2]);
  }

  Status block(const ir::Block& b) {
    for (const ir::Op* op = b.first; op; op = op->next) KILN_CHECK_OK(execute(*op));
    return {};
  }

  /// Copies the operands of a terminator (from `first` on) to block arguments or results, as if all at once.
  void pass(const ir::Op& from, size_t first, std::span<ir::Value* const> to) {
    std::vector<Elements> copies;
    for (size_t i = first; i < from.operands.size(); ++i) copies.push_back(of(from.operands[i]));
    for (size_t i = 0; i < copies.size(); ++i) of(to[i]) = std::move(copies[i]);
  }

  Status execute(const ir::Op& op) {
    if (++steps_ > options_.step_limit)
      return fault(op, fmt::format("no end after {} steps: an endless loop", options_.step_limit));
    if (has_scalar_meaning(op.kind)) {
      elementwise(op, op.result()->type.shape.numel());
      return {};
    }
    switch (op.kind) {
      case OpKind::kConstant:
        of(op.result()).assign(count(op), constant_bits(op));
        return {};
      case OpKind::kProgramId:
        of(op.result()).assign(1, static_cast<uint32_t>(program_[static_cast<size_t>(op.int_attr(AttrName::kAxis))]));
        return {};
      case OpKind::kNumPrograms:
        of(op.result()).assign(1, static_cast<uint32_t>(grid_[static_cast<size_t>(op.int_attr(AttrName::kAxis))]));
        return {};
      case OpKind::kCtaRank:
        of(op.result()).assign(1, static_cast<uint32_t>(rank_));
        return {};
      case OpKind::kArange: {
        Elements& out = of(op.result());
        out.resize(count(op));
        for (size_t i = 0; i < out.size(); ++i)
          out[i] = static_cast<uint32_t>(op.int_attr(AttrName::kStart) + static_cast<int64_t>(i));
        return {};
      }
      case OpKind::kSplat:
        of(op.result()).assign(count(op), of(op.operand(0))[0]);
        return {};
      case OpKind::kExpandDims:
      case OpKind::kReshape:
      case OpKind::kConvertLayout:
        of(op.result()) = of(op.operand(0));
        return {};
      case OpKind::kBroadcast:
      case OpKind::kTrans:
        return move(op);
      case OpKind::kJoin: {
        const Elements &a = of(op.operand(0)), &b = of(op.operand(1));
        Elements& out = of(op.result());
        out.resize(2 * a.size());
        for (size_t i = 0; i < a.size(); ++i) out[2 * i] = a[i], out[2 * i + 1] = b[i];
        return {};
      }
      case OpKind::kSplit: {
        const Elements& in = of(op.operand(0));
        for (size_t side = 0; side < 2; ++side) {
          Elements& out = of(op.result(static_cast<int>(side)));
          out.resize(in.size() / 2);
          for (size_t i = 0; i < out.size(); ++i) out[i] = in[2 * i + side];
        }
        return {};
      }
      case OpKind::kLoad:
        return load(op);
      case OpKind::kStore:
        return store(op);
      case OpKind::kAtomicRmw:
        return atomic_rmw(op);
      case OpKind::kAtomicCas:
        return atomic_cas(op);
      case OpKind::kReduce:
        return reduce(op);
      case OpKind::kScan:
        return scan(op);
      case OpKind::kBucketPlace:
        return bucket_place(op);
      case OpKind::kScatter:
        return scatter(op);
      case OpKind::kDot:
        return dot(op);
      case OpKind::kMakeDescriptor: {
        Elements& out = of(op.result());  // its operands, in order
        out.clear();
        for (const ir::Value* v : op.operands) out.push_back(of(v)[0]);
        return {};
      }
      case OpKind::kDescriptorLoad:
        return descriptor_load(op);
      case OpKind::kDescriptorStore:
        return descriptor_store(op);
      case OpKind::kFor:
        return for_loop(op);
      case OpKind::kWhile:
        return while_loop(op);
      case OpKind::kIf: {
        const ir::Block& taken = *op.region(of(op.operand(0))[0] ? 0 : 1);
        KILN_CHECK_OK(block(taken));
        pass(*taken.terminator(), 0, op.results);
        return {};
      }
      case OpKind::kPrint:
        return print_values(op);
      case OpKind::kAssert:
        return check_assert(op);
      case OpKind::kBarrier:  // one thread plays all of them
      case OpKind::kPrefetch:
      case OpKind::kAssume:
      case OpKind::kGdcWait:  // what was launched before has ended
      case OpKind::kGdcLaunchDependents:
      case OpKind::kYield:
      case OpKind::kCondition:
      case OpKind::kReturn:
        return {};
#define KILN_GATHER_OP(e, ...) case OpKind::k##e:
#define KILN_ACROSS_OP(...)
#include "compiler/ir/ops.def"
        return gather(op);
      case OpKind::kInlineAsm:
      case OpKind::kAsmEffect:
        return error_at(op.range, ErrorKind::kUnsupported, "the interpreter runs no inline assembly");
#define KILN_ELEMENTWISE_OP(e, ...) case OpKind::k##e:
#include "compiler/ir/ops.def"
        KILN_UNREACHABLE("elementwise ops are done above");
#define KILN_MACHINE_OP(e, ...) case OpKind::k##e:
#include "compiler/ir/ops.def"
        KILN_UNREACHABLE("{} is played by run_distributed", info(op.kind).mnemonic);
    }
    KILN_UNREACHABLE("{} in the interpreter", info(op.kind).mnemonic);
  }

  static size_t count(const ir::Op& op) { return static_cast<size_t>(op.result()->type.shape.numel()); }

  void elementwise(const ir::Op& op, int64_t n) {
    const uint64_t* in[3] = {};
    for (size_t i = 0; i < op.operands.size(); ++i) in[i] = of(op.operands[i]).data();
    Elements& out = of(op.result());
    out.resize(static_cast<size_t>(n));
    eval_lanes(op, std::span<const uint64_t* const>(in, op.operands.size()), n, out.data());
  }

  // Broadcast and trans: result element i is operand element Σ index_d · stride_d.
  Status move(const ir::Op& op) {
    const ir::Shape &from = op.operand(0)->type.shape, &to = op.result()->type.shape;
    std::array<int64_t, ir::kMaxRank> own{}, stride{};
    for (int64_t d = from.rank - 1, s = 1; d >= 0; --d) {
      own[d] = from[static_cast<int>(d)] == 1 ? 0 : s;
      s *= from[static_cast<int>(d)];
    }
    for (int d = 0; d < to.rank; ++d)
      stride[d] =
          op.kind == OpKind::kBroadcast ? own[d] : own[std::get<std::vector<int64_t>>(*op.find(AttrName::kOrder))[d]];
    const Elements& in = of(op.operand(0));
    Elements& out = of(op.result());
    out.resize(count(op));
    std::array<int32_t, ir::kMaxRank> index{};
    int64_t source = 0;
    for (uint64_t& element : out) {
      element = in[static_cast<size_t>(source)];
      for (int d = to.rank - 1; d >= 0; --d) {
        source += stride[d];
        if (++index[d] < to[d]) break;
        source -= stride[d] * to[d];
        index[d] = 0;
      }
    }
    return {};
  }

  Status gather(const ir::Op& op) {
    Elements out(count(op));
    std::vector<uint64_t> others(op.operands.size() - 1);
    for (size_t i = 0; i < out.size(); ++i) {
      for (size_t k = 0; k < others.size(); ++k) {
        const Elements& operand = of(op.operands[k + 1]);
        others[k] = operand[op.operands[k + 1]->type.is_scalar() ? 0 : i];
      }
      out[i] = of(op.operand(0))[static_cast<size_t>(source_element(op, static_cast<int64_t>(i), others))];
    }
    of(op.result()) = std::move(out);
    return {};
  }

  Status bucket_place(const ir::Op& op) {
    const Elements& digits = of(op.operand(0));
    Elements counts(static_cast<size_t>(op.int_attr(AttrName::kBins)));
    for (uint64_t digit : digits)
      if (digit < counts.size()) ++counts[digit];
    Elements begins(counts.size());
    std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), uint64_t{0});
    Elements next = begins, places(digits.size());
    for (size_t i = 0; i < digits.size(); ++i)
      places[i] = digits[i] < counts.size() ? next[digits[i]]++ : element_mask(32);
    of(op.result(0)) = std::move(places);
    of(op.result(1)) = std::move(counts);
    of(op.result(2)) = std::move(begins);
    return {};
  }

  Status scatter(const ir::Op& op) {
    const Elements &from = of(op.operand(0)), &index = of(op.operand(1));
    Elements out(from.size());
    for (size_t i = 0; i < from.size(); ++i)
      if (int64_t to = target_element(op, static_cast<int64_t>(i), index[i]); to >= 0)
        out[static_cast<size_t>(to)] = from[i];
    of(op.result()) = std::move(out);
    return {};
  }

  // --- memory

  Status check(const ir::Op& op, uint64_t address, int64_t element) const {
    std::string wrong = access_fault(op, memory_, address, element);
    if (!wrong.empty()) return fault(op, std::move(wrong));
    return {};
  }

  Status load(const ir::Op& op) {
    const Elements& pointers = of(op.operand(0));
    const Elements* mask = op.operands.size() > 1 ? &of(op.operand(1)) : nullptr;
    const Elements* other = op.operands.size() > 2 ? &of(op.operand(2)) : nullptr;
    Elements& out = of(op.result());
    out.resize(pointers.size());
    for (size_t i = 0; i < pointers.size(); ++i) {
      if (mask && !(*mask)[i]) {
        out[i] = other ? (*other)[i] : 0;
        continue;
      }
      KILN_CHECK_OK(check(op, pointers[i], static_cast<int64_t>(i)));
      out[i] = Memory::read(pointers[i], op.result()->type.dtype);
    }
    return {};
  }

  Status store(const ir::Op& op) {
    const Elements &pointers = of(op.operand(0)), &value = of(op.operand(1));
    const Elements* mask = op.operands.size() > 2 ? &of(op.operand(2)) : nullptr;
    for (size_t i = 0; i < pointers.size(); ++i) {
      if (mask && !(*mask)[i]) continue;
      KILN_CHECK_OK(check(op, pointers[i], static_cast<int64_t>(i)));
      Memory::write(pointers[i], op.operand(1)->type.dtype, value[i]);
    }
    return {};
  }

  /// Calls access(address, i) for each element i of a block that lies inside of the descriptor's tensor.
  template <class Access>
  Status each_of_block(const ir::Op& op, size_t first_offset, Access&& access) {
    std::vector<uint64_t> start;
    for (size_t i = first_offset; i < op.operands.size(); ++i) start.push_back(of(op.operands[i])[0]);
    const std::vector<uint64_t> addresses = TensorBlock(op.operand(0)->type, of(op.operand(0)), start).addresses();
    for (size_t i = 0; i < addresses.size(); ++i) {
      if (!addresses[i]) continue;
      KILN_CHECK_OK(check(op, addresses[i], static_cast<int64_t>(i)));
      access(addresses[i], i);
    }
    return {};
  }

  Status descriptor_load(const ir::Op& op) {
    Elements out(count(op));
    KILN_CHECK_OK(each_of_block(
        op, 1, [&](uint64_t address, size_t i) { out[i] = Memory::read(address, op.result()->type.dtype); }));
    of(op.result()) = std::move(out);
    return {};
  }

  Status descriptor_store(const ir::Op& op) {
    const Elements& value = of(op.operand(1));
    const DType dtype = op.operand(1)->type.dtype;
    const auto rmw = op.find_word<ir::Rmw>();
    return each_of_block(op, 2, [&](uint64_t address, size_t i) {
      uint64_t bits = value[i];
      if (rmw) bits = combine_rmw(*rmw, ir::scalar_type(dtype), Memory::read(address, dtype), bits);
      Memory::write(address, dtype, bits);
    });
  }

  Status dot(const ir::Op& op) {
    Elements out(count(op));
    eval_dot(op.operand(0)->type, op.operand(1)->type, op.result()->type,
             op.find_word<ir::Precision>().value_or(ir::Precision::kTf32), of(op.operand(0)), of(op.operand(1)),
             of(op.operand(2)), out);
    of(op.result()) = std::move(out);
    return {};
  }

  Status atomic_rmw(const ir::Op& op) {
    const Elements &pointers = of(op.operand(0)), &value = of(op.operand(1));
    const Elements* mask = op.operands.size() > 2 ? &of(op.operand(2)) : nullptr;
    const ir::Type& type = op.result()->type;
    Elements out(pointers.size());
    for (size_t i = 0; i < pointers.size(); ++i) {
      if (mask && !(*mask)[i]) continue;
      KILN_CHECK_OK(check(op, pointers[i], static_cast<int64_t>(i)));
      out[i] = Memory::read(pointers[i], type.dtype);
      Memory::write(pointers[i], type.dtype, combine_rmw(op.word<ir::Rmw>(), type, out[i], value[i]));
    }
    of(op.result()) = std::move(out);
    return {};
  }

  Status atomic_cas(const ir::Op& op) {
    const Elements &pointers = of(op.operand(0)), &expected = of(op.operand(1)), &value = of(op.operand(2));
    const DType dtype = op.result()->type.dtype;
    Elements out(pointers.size());
    for (size_t i = 0; i < pointers.size(); ++i) {
      KILN_CHECK_OK(check(op, pointers[i], static_cast<int64_t>(i)));
      out[i] = Memory::read(pointers[i], dtype);
      if (out[i] == expected[i]) Memory::write(pointers[i], dtype, value[i]);
    }
    of(op.result()) = std::move(out);
    return {};
  }

  // --- across elements

  /// Runs a combine region on n independent pairs at once: its scalars hold n elements each. Both branches of an `if`
  /// are pure, so both run and each pair takes its own.
  void combine_block(const ir::Block& b, int64_t n) {
    for (const ir::Op* op = b.first; op; op = op->next) {
      ++steps_;
      if (op->kind == OpKind::kConstant) {
        of(op->result()).assign(static_cast<size_t>(n), constant_bits(*op));
      } else if (op->kind == OpKind::kIf) {
        combine_block(*op->region(0), n);
        combine_block(*op->region(1), n);
        const Elements& condition = of(op->operand(0));
        for (size_t r = 0; r < op->results.size(); ++r) {
          const Elements &yes = of(op->region(0)->terminator()->operands[r]),
                         &no = of(op->region(1)->terminator()->operands[r]);
          Elements& out = of(op->results[r]);
          out.resize(static_cast<size_t>(n));
          for (size_t i = 0; i < out.size(); ++i) out[i] = condition[i] ? yes[i] : no[i];
        }
      } else if (!ir::is_terminator(op)) {
        elementwise(*op, n);
      }
    }
  }

  using Tuple = std::vector<Elements>;  // one per operand of the reduce or scan

  Tuple combine(const ir::Op& op, Tuple a, Tuple b) {
    const ir::Block& region = *op.region();
    const size_t width = a.size();
    const int64_t n = static_cast<int64_t>(a[0].size());
    for (size_t i = 0; i < width; ++i) {
      of(region.args[i]) = std::move(a[i]);
      of(region.args[width + i]) = std::move(b[i]);
    }
    combine_block(region, n);
    Tuple out;
    for (const ir::Value* v : region.terminator()->operands) out.push_back(of(v));
    return out;
  }

  Status reduce(const ir::Op& op) {
    const Axis axis(op.operand(0)->type.shape, static_cast<int>(op.int_attr(AttrName::kAxis)));
    const int64_t rows = axis.rows();
    // level[i]: row r's element k stands at r * size + k; each level halves the size.
    auto sorted = [&](const ir::Value* v) {
      const Elements& in = of(v);
      Elements rows_first(in.size());
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t k = 0; k < axis.size; ++k)
          rows_first[static_cast<size_t>(r * axis.size + k)] = in[static_cast<size_t>(axis.at(r, k))];
      return rows_first;
    };
    auto every_second = [](const Elements& all, size_t first) {
      Elements half;
      for (size_t i = first; i < all.size(); i += 2) half.push_back(all[i]);
      return half;
    };
    Tuple level;
    for (const ir::Value* v : op.operands) level.push_back(sorted(v));
    int64_t size = axis.size;
    if (const ir::Op* product = ir::contracted_product(op); product && size > 1) {
      Elements sums = every_second(level[0], 0);
      const Elements x = every_second(sorted(product->operand(0)), 1), y = every_second(sorted(product->operand(1)), 1);
      eval_fma(*product, x.data(), y.data(), sums.data(), static_cast<int64_t>(sums.size()), sums.data());
      level[0] = std::move(sums);
      size /= 2;
    }
    for (; size > 1; size /= 2) {
      Tuple even, odd;
      for (const Elements& all : level) even.push_back(every_second(all, 0)), odd.push_back(every_second(all, 1));
      level = combine(op, std::move(even), std::move(odd));
    }
    for (size_t t = 0; t < level.size(); ++t) of(op.results[t]) = std::move(level[t]);
    return {};
  }

  Status scan(const ir::Op& op) {
    const Axis axis(op.operand(0)->type.shape, static_cast<int>(op.int_attr(AttrName::kAxis)));
    const bool reverse = op.flag(AttrName::kReverse);
    Tuple out;
    for (const ir::Value* v : op.operands) out.push_back(of(v));
    Tuple accumulated;
    for (int64_t step = 0; step < axis.size; ++step) {
      const int64_t k = reverse ? axis.size - 1 - step : step;
      Tuple column;
      for (const Elements& tile : out) {
        Elements& elements = column.emplace_back();
        for (int64_t r = 0; r < axis.rows(); ++r) elements.push_back(tile[static_cast<size_t>(axis.at(r, k))]);
      }
      accumulated = step == 0 ? std::move(column) : combine(op, std::move(accumulated), std::move(column));
      for (size_t t = 0; t < out.size(); ++t)
        for (int64_t r = 0; r < axis.rows(); ++r)
          out[t][static_cast<size_t>(axis.at(r, k))] = accumulated[t][static_cast<size_t>(r)];
    }
    for (size_t t = 0; t < out.size(); ++t) of(op.results[t]) = std::move(out[t]);
    return {};
  }

  // --- control flow

  Status for_loop(const ir::Op& op) {
    const DType dtype = op.operand(0)->type.dtype;
    auto bound = [&](int i) -> __int128 {
      const uint64_t bits = of(op.operand(i))[0];
      return is_signed(dtype) ? static_cast<__int128>(int_value(dtype, bits)) : static_cast<__int128>(bits);
    };
    const __int128 end = bound(1), step = bound(2);
    if (step <= 0) return fault(op, "a loop step that is not positive");
    const ir::Block& body = *op.region();
    for (size_t i = 3; i < op.operands.size(); ++i) of(body.args[i - 2]) = of(op.operands[i]);
    for (__int128 iv = bound(0); iv < end; iv += step) {
      of(body.args[0]).assign(1, static_cast<uint64_t>(iv) & element_mask(bits(dtype)));
      KILN_CHECK_OK(block(body));
      pass(*body.terminator(), 0, std::span(body.args).subspan(1));
    }
    for (size_t i = 0; i < op.results.size(); ++i) of(op.results[i]) = of(body.args[i + 1]);
    return {};
  }

  Status while_loop(const ir::Op& op) {
    const ir::Block &before = *op.region(0), &after = *op.region(1);
    for (size_t i = 0; i < op.operands.size(); ++i) of(before.args[i]) = of(op.operands[i]);
    for (;;) {
      KILN_CHECK_OK(block(before));
      const ir::Op& condition = *before.terminator();
      if (!of(condition.operand(0))[0]) {
        pass(condition, 1, op.results);
        return {};
      }
      pass(condition, 1, after.args);
      KILN_CHECK_OK(block(after));
      pass(*after.terminator(), 0, before.args);
    }
  }

  // --- effects

  Status print_values(const ir::Op& op) {
    const std::string program = fmt::format("pid ({}, {}, {})", program_[0], program_[1], program_[2]);
    auto emit = [&](const std::string& line) {
      if (options_.on_print)
        options_.on_print(line);
      else
        std::fputs((line + "\n").c_str(), stdout);
    };
    const std::string& text = op.text_attr(AttrName::kText);
    if (op.operands.empty()) emit(fmt::format("{} {}", program, text));
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const ir::Type& type = op.operands[k]->type;
      const Elements& elements = of(op.operands[k]);
      for (size_t i = 0; i < elements.size(); ++i)
        emit(fmt::format("{} idx {} {}{}{}", program,
                         type.is_tile() ? index_text(type.shape, static_cast<int64_t>(i)) : "()", text,
                         op.operands.size() > 1 ? fmt::format("(operand {}) ", k) : "",
                         element_text(type, elements[i], op.flag(AttrName::kHex))));
    }
    return {};
  }

  Status check_assert(const ir::Op& op) {
    const Elements& condition = of(op.operand(0));
    const Elements* mask = op.operands.size() > 1 ? &of(op.operand(1)) : nullptr;
    for (size_t i = 0; i < condition.size(); ++i) {
      if (condition[i] || (mask && !(*mask)[i])) continue;
      const ir::Shape& shape = op.operand(0)->type.shape;
      return error_at(op.range, ErrorKind::kMismatch, "assertion failed: {}, in program ({}, {}, {}){}",
                      op.text_attr(AttrName::kText), program_[0], program_[1], program_[2],
                      shape.rank ? " at element " + index_text(shape, static_cast<int64_t>(i)) : "");
    }
    return {};
  }

  const Memory& memory_;
  const Options& options_;
  std::array<int32_t, 3> grid_, program_{};
  int rank_ = 0;  // of the block, where the program asks for it
  int64_t steps_ = 0;
  std::unordered_map<const ir::Value*, size_t> slots_;
  std::vector<Elements> values_;  // one program's values; reused by the next
};

}  // namespace

Status run(const ir::Module& module, std::array<int32_t, 3> grid, std::span<const uint64_t> args, const Memory& memory,
           const Options& options) {
  if (module.stage != ir::Stage::kTile)
    return error(ErrorKind::kUnsupported, "this interpreter runs the tile stage, and @{} is in the distributed stage",
                 module.name);
  if (args.size() != module.body()->args.size())
    return error(ErrorKind::kType, "@{} takes {} arguments, got {}", module.name, module.body()->args.size(),
                 args.size());
  std::vector<std::array<int32_t, 3>> programs;
  for (int32_t z = 0; z < grid[2]; ++z)
    for (int32_t y = 0; y < grid[1]; ++y)
      for (int32_t x = 0; x < grid[0]; ++x) programs.push_back({x, y, z});
  if (options.seed) std::shuffle(programs.begin(), programs.end(), std::mt19937_64(options.seed));
  TileMachine machine(module, grid, memory, options);
  // A program that asks which of its blocks runs it is split among them.
  bool split = false;
  for (const ir::Op* op : *module.body())
    split = split || ir::any_nested(op, [](const ir::Op* o) { return o->kind == OpKind::kCtaRank; });
  for (const auto& id : programs)
    for (int rank = 0; rank < (split ? module.num_ctas : 1); ++rank)
      KILN_CHECK_OK(machine.run_program(module, id, args, rank));
  return {};
}

}  // namespace kiln::interp
