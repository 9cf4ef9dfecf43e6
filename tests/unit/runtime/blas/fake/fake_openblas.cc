// An OpenBLAS without cblas_sgemm: a build that left the C interface out.
extern "C" {
const char* openblas_get_config() { return "OpenBLAS 0.2.20 NO_CBLAS"; }
void openblas_set_num_threads(int) {}
}
