#include "compiler/codegen/host_schedule.h"

#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace kiln::codegen {

namespace {

// Shorter blocks fit into the CPU's own window; much longer ones are not worth the compile time.
constexpr size_t kShortest = 24, kLongest = 4000;

// Half cycles, of a recent x86 core: two vector instructions start in a cycle.
struct Cost {
  int latency, issue;
};

unsigned vector_bits(const llvm::Type* type) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (!vector) return 0;
  // Masks are as wide as what they were compared from; 32 bits is the usual case.
  const unsigned lane = std::max(vector->getScalarSizeInBits(), 1u);
  return (lane == 1 ? 32 : lane) * vector->getNumElements();
}

/// A vector of copies of one that is there already: no instruction.
bool is_concatenation(const llvm::Instruction& i) {
  auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&i);
  if (!shuffle) return false;
  auto* copied = llvm::dyn_cast<llvm::Instruction>(shuffle->getOperand(0));
  return copied && copied->getParent() != i.getParent();
}

bool is_prefetch(const llvm::Instruction& i) {
  auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  return intrinsic && intrinsic->getIntrinsicID() == llvm::Intrinsic::prefetch;
}

Cost cost_of(const llvm::Instruction& i, unsigned register_bits) {
  const llvm::Type* type = i.getType()->isVoidTy() ? i.getOperand(0)->getType() : i.getType();
  const int parts = static_cast<int>(std::max(1u, (vector_bits(type) + register_bits - 1) / register_bits));
  switch (i.getOpcode()) {
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub:
      return {6, parts};
    case llvm::Instruction::FMul:
      return {8, parts};
    case llvm::Instruction::FDiv:
      return {24, parts * 4};
    case llvm::Instruction::Load:
      return {14, parts};
    case llvm::Instruction::Call:
      if (auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&i)) {
        if (intrinsic->getIntrinsicID() == llvm::Intrinsic::sqrt) return {32, parts * 6};
        if (intrinsic->getIntrinsicID() == llvm::Intrinsic::fma) return {8, parts};
      }
      return {16, parts};
    case llvm::Instruction::ShuffleVector:
      if (is_concatenation(i)) return {0, 0};
      return {2, parts};
    default:
      return {2, vector_bits(type) ? parts : 0};
  }
}

struct Node {
  llvm::Instruction* instruction;
  std::vector<unsigned> users, operands;  // within the block; operands only of vectors
  unsigned waits = 0;                     // operands and earlier memory accesses still to come
  unsigned unread = 0;                    // users that did not come yet; one more when other blocks use it
  int parts = 0;                          // registers of the result
  int height = 0, ready = 0;
  Cost cost{};
};

class BlockScheduler {
 public:
  BlockScheduler(llvm::BasicBlock& block, unsigned register_bits, unsigned registers)
      : block_(block), register_bits_(register_bits), registers_(static_cast<int>(registers)) {}

  void run() {
    collect();
    measure_heights();
    std::vector<unsigned> order = pick_all();
    llvm::Instruction* end = block_.getTerminator();
    for (unsigned n : order) nodes_[n].instruction->moveBefore(end->getIterator());
  }

 private:
  void collect() {
    for (llvm::Instruction& i : block_) {
      if (i.isTerminator()) continue;
      index_[&i] = static_cast<unsigned>(nodes_.size());
      nodes_.push_back({&i, {}, {}});
    }
    std::vector<unsigned> reads;
    int last_write = -1;
    auto after = [&](unsigned earlier, unsigned later) {
      nodes_[earlier].users.push_back(later);
      ++nodes_[later].waits;
    };
    for (unsigned n = 0; n < nodes_.size(); ++n) {
      Node& node = nodes_[n];
      llvm::Instruction& i = *node.instruction;
      const bool carried = llvm::isa<llvm::PHINode>(i);
      if (!carried) node.cost = cost_of(i, register_bits_);
      const unsigned bits = vector_bits(i.getType());
      if (bits && !is_concatenation(i)) node.parts = static_cast<int>((bits + register_bits_ - 1) / register_bits_);
      if (carried) continue;
      for (llvm::Value* operand : i.operands()) {
        auto it = index_.find(operand);
        if (it == index_.end()) continue;
        after(it->second, n);
        if (std::find(node.operands.begin(), node.operands.end(), it->second) != node.operands.end()) continue;
        node.operands.push_back(it->second);
        ++nodes_[it->second].unread;
      }
      if (is_prefetch(i)) continue;
      const bool writes = i.mayWriteToMemory() || i.mayHaveSideEffects();
      if (writes || i.mayReadFromMemory()) {
        if (last_write >= 0) after(static_cast<unsigned>(last_write), n);
        if (writes) {
          for (unsigned read : reads) after(read, n);
          reads.clear();
          last_write = static_cast<int>(n);
        } else {
          reads.push_back(n);
        }
      }
    }
    for (Node& node : nodes_)
      for (const llvm::User* user : node.instruction->users()) {
        auto* i = llvm::cast<llvm::Instruction>(user);
        if (i->getParent() == &block_ && !llvm::isa<llvm::PHINode>(i) && !i->isTerminator()) continue;
        ++node.unread;
        break;
      }
  }

