#include "compiler/lower/nvptx/intrinsics.h"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <bit>
#include <string>
#include <vector>

namespace kiln::lower {

using llvm::Value;

#if LLVM_VERSION_MAJOR >= 22

void mbarrier_arrive(llvm::IRBuilderBase& b, Value* barrier) {
  const bool of_cluster = barrier->getType()->getPointerAddressSpace() == kClusterSpace;
  b.CreateIntrinsic(of_cluster ? llvm::Intrinsic::nvvm_mbarrier_arrive_scope_cta_space_cluster
                               : llvm::Intrinsic::nvvm_mbarrier_arrive_scope_cta_space_cta,
                    {barrier, b.getInt32(1)});
}

void mbarrier_arrive_expect_tx(llvm::IRBuilderBase& b, Value* barrier, Value* bytes) {
  b.CreateIntrinsic(llvm::Intrinsic::nvvm_mbarrier_arrive_expect_tx_scope_cta_space_cta, {barrier, bytes});
}

Value* mbarrier_try_wait_parity(llvm::IRBuilderBase& b, Value* barrier, Value* parity) {
  return b.CreateIntrinsic(llvm::Intrinsic::nvvm_mbarrier_try_wait_parity_scope_cta_space_cta, {barrier, parity});
}

void fence_mbarrier_init(llvm::IRBuilderBase& b) {
  b.CreateIntrinsic(llvm::Intrinsic::nvvm_fence_mbarrier_init_release_cluster, {});
}

void fence_proxy_async(llvm::IRBuilderBase& b) { b.CreateIntrinsic(llvm::Intrinsic::nvvm_fence_proxy_async, {}); }

void fence_proxy_async_shared(llvm::IRBuilderBase& b) {
  b.CreateIntrinsic(llvm::Intrinsic::nvvm_fence_proxy_async_shared_cta, {});
}

void stmatrix(llvm::IRBuilderBase& b, Value* address, std::span<Value* const> words, bool transposed) {
  /// log2 of the number of matrices is the first index.
  static constexpr llvm::Intrinsic::ID kIds[3][2] = {{llvm::Intrinsic::nvvm_stmatrix_sync_aligned_m8n8_x1_b16,
                                                      llvm::Intrinsic::nvvm_stmatrix_sync_aligned_m8n8_x1_trans_b16},
                                                     {llvm::Intrinsic::nvvm_stmatrix_sync_aligned_m8n8_x2_b16,
                                                      llvm::Intrinsic::nvvm_stmatrix_sync_aligned_m8n8_x2_trans_b16},
                                                     {llvm::Intrinsic::nvvm_stmatrix_sync_aligned_m8n8_x4_b16,
                                                      llvm::Intrinsic::nvvm_stmatrix_sync_aligned_m8n8_x4_trans_b16}};
  std::vector<Value*> args{address};
  args.insert(args.end(), words.begin(), words.end());
  b.CreateIntrinsic(kIds[std::countr_zero(words.size())][transposed], {address->getType()}, args);
}

#else

namespace {

/// The first operand, if there is one, is an address that the instruction writes to (constraint *m): it stands in the
/// text as [register+offset]. Those instructions are convergent, as their intrinsics are; fences are not.
llvm::CallInst* assembly(llvm::IRBuilderBase& b, llvm::Type* result, const std::string& text,
                         const std::string& constraints, llvm::ArrayRef<Value*> operands) {
  std::vector<llvm::Type*> types;
  for (const Value* v : operands) types.push_back(v->getType());
  auto* type = llvm::FunctionType::get(result, types, false);
  llvm::CallInst* call = b.CreateCall(type, llvm::InlineAsm::get(type, text, constraints, true), operands);
  call->setDoesNotThrow();
  if (operands.empty()) return call;
  call->setConvergent();
  call->addParamAttr(0, llvm::Attribute::get(b.getContext(), llvm::Attribute::ElementType, b.getInt64Ty()));
  return call;
}

void fence(llvm::IRBuilderBase& b, const char* text) { assembly(b, b.getVoidTy(), text, "~{memory}", {}); }

}  // namespace

void mbarrier_arrive(llvm::IRBuilderBase& b, Value* barrier) {
  Value* operands[] = {barrier, b.getInt32(1)};
  if (barrier->getType()->getPointerAddressSpace() == kClusterSpace)
    assembly(b, b.getVoidTy(), "mbarrier.arrive.shared::cluster.b64 _, $0, $1;", "*m,r,~{memory}", operands);
  else
    assembly(b, b.getInt64Ty(), "mbarrier.arrive.shared.b64 $0, $1, $2;", "=l,*m,r,~{memory}", operands);
}

void mbarrier_arrive_expect_tx(llvm::IRBuilderBase& b, Value* barrier, Value* bytes) {
  assembly(b, b.getInt64Ty(), "mbarrier.arrive.expect_tx.shared.b64 $0, $1, $2;", "=l,*m,r,~{memory}",
           {barrier, bytes});
}

Value* mbarrier_try_wait_parity(llvm::IRBuilderBase& b, Value* barrier, Value* parity) {
  return assembly(b, b.getInt1Ty(), "mbarrier.try_wait.parity.shared.b64 $0, $1, $2;", "=b,*m,r,~{memory}",
                  {barrier, parity});
}

void fence_mbarrier_init(llvm::IRBuilderBase& b) { fence(b, "fence.mbarrier_init.release.cluster;"); }

void fence_proxy_async(llvm::IRBuilderBase& b) { fence(b, "fence.proxy.async;"); }

void fence_proxy_async_shared(llvm::IRBuilderBase& b) { fence(b, "fence.proxy.async.shared::cta;"); }

void stmatrix(llvm::IRBuilderBase& b, Value* address, std::span<Value* const> words, bool transposed) {
  std::vector<Value*> operands{address};
  std::string registers, constraints = "*m,";
  for (Value* word : words) {
    registers += fmt::format("{}${}", registers.empty() ? "" : ", ", operands.size());
    constraints += "r,";
    operands.push_back(word);
  }
  const std::string text = fmt::format("stmatrix.sync.aligned.m8n8.x{}{}.shared.b16 $0, {{{}}};", words.size(),
                                       transposed ? ".trans" : "", registers);
  assembly(b, b.getVoidTy(), text, constraints + "~{memory}", operands);
}

#endif

}  // namespace kiln::lower
