#include "repl/commands/compile_imports.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "compiler/frontend/frontend.h"
#include "compiler/parse/parser.h"
#include "repl/shell/files.h"
#include "support/diag.h"

namespace kiln::repl {
namespace {

namespace fs = std::filesystem;

class CompileImports : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_ / "pkg/ops"); }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) { std::ofstream(root_ / path) << text; }

  // Lowers the file's last function, all of whose parameters are pointers to f32.
  Status lower(const std::string& path) {
    KILN_TRY(std::string text, read_text((root_ / path).string()));
    KILN_TRY(auto module, parse::parse_module(SourceText::make((root_ / path).string(), std::move(text))));
    KILN_TRY(auto functions, frontend::jit_functions(module, follow_imports()));
    const std::shared_ptr<const frontend::JitFunction> kernel = functions.back();
    functions.clear();  // the kernel alone keeps what it needs
    KILN_TRY(auto args, frontend::parse_signature(*kernel, "*fp32", {}));
    KILN_TRY([[maybe_unused]] auto lowered, frontend::lower_kernel(*kernel, args, {}));
    return {};
  }

  const fs::path root_ = fs::path(::testing::TempDir()) / "kiln_compile_imports_test";
};

TEST_F(CompileImports, TritonsOwnTextIsTheLanguage) {
  fs::create_directories(root_ / "pkg/runtime");
  fs::create_directories(root_ / "pkg/language");
  write("pkg/__init__.py", "from .runtime import jit\nfrom . import language\n");
  write("pkg/runtime/__init__.py", "from .jit import jit\n");
  write("pkg/runtime/jit.py", "def jit(fn):\n    return JITFunction(fn)\n");
  write("pkg/language/__init__.py", "");
  write("pkg/language/core.py", "");
  write("pkg/ops/kernel.py", R"(
from .. import heuristics, jit
from .. import language as tl
from ..language import exp2
@heuristics({'N': lambda args: 4})
@jit
def kernel(x_ptr):
    tl.store(x_ptr, exp2(tl.load(x_ptr)))
)");
  const Status status = lower("pkg/ops/kernel.py");
  EXPECT_TRUE(status.ok()) << render(status.error());
}

TEST_F(CompileImports, FollowsRelativeImportsAndPackages) {
  write("pkg/__init__.py", "from .lang import tl, triton\n");
  write("pkg/lang.py", "import triton\nimport triton.language as tl\nexp2 = tl.math.exp2\n");
  write("pkg/ops/helpers.py", R"(
from pkg import tl, triton
from ..lang import *
LIMIT = tl.constexpr(4.0)
@triton.jit
def scaled(x):
    return exp2(x) * LIMIT
)");
  write("pkg/ops/kernel.py", R"(
from pkg import tl, triton
from pkg.ops import helpers as h
from .helpers import scaled, LIMIT
@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, h.scaled(tl.load(x_ptr)) + scaled(2.0) + LIMIT + h.LIMIT)
)");
  const Status status = lower("pkg/ops/kernel.py");
  EXPECT_TRUE(status.ok()) << render(status.error());
}

TEST_F(CompileImports, TritonsOwnTextIsNotFollowed) {
  fs::create_directories(root_ / "triton/experimental/gluon");
  write("triton/__init__.py", "from .runtime import jit\n");
  write("triton/experimental/__init__.py", "");
  write("triton/experimental/gluon/__init__.py", "from ._runtime import jit\n");
  write("kernel.py", R"(
import triton
import triton.language as tl
from triton.experimental import gluon
@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, 1.0)
@gluon.jit
def other(x_ptr):
    pass
)");
  const Status status = lower("kernel.py");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "this is a Gluon function, and Kiln compiles Triton's language only");
}

TEST_F(CompileImports, FollowsImportsThatAreCalls) {
  write("pkg/__init__.py", "");
  write("pkg/helpers.py", R"(
import triton
import triton.language as tl
@triton.jit
def scaled(x):
    return x * 2.0
)");
  write("pkg/kernel.py", R"(
import importlib
import pytest
triton = pytest.importorskip("triton", minversion="3.0")
tl = pytest.importorskip("triton.language")
helpers = importlib.import_module("pkg.helpers")
beside = importlib.import_module(".helpers", __package__)
scaled = helpers.scaled
@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, scaled(tl.load(x_ptr)) + helpers.scaled(1.0) + beside.scaled(1.0))
)");
  const Status status = lower("pkg/kernel.py");
  EXPECT_TRUE(status.ok()) << render(status.error());
}

