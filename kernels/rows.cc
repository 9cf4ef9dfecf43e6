#include "kernels/rows.h"

namespace kiln::kernels {

std::vector<Shape> row_gpu_sizes() { return {{8192, 8192}, {65536, 1024}, {4096, 32768}}; }
std::vector<Shape> row_host_sizes() { return {{2048, 8192}, {16384, 1024}, {512, 32768}}; }
std::vector<Shape> row_test_sizes() { return {{1, 1}, {3, 5}, {7, 127}, {5, 1024}, {4, 1000}, {3, 8191}, {2, 8195}}; }

}  // namespace kiln::kernels
