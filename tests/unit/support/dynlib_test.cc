#include "support/dynlib.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <vector>

namespace kiln {
namespace {

TEST(DynLib, FindsTheSecondName) {
  std::vector<std::string> names = {"libkiln_not_there.so.1", "libm.so.6"};
  auto lib = DynLib::open(names, "maths library");
  ASSERT_TRUE(lib.ok()) << lib.error().message;
  EXPECT_EQ(lib->path(), "libm.so.6");
  auto* cosine = lib->function<double (*)(double)>("cos");
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(lib->symbol("no_such_symbol"), nullptr);
}

TEST(DynLib, MissingLibraryIsOneSentence) {
  std::vector<std::string> names = {"libkiln_not_there.so.1", "/also/not/libkiln.so"};
  auto lib = DynLib::open(names, "CUDA driver");
  ASSERT_FALSE(lib.ok());
  EXPECT_EQ(lib.error().kind, ErrorKind::kDevice);
  EXPECT_EQ(lib.error().message, "no CUDA driver: libkiln_not_there.so.1 not found");
}

TEST(DynLib, BrokenLibraryGivesTheLoadersWords) {
  std::string path = "/tmp/kiln_broken_" + std::to_string(getpid()) + ".so";
  std::ofstream(path) << "this is no ELF file, and long enough to be looked at as one ...............................";
  std::vector<std::string> names = {path};
  auto lib = DynLib::open(names, "CUDA driver");
  ASSERT_FALSE(lib.ok());
  EXPECT_EQ(lib.error().message.find("CUDA driver does not load: "), 0u) << lib.error().message;
  EXPECT_NE(lib.error().message.find(path), std::string::npos);
  unlink(path.c_str());
}

}  // namespace
}  // namespace kiln
