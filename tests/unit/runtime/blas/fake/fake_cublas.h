// Controls of the fake cuBLAS and cublasLt; tests get them through the symbol "fake_cublas" of each library.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/blas/cublas_abi.h"

struct FakeCublas {
  int offered = 5;                  // algorithms that the heuristics name
  std::vector<int> failing;         // of these, those that do not run
  std::vector<int> run;             // the algorithms that ran, in order
  size_t workspace_bytes = 0;       // that the last product was given
  void* stream = nullptr;           // of the last product
  uint64_t bias_when_asked = 0;     // the bias pointer that the last heuristics saw
  uint32_t alignments[4] = {};      // … and the alignments A, B, C, D
  int heuristics = 0, handles = 0;  // calls; handles alive
  kiln::runtime::blas::CublasStatus fail = kiln::runtime::blas::CublasStatus::kSuccess;  // of the next product
};
