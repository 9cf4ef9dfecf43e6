#include "tests/unit/fusion/random_graph.h"

#include <algorithm>
#include <numeric>

#include "compiler/fusion/infer.h"

namespace kiln::fusion::testing {

namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kBF16, DType::kF16, DType::kF64,
                            DType::kI32, DType::kI64, DType::kI8,   DType::kU8,  DType::kI1};
constexpr int64_t kSizes[] = {1, 2, 3, 5, 8, 17, 32, 33, 70, 129};
/// Of some: what takes parts of rows, several blocks for a run, or whole tiles and a last one.
constexpr int64_t kLargeSizes[] = {1, 3, 24, 64, 255, 512, 1000, 2003, 4096, 20011};
constexpr int64_t kMostElements = 6000, kMostElementsOfLarge = 300'000;
constexpr ExprOp kBinary[] = {ExprOp::kAdd,      ExprOp::kSub,    ExprOp::kMul,        ExprOp::kDiv,
                              ExprOp::kFloorDiv, ExprOp::kMod,    ExprOp::kMaximum,    ExprOp::kMinimum,
                              ExprOp::kLt,       ExprOp::kGe,     ExprOp::kEq,         ExprOp::kNe,
                              ExprOp::kBitAnd,   ExprOp::kBitXor, ExprOp::kLogicalAnd, ExprOp::kLogicalOr,
                              ExprOp::kAdd,      ExprOp::kMul,    ExprOp::kSub};
constexpr ExprOp kUnary[] = {ExprOp::kNeg,   ExprOp::kAbs,   ExprOp::kTanh,   ExprOp::kErf,      ExprOp::kSigmoid,
                             ExprOp::kRelu,  ExprOp::kSilu,  ExprOp::kGelu,   ExprOp::kGeluTanh, ExprOp::kFloor,
                             ExprOp::kRound, ExprOp::kCeil,  ExprOp::kSin,    ExprOp::kCos,      ExprOp::kLogicalNot,
                             ExprOp::kIsNan, ExprOp::kTrunc, ExprOp::kBitNot, ExprOp::kTanh,     ExprOp::kSigmoid};
constexpr ExprOp kReductions[] = {ExprOp::kSum, ExprOp::kMax,    ExprOp::kMin,   ExprOp::kMean,
                                  ExprOp::kVar, ExprOp::kArgMax, ExprOp::kArgMin};
constexpr ExprOp kRows[] = {ExprOp::kSoftmax, ExprOp::kLogSoftmax, ExprOp::kLayerNorm, ExprOp::kRmsNorm,
                            ExprOp::kCumSum,  ExprOp::kCumProd,    ExprOp::kCumMax,    ExprOp::kCumMin};

constexpr ExprOp kScans[] = {ExprOp::kCumSum, ExprOp::kCumProd, ExprOp::kCumMax, ExprOp::kCumMin};

class Generator {
 public:
  Generator(std::mt19937& random, const Device& device) : random_(random), device_(device) {}

  Problem run(int operations) {
    const bool is_large = pick(8) == 0;
    space_.resize(1 + pick(3));
    for (int64_t& d : space_)
      d = is_large ? kLargeSizes[pick(std::size(kLargeSizes))] : kSizes[pick(std::size(kSizes))];
    while (numel(space_) > (is_large ? kMostElementsOfLarge : kMostElements)) space_[pick(space_.size())] = 3;
    if (pick(25) == 0) space_[pick(space_.size())] = 0;
    for (size_t i = 0, n = 1 + pick(3); i < n; ++i) leaf();
    for (int tries = 0; made_ < operations && tries < operations * 8; ++tries) step();
    p_.graph.outputs = {static_cast<int>(p_.graph.nodes.size()) - 1};
    if (p_.graph.nodes.back().op == ExprOp::kScalar) p_.graph.outputs = {0};
    while (pick(3) == 0) p_.graph.outputs.push_back(tensor());
    some_arguments();
    return std::move(p_);
  }

