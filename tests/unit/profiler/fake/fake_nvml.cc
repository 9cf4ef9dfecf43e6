// NVML with one GPU at 0000:18:00.0 that is held down by its power cap.
#include <cstring>

extern "C" {

int nvmlInit_v2() { return 0; }
const char* nvmlErrorString(int code) { return code == 6 ? "Not Found" : "Unknown Error"; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** gpu) {
  static int one;
  *gpu = &one;
  return std::strcmp(bus, "0000:18:00.0") == 0 ? 0 : 6;
}
int nvmlDeviceGetClockInfo(void*, int, unsigned* mhz) {
  *mhz = 1755;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void*, int, unsigned* mhz) {
  *mhz = 1980;
  return 0;
}
// As drivers before 535 have it.
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = 0x4 | 0x1;
  return 0;
}
}