// Plugins of a package import Triton from it, and are read where it is not installed.
TEST_F(CompileImports, APackageThatIsMissingHandsTritonOn) {
  write("pkg/kernel.py", R"(
from engine.triton_utils import HAS_TRITON, tl, triton
from .gone import triton as again
@again.jit
def twice(x):
    return x * 2.0
@triton.jit(do_not_specialize=["x_ptr"])
def kernel(x_ptr, BLOCK: tl.constexpr = 16):
    tl.store(x_ptr + tl.arange(0, BLOCK), twice(1.0))
)");
  const Status status = lower("pkg/kernel.py");
  EXPECT_TRUE(status.ok()) << render(status.error());
}

TEST_F(CompileImports, FunctionsImportTritonByName) {
  write("kernel.py", R"(
from engine.versions import OptionalImport
triton = OptionalImport("triton")
_libdevice = OptionalImport("triton.language.extra.libdevice")
other = OptionalImport("elsewhere")
if triton.available:
    tl = triton.language
    isnan = _libdevice.isnan
    @triton.jit
    def kernel(x_ptr):
        tl.store(x_ptr, tl.where(isnan(tl.load(x_ptr)), 0.0, 1.0))
)");
  const Status status = lower("kernel.py");
  EXPECT_TRUE(status.ok()) << render(status.error());
}

// What stands in for a missing Triton does not hide the one that is there, nor does a fallback of another version.
TEST_F(CompileImports, TheFirstBranchKeepsWhatItNames) {
  write("pkg/__init__.py", R"(
from .placeholder import TYPE_CHECKING, Placeholder
if TYPE_CHECKING or find_spec("triton"):
    import triton
    import triton.language as tl
else:
    triton = Placeholder()
    tl = Placeholder()
try:
    extra = vendor_module()
except ImportError:
    extra = triton.language.math
)");
  write("pkg/ops/kernel.py", R"(
from pkg import extra, tl, triton
try:
    from triton.language.extra.libdevice import tanh
except ImportError:
    def tanh(x):
        return 0.0
@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, tanh(extra.exp(tl.load(x_ptr))))
)");
  const Status status = lower("pkg/ops/kernel.py");
  EXPECT_TRUE(status.ok()) << render(status.error());
}

TEST_F(CompileImports, ConstantsOfOtherFilesAreComputed) {
  write("pkg/__init__.py", "");
  write("pkg/sizes.py", R"(
_BASE = 16
WIDTH = 4 * _BASE
MODE = "fast"
def lines(n):
    return ";".join(f"{i}" for i in range(n))
)");
  write("pkg/ops/kernel.py", R"(
import triton
import triton.language as tl
from pkg import sizes
from pkg.sizes import WIDTH, MODE, lines
N = tl.constexpr(WIDTH)
TEXT = tl.constexpr(lines(3))
FAST = tl.constexpr(MODE == "fast" and sizes.WIDTH == 64)
@triton.jit
def kernel(x_ptr):
    tl.static_assert(TEXT == "0;1;2")
    tl.static_assert(FAST)
    tl.store(x_ptr + tl.arange(0, N), 1.0)
)");
  const Status status = lower("pkg/ops/kernel.py");
  EXPECT_TRUE(status.ok()) << render(status.error());
}

TEST_F(CompileImports, OtherVendorsBranchesAreNotTaken) {
  write("pkg/__init__.py", "");
  write("pkg/ops/kernel.py", R"(
import triton
import triton.language as tl
from elsewhere import IS_HIP, platform
WIDE = 1
if platform.is_rocm():
    @triton.jit
    def rounded(x):
        return tl.extra.hip.libdevice.round(x)
elif platform.is_xpu():
    exp = tl.extra.intel.exp
else:
    @triton.jit
    def rounded(x):
        return tl.extra.cuda.libdevice.round(x)
if not IS_HIP and WIDE == 1:
    exp = tl.exp2
@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, exp(rounded(tl.load(x_ptr))))
)");
  const Status status = lower("pkg/ops/kernel.py");
  EXPECT_TRUE(status.ok()) << render(status.error());
}

TEST_F(CompileImports, CirclesEnd) {
  write("pkg/ops/a.py", R"(
import triton
import triton.language as tl
from .b import twice
@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, twice(tl.load(x_ptr)))
)");
  write("pkg/ops/b.py", R"(
import triton
from .a import kernel
@triton.jit
def twice(x):
    return x * 2
)");
  const Status status = lower("pkg/ops/a.py");
  EXPECT_TRUE(status.ok()) << render(status.error());
}

TEST_F(CompileImports, WhatIsNotThereIsSaidWhereItIsUsed) {
  write("pkg/ops/c.py", R"(
import triton
import triton.language as tl
from .missing import twice
@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, twice(tl.load(x_ptr)))
)");
  const Status status = lower("pkg/ops/c.py");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find(".missing.twice is not part of Triton"), std::string::npos);
}

}  // namespace
}  // namespace kiln::repl