 private:
  size_t pick(size_t n) { return random_() % n; }
  int newest() const { return static_cast<int>(p_.graph.nodes.size()) - 1; }
  Node& node(int i) { return p_.graph.nodes[static_cast<size_t>(i)]; }

  /// A shape that broadcasts to the space.
  Shape part() {
    Shape s = space_;
    if (pick(3) == 0)
      for (int64_t& d : s)
        if (pick(2) && d != 0) d = 1;
    while (!s.empty() && pick(6) == 0) s.erase(s.begin());
    return s;
  }

  int leaf() {
    const DType type = kTypes[pick(std::size(kTypes))];
    const Shape shape = part();
    // Row-major, transposed, or with gaps.
    std::vector<size_t> order(shape.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (pick(3) == 0) std::shuffle(order.begin(), order.end(), random_);
    Shape strides(shape.size());
    int64_t stride = pick(4) == 0 ? 2 : 1;
    for (size_t i = order.size(); i-- > 0;) {
      strides[order[i]] = stride;
      stride *= std::max<int64_t>(1, shape[order[i]]) + (pick(5) == 0 ? 3 : 0);
    }
    std::vector<double> v(static_cast<size_t>(numel(shape)));
    for (double& x : v)
      x = is_float(type)       ? (static_cast<double>(random_() % 1000) - 500) / 250
          : type == DType::kI1 ? static_cast<double>(random_() % 2)
          : is_signed(type)    ? static_cast<double>(random_() % 11) - 5
                               : static_cast<double>(random_() % 11);
    constexpr const char* kNames[] = {"", "x", "y", "weight"};
    return add_input(p_, device_, type, shape, strides, pick(4) ? 0 : 3, v, kNames[pick(4)]);
  }

  int number() {
    Node n = pick(2) ? scalar(static_cast<double>(pick(9)) / 4 + 0.25) : scalar(static_cast<int64_t>(1 + pick(5)));
    p_.graph.nodes.push_back(n);
    grow();
    return static_cast<int>(p_.graph.nodes.size()) - 1;
  }

  /// Some of the numbers that may be arguments of their kernels are.
  void some_arguments() {
    for (Node& n : p_.graph.nodes)
      n.is_argument = n.op == ExprOp::kScalar && is_ordinary(n.attributes.value) && pick(3) != 0;
    for (const Node& n : p_.graph.nodes)
      for (int i : n.inputs)
        if (!takes_argument(n.op)) node(i).is_argument = false;
  }

  void grow() {
    p_.tensors.resize(p_.graph.nodes.size());
    p_.elements.resize(p_.graph.nodes.size());
  }

  int tensor() {
    // Recent ones more often, so that chains arise.
    for (;;) {
      const size_t n = p_.graph.nodes.size();
      const size_t i = pick(2) ? n - 1 - pick(std::min<size_t>(n, 4)) : pick(n);
      if (p_.graph.nodes[i].op != ExprOp::kScalar) return static_cast<int>(i);
    }
  }

  void make(ExprOp op, std::vector<int> inputs, ExprAttributes a = {}) {
    const size_t before = p_.graph.nodes.size();
    const auto made = append(p_.graph, op, inputs, std::move(a));
    // A long vector and a long column broadcast to more than memory has.
    if (made.ok() && numel(p_.graph.nodes.back().shape) > 4 * kMostElementsOfLarge)
      p_.graph.nodes.resize(before);
    else if (made.ok())
      ++made_;
    grow();
  }

  std::vector<int> some_axes(const Shape& shape) {
    std::vector<int> axes;
    for (size_t d = 0; d < shape.size(); ++d)
      if (pick(2)) axes.push_back(static_cast<int>(d));
    return axes;
  }

  void step() {
    const int x = tensor();
    const Shape shape = node(x).shape;
    ExprAttributes a;
    switch (pick(14)) {
      case 13:
        a.shape = part();
        a.value = static_cast<double>(pick(9)) / 4;
        a.dtype = kTypes[pick(std::size(kTypes))];
        make(ExprOp::kFull, {}, a);
        break;
      case 12:
        switch (pick(6)) {
          case 0:
            scan_backwards(x, shape);
            break;
          case 1:
            select_between_alike(x, shape);
            break;
          default:
            take(x, shape);
        }
        break;
      case 0:
      case 1:
      case 2:
      case 3: {
        const ExprOp op = kBinary[pick(std::size(kBinary))];
        const bool divides = op == ExprOp::kDiv || op == ExprOp::kFloorDiv || op == ExprOp::kMod;
        make(op, {x, divides || pick(4) == 0 ? number() : tensor()});
        break;
      }
      case 4:
      case 5:
        make(kUnary[pick(std::size(kUnary))], {x});
        break;
      case 6:
        a.dtype = kTypes[pick(std::size(kTypes))];
        make(ExprOp::kCast, {x}, a);
        break;
      case 7: {
        a.axes = some_axes(shape);
        a.keepdim = pick(2);
        if (a.axes.empty() && !shape.empty()) a.axes = {-1};
        make(kReductions[pick(std::size(kReductions))], {x}, a);
        break;
      }
      case 8:
        if (shape.empty() || numel(shape) == 0) break;
        a.axes = {static_cast<int>(pick(2) ? shape.size() - 1 : pick(shape.size()))};
        make(kRows[pick(std::size(kRows))], {x}, a);
        break;
      case 9:
        view(x, shape);
        break;
      case 10:
        product(x);
        break;
      default:
        if (pick(2)) {
          make(ExprOp::kLt, {x, number()});
          make(ExprOp::kWhere, {static_cast<int>(p_.graph.nodes.size()) - 1, tensor(), pick(2) ? number() : x});
        } else {
          make(ExprOp::kClamp, {x, number(), number()});
        }
    }
  }

  /// last, last - 1, … along one dimension of that shape.
  int places_from_end(const Shape& shape, size_t d, int64_t last, ExprAttributes counts = {}) {
    ExprAttributes shaped;
    counts.shape = {shape[d]}, shaped.shape = shape;
    make(ExprOp::kIota, {}, counts);
    p_.graph.nodes.push_back(scalar(last));
    grow();
    make(ExprOp::kSub, {newest(), newest() - 1});
    make(ExprOp::kReshape, {newest()}, shaped);
    return newest();
  }

  /// Those of all elements of a tensor of that shape, the last first.
  int places_of_flip(const Shape& shape, size_t d) {
    Shape line(shape.size(), 1);
    line[d] = shape[d];
    return places_from_end(line, d, shape[d] - 1);
  }

  /// Along one or two dimensions, at places that a tensor holds or that are reckoned from where an element is.
  void take(int x, const Shape& shape) {
    if (shape.empty() || numel(shape) == 0) return;
    ExprAttributes a;
    a.axes = {static_cast<int>(pick(shape.size()))};
    if (shape.size() > 1 && pick(3) == 0) a.axes.push_back((a.axes[0] + 1) % static_cast<int>(shape.size()));
    std::vector<int> inputs = {x};
    for (const int axis : a.axes) {
      const auto d = static_cast<size_t>(axis);
      const int64_t size = shape[d];
      Shape places(shape.size(), 1);
      places[d] = std::min(kSizes[pick(6)], 2 * size);
      if (pick(2)) {
        std::vector<double> v(static_cast<size_t>(places[d]));
        for (double& p : v)
          p = static_cast<double>(static_cast<int64_t>(random_() % static_cast<uint64_t>(2 * size)) - size);
        inputs.push_back(
            add_input(p_, device_, pick(2) ? DType::kI64 : DType::kI32, places, row_major(places), 0, v, ""));
        continue;
      }
      ExprAttributes counts;
      if (pick(2)) counts.dtype = DType::kI32;
      inputs.push_back(places_from_end(places, d, size - 1, counts));
    }
    make(ExprOp::kTake, inputs, a);
  }

  /// A select between what the same operations make of a tensor and of its flip.
  void select_between_alike(int x, const Shape& shape) {
    if (shape.empty() || numel(shape) == 0) return;
    ExprAttributes along;
    const size_t d = pick(shape.size());
    along.axes = {static_cast<int>(d)};
    make(ExprOp::kTake, {x, places_of_flip(shape, d)}, along);
    int sides[] = {x, newest()};
    for (size_t i = 0, n = 1 + pick(4); i < n; ++i) {
      const bool is_unary = pick(2) == 0, is_square = pick(4) == 0;
      const ExprOp op = is_unary ? kUnary[pick(std::size(kUnary))] : is_square ? ExprOp::kMul : ExprOp::kSub;
      const int other = pick(2) ? number() : tensor();
      for (int& side : sides) {
        const int before = newest();
        make(op, is_unary ? std::vector{side} : std::vector{side, is_square ? side : other});
        if (newest() > before) side = newest();
      }
    }
    make(ExprOp::kLt, {tensor(), number()});
    make(ExprOp::kWhere, {newest(), sides[0], sides[1]});
  }

  /// A flip of a scan of a flip.
  void scan_backwards(int x, const Shape& shape) {
    if (shape.empty() || numel(shape) == 0) return;
    ExprAttributes along;
    const size_t d = pick(shape.size());
    along.axes = {static_cast<int>(d)};
    const int places = places_of_flip(shape, d);
    make(ExprOp::kTake, {x, places}, along);
    make(kScans[pick(std::size(kScans))], {newest()}, along);
    make(ExprOp::kTake, {newest(), places}, along);
  }

  void view(int x, const Shape& shape) {
    ExprAttributes a;
    switch (pick(4)) {
      case 0:
        a.axes.resize(shape.size());
        std::iota(a.axes.begin(), a.axes.end(), 0);
        std::shuffle(a.axes.begin(), a.axes.end(), random_);
        make(ExprOp::kPermute, {x}, a);
        break;
      case 1:
        if (numel(shape) > 1500) break;
        a.shape = shape;
        a.shape.insert(a.shape.begin(), static_cast<int64_t>(1 + pick(3)));
        make(ExprOp::kExpand, {x}, a);
        break;
      case 2:
        if (pick(2) && shape.size() > 1)
          a.shape = {-1};
        else
          a.shape = shape, a.shape.insert(a.shape.begin() + static_cast<std::ptrdiff_t>(pick(shape.size() + 1)), 1);
        make(ExprOp::kReshape, {x}, a);
        break;
      default:
        a.shape = shape;
        a.starts.assign(shape.size(), 0);
        a.steps.assign(shape.size(), 1);
        for (size_t d = 0; d < shape.size(); ++d)
          if (shape[d] > 1 && pick(2)) {
            a.starts[d] = static_cast<int64_t>(pick(2));
            a.steps[d] = static_cast<int64_t>(1 + pick(2));
            a.shape[d] = (shape[d] - 1 - a.starts[d]) / a.steps[d] + 1;
          }
        make(ExprOp::kSlice, {x}, a);
    }
  }

  void product(int x) {
    const Node& n = node(x);
    if (n.shape.empty() || !is_float(n.dtype) || numel(n.shape) > 3000) return;
    const int64_t columns = kSizes[pick(7)];
    Shape shape = {n.shape.back(), columns};
    std::vector<double> v(static_cast<size_t>(numel(shape)));
    for (double& e : v) e = (static_cast<double>(random_() % 1000) - 500) / 500;
    const bool transposed = pick(2);
    const int w = add_input(p_, device_, n.dtype, shape, transposed ? Shape{1, shape[0]} : row_major(shape), 0, v, "w");
    make(ExprOp::kMatMul, {x, w});
  }

  std::mt19937& random_;
  Device device_;
  Problem p_;
  Shape space_;
  int made_ = 0;
};

}  // namespace

Problem random_problem(std::mt19937& random, const Device& device, int operations) {
  return Generator(random, device).run(operations);
}

}  // namespace kiln::fusion::testing