  void measure_heights() {
    for (size_t n = nodes_.size(); n-- > 0;) {
      Node& node = nodes_[n];
      for (unsigned user : node.users) node.height = std::max(node.height, nodes_[user].height);
      node.height += node.cost.latency + node.cost.issue;
    }
  }

  int growth(const Node& node) const {
    int change = node.unread ? node.parts : 0;
    for (unsigned operand : node.operands)
      if (nodes_[operand].unread == 1) change -= nodes_[operand].parts;
    return change;
  }

  // What keeps within the registers; of that what is ready, else what will be soonest; of that the longest path.
  bool better(unsigned x, unsigned y, int time, int live) const {
    const Node &a = nodes_[x], &b = nodes_[y];
    const bool a_fits = growth(a) <= 0 || live + growth(a) <= registers_;
    const bool b_fits = growth(b) <= 0 || live + growth(b) <= registers_;
    if (a_fits != b_fits) return a_fits;
    if (!a_fits) return x < y;
    const int a_wait = std::max(0, a.ready - time), b_wait = std::max(0, b.ready - time);
    if (a_wait != b_wait) return a_wait < b_wait;
    if (a.height != b.height) return a.height > b.height;
    return x < y;
  }

  std::vector<unsigned> pick_all() {
    std::vector<unsigned> order, ready;
    int time = 0, live = 0;
    for (unsigned n = 0; n < nodes_.size(); ++n) {  // what loops carry is there already
      if (!llvm::isa<llvm::PHINode>(nodes_[n].instruction)) continue;
      if (nodes_[n].unread) live += nodes_[n].parts;
      for (unsigned user : nodes_[n].users) --nodes_[user].waits;
    }
    for (unsigned n = 0; n < nodes_.size(); ++n)
      if (nodes_[n].waits == 0 && !llvm::isa<llvm::PHINode>(nodes_[n].instruction)) ready.push_back(n);
    while (!ready.empty()) {
      size_t best = 0;
      for (size_t i = 1; i < ready.size(); ++i)
        if (better(ready[i], ready[best], time, live)) best = i;
      const unsigned n = ready[best];
      ready[best] = ready.back();
      ready.pop_back();
      order.push_back(n);
      Node& node = nodes_[n];
      live += growth(node);
      for (unsigned operand : node.operands) --nodes_[operand].unread;
      time = std::max(time, node.ready);
      for (unsigned user : node.users) {
        nodes_[user].ready = std::max(nodes_[user].ready, time + node.cost.latency + node.cost.issue);
        if (--nodes_[user].waits == 0) ready.push_back(user);
      }
      time += node.cost.issue;
    }
    return order;
  }

  llvm::BasicBlock& block_;
  const unsigned register_bits_;
  const int registers_;
  std::vector<Node> nodes_;
  std::unordered_map<const llvm::Value*, unsigned> index_;
};

size_t vector_instructions(const llvm::BasicBlock& block) {
  return static_cast<size_t>(std::count_if(block.begin(), block.end(),
                                           [](const llvm::Instruction& i) { return vector_bits(i.getType()) > 0; }));
}

}  // namespace

void schedule_long_blocks(llvm::Module& module, unsigned register_bits, unsigned registers) {
  for (llvm::Function& f : module)
    for (llvm::BasicBlock& block : f) {
      const size_t count = vector_instructions(block);
      if (count >= kShortest && count <= kLongest) BlockScheduler(block, register_bits, registers).run();
    }
}

}  // namespace kiln::codegen
