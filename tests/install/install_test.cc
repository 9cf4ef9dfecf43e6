// Installs libkiln into a folder of its own and uses it from there as another project would.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Ran {
  int code = -1;
  std::string output;  // of both streams
};

Ran shell(const std::string& command) {
  Ran ran;
  FILE* pipe = popen(("{ " + command + "; } 2>&1").c_str(), "r");
  if (!pipe) return ran;
  std::array<char, 4096> buffer;
  for (size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) ran.output.append(buffer.data(), n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) ran.code = WEXITSTATUS(status);
  return ran;
}

std::string quoted(const std::string& text) { return "'" + text + "'"; }

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Installed : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string name = (fs::temp_directory_path() / "kiln_install_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root() = name;
    for (const char* component : {"runtime", "devel"}) {
      const Ran ran = shell(std::string(KILN_CMAKE) + " --install " + quoted(KILN_BUILD_DIR) + " --component " +
                            component + " --prefix " + quoted(prefix()));
      ASSERT_EQ(ran.code, 0) << ran.output;
    }
  }
  static void TearDownTestSuite() { fs::remove_all(root()); }

  static fs::path& root() {
    static fs::path folder;
    return folder;
  }
  static std::string prefix() { return (root() / "prefix").string(); }
  static fs::path library() { return found("libkiln.so"); }
  static fs::path found(const std::string& file) {
    for (const auto& entry : fs::recursive_directory_iterator(prefix()))
      if (entry.path().filename() == file) return entry.path();
    return {};
  }
  /// The flags are those of the build, for a sanitizer must be everywhere; the package brings none.
  static std::string configure(const std::string& source, const std::string& build) {
    return std::string(KILN_CMAKE) + " -S " + quoted(source) + " -B " + quoted(build) + " -G " +
           quoted(KILN_GENERATOR) + " -DCMAKE_PREFIX_PATH=" + quoted(prefix()) +
           " -DCMAKE_CXX_COMPILER=" KILN_CXX " -DCMAKE_CXX_FLAGS=" + quoted(KILN_CXX_FLAGS);
  }
  /// "kiln/tensor.h" and so on.
  static std::vector<std::string> headers() {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(prefix() + "/include/kiln"))
      if (entry.path().extension() == ".h") all.push_back("kiln/" + entry.path().filename().string());
    std::sort(all.begin(), all.end());
    return all;
  }
};

TEST_F(Installed, RunsTheExamples) {
  for (const std::string name : {"embed", "embed_c"}) {
    const std::string build = (root() / name).string();
    const Ran made = shell(configure(KILN_SOURCE_DIR "/examples/" + name, build) + " && " + KILN_CMAKE + " --build " +
                           quoted(build));
    ASSERT_EQ(made.code, 0) << made.output;
    const Ran ran = shell(quoted(build + "/" + name));
    EXPECT_EQ(ran.code, 0);
    EXPECT_NE(ran.output.find(": 3 * 2 + 0.5 = 6.5\n"), std::string::npos) << ran.output;
  }
}

TEST_F(Installed, SpeaksC) {
  const std::string program = (root() / "c_api").string(), folder = library().parent_path().string();
  const Ran made = shell("cc -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Werror " KILN_CXX_FLAGS " -I" +
                         quoted(prefix() + "/include") + " " KILN_SOURCE_DIR "/tests/install/c_api.c -L" +
                         quoted(folder) + " -lkiln -Wl,-rpath," + quoted(folder) + " -o " + quoted(program));
  ASSERT_EQ(made.code, 0) << made.output;
  const Ran ran = shell(quoted(program));
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(ran.output, "the C API is as promised\n");
  EXPECT_EQ(shell("KILN_CACHE_DIR=/dev/null/none " + quoted(program) + " log").output, "1 warnings\n");
}

// The C API in an old C++, with a warning for each member that an initialiser leaves out.
TEST_F(Installed, SpeaksCInOldCpp) {
  const std::string file = (root() / "old.cc").string();
  std::ofstream(file) << R"(
#include <kiln/kiln.h>
int main() {
  kiln_compile_options options = KILN_INIT(kiln_compile_options);
  kiln_launch_info info = KILN_INIT(kiln_launch_info);
  return options.size != sizeof options || options.num_warps || info.size != sizeof info;
}
)";
  const Ran ran = shell(KILN_CXX " -std=c++11 -Wall -Wextra -Wpedantic -Wconversion -Werror -I" +
                        quoted(prefix() + "/include") + " " + file + " -o " + file + ".out && " + file + ".out");
  EXPECT_EQ(ran.code, 0) << ran.output;
}

#ifdef KILN_FAKE_CUDA
// examples/aot, with the fake driver of the unit tests for libcuda.
TEST_F(Installed, EmittedCodeLaunchesWithoutKiln) {
  const std::string folder = (root() / "aot").string(), cuda = " -I" KILN_CUDA_INCLUDE " ";
  fs::create_directory(folder);
  const std::string text = text_of(KILN_SOURCE_DIR "/examples/aot/README.md");
  const std::regex command(R"(\nkiln (compile[^\n]*\\\n[^\n]*)\n)");
  std::smatch match;
  ASSERT_TRUE(std::regex_search(text, match, command));
  const Ran compiled = shell("cd " + quoted(folder) +
                             " && cp " KILN_SOURCE_DIR "/examples/aot/* . && " KILN_BINARY " " + match[1].str());
  ASSERT_EQ(compiled.code, 0) << compiled.output;
  const std::string strict = " -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion -Wshadow -Werror ";
  const Ran made =
      shell("cd " + quoted(folder) + " && cc" + strict + cuda + "-c product.c -o product.o && cc" + strict + cuda +
            "-c main.c -o example.o && " KILN_CXX " -std=c++20 " KILN_CXX_FLAGS " -I. -I" KILN_SOURCE_DIR + cuda +
            KILN_SOURCE_DIR "/tests/install/launcher/main.cc product.o " KILN_FAKE_CUDA " -o launcher");
  ASSERT_EQ(made.code, 0) << made.output;
  const Ran ran = shell("LD_LIBRARY_PATH=$(dirname " KILN_FAKE_CUDA ") " + quoted(folder + "/launcher"));
  EXPECT_EQ(ran.output, "launched\n");
}
#endif

// docs/embedding.md: whole files are those of examples/, and every other piece compiles in a function.
TEST_F(Installed, TheGuideCompiles) {
  const std::string guide = text_of(KILN_SOURCE_DIR "/docs/embedding.md");
  const std::regex block("\n```(cpp|c|cmake)\n([\\s\\S]*?)```\n"), include("#(include|define) [^\n]*\n");
  int whole = 0, pieces = 0;
  for (std::sregex_iterator it(guide.begin(), guide.end(), block), end; it != end; ++it) {
    const std::string language = (*it)[1], text = (*it)[2];
    if (language == "cmake" || text.find("int main") != std::string::npos) {
      EXPECT_EQ(text, text_of(KILN_SOURCE_DIR "/examples/embed/" +
                              std::string(language == "cmake" ? "CMakeLists.txt" : "main.cc")));
      ++whole;
      continue;
    }
    if (text.find("product_load") != std::string::npos) continue;  // EmittedCodeLaunchesWithoutKiln
    const bool cpp = language == "cpp";
    const std::string file = (root() / ("piece" + std::to_string(++pieces) + (cpp ? ".cc" : ".c"))).string();
    std::string headers =
        cpp ? "#include <kiln/image.h>\n#include <kiln/kernel.h>\n" : "#include <kiln/kiln.h>\n#include <stdio.h>\n";
    for (std::sregex_iterator line(text.begin(), text.end(), include), last; line != last; ++line)
      headers += line->str();
    std::ofstream(file)
        << headers
        << (cpp ? "kiln::Status piece(const kiln::Runtime& runtime, void* context, void* cu_stream, "
                  "std::span<const int64_t> shape, "
                  "std::span<const int64_t> strides, uint64_t pointer, int64_t bytes, "
                  "std::shared_ptr<void> owner, kiln::Kernel kernel, std::array<int64_t, 3> grid, "
                  "std::span<const std::optional<kiln::Arg>> args) {\n"
                : "void piece(const char* source, const char* const* constexprs, kiln_device* device, "
                  "unsigned programs, const uint64_t* slots, void* cu_stream) {\n"
                  "kiln_error* error; kiln_kernel* kernel; kiln_image* image; kiln_function* function;\n")
        << std::regex_replace(text, include, "") << (cpp ? "return {};\n}\n" : "}\n");
    const Ran ran = shell((cpp ? KILN_CXX " -std=c++20" : "cc -std=c11") + std::string(" -fsyntax-only -I") +
                          quoted(prefix() + "/include") + " " + file);
    EXPECT_EQ(ran.code, 0) << text_of(file) << ran.output;
  }
  EXPECT_EQ(whole, 2);
  EXPECT_EQ(pieces, 3);
}

// The archive, with LLVM's own beside it.
TEST_F(Installed, LinksStatically) {
  const Ran installed = shell(std::string(KILN_CMAKE) + " --install " + quoted(KILN_BUILD_DIR) +
                              " --component static --prefix " + quoted(prefix()));
  ASSERT_EQ(installed.code, 0) << installed.output;
  const fs::path source = root() / "static";
  fs::create_directory(source);
  fs::copy(KILN_SOURCE_DIR "/examples/embed/main.cc", source);
  std::ofstream(source / "CMakeLists.txt") << R"(
cmake_minimum_required(VERSION 3.22)
project(embed LANGUAGES CXX)
find_package(kiln 0.1 REQUIRED COMPONENTS static)
find_program(LLD ld.lld)
if(LLD)
  add_link_options(-fuse-ld=lld)
endif()
add_executable(embed main.cc)
target_link_libraries(embed PRIVATE kiln::static)
)";
  const std::string build = (root() / "static_build").string();
  const Ran made = shell(configure(source.string(), build) + " && " + KILN_CMAKE + " --build " + quoted(build));
  ASSERT_EQ(made.code, 0) << made.output;
  const Ran ran = shell(quoted(build + "/embed"));
  EXPECT_NE(ran.output.find(": 3 * 2 + 0.5 = 6.5\n"), std::string::npos) << ran.output;
}

// Configured only: the build would compile all of Kiln again.
TEST_F(Installed, IsASubdirectoryOfAProject) {
  const fs::path source = root() / "engine";
  fs::create_directory(source);
  std::ofstream(source / "CMakeLists.txt") << R"(
cmake_minimum_required(VERSION 3.22)
project(engine LANGUAGES CXX)
add_subdirectory()" KILN_SOURCE_DIR R"( kiln EXCLUDE_FROM_ALL)
add_executable(engine )" KILN_SOURCE_DIR R"(/examples/embed/main.cc)
target_link_libraries(engine PRIVATE kiln::kiln)
if(TARGET kiln OR DEFINED CMAKE_RUNTIME_OUTPUT_DIRECTORY)
  message(FATAL_ERROR "a part of Kiln's own project is seen")
endif()
)";
  const Ran made = shell(configure(source.string(), (root() / "engine_build").string()));
  EXPECT_EQ(made.code, 0) << made.output;
}

TEST_F(Installed, IsFoundByPkgConfig) {
  const fs::path file = found("kiln.pc");
  if (shell("pkg-config --version").code != 0) GTEST_SKIP() << "no pkg-config";
  const Ran flags = shell("PKG_CONFIG_PATH=" + quoted(file.parent_path().string()) +
                          " pkg-config --define-prefix --cflags --libs kiln");
  ASSERT_EQ(flags.code, 0) << flags.output;
  EXPECT_NE(flags.output.find("-lkiln"), std::string::npos) << flags.output;
  const std::regex include("-I(\\S+)"), folder("-L(\\S+)");
  std::smatch match;
  ASSERT_TRUE(std::regex_search(flags.output, match, include)) << flags.output;
  EXPECT_TRUE(fs::exists(match[1].str() + "/kiln/kernel.h")) << flags.output;
  ASSERT_TRUE(std::regex_search(flags.output, match, folder)) << flags.output;
  EXPECT_TRUE(fs::exists(match[1].str() + "/libkiln.so")) << flags.output;
}

TEST_F(Installed, HeadersStandAlone) {
  std::string makefile = "all:";
  const std::vector<std::string> all = headers();
  ASSERT_GT(all.size(), 10u);
  for (size_t i = 0; i < all.size(); ++i) makefile += " h" + std::to_string(i);
  makefile += "\n";
  for (size_t i = 0; i < all.size(); ++i)
    makefile += "h" + std::to_string(i) + ":\n\t@echo '#include <" + all[i] +
                ">' | " KILN_CXX
                " -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -x c++ -I'" +
                prefix() + "/include' -\n";
  std::ofstream(root() / "headers.mk") << makefile;
  const Ran ran = shell("make -s -k -j2 -f " + quoted((root() / "headers.mk").string()) + " all");
  EXPECT_EQ(ran.code, 0) << ran.output;
  for (const std::string& header : all) {
    const std::string text = text_of(prefix() + "/include/" + header);
    const std::regex include(R"re(#\s*include\s*"([^"]*)")re");
    for (std::sregex_iterator it(text.begin(), text.end(), include), end; it != end; ++it)
      EXPECT_TRUE(fs::exists(prefix() + "/include/" + (*it)[1].str())) << header << " includes " << (*it)[1].str();
  }
}

TEST_F(Installed, NothingNamesTheTree) {
  for (const char* file : {"kiln.pc", "kiln-config.cmake", "kiln-targets.cmake", "kiln-targets-noconfig.cmake"}) {
    const fs::path path = found(file);
    if (path.empty()) continue;  // the last is named by the build type
    const std::string text = text_of(path);
    EXPECT_EQ(text.find(KILN_SOURCE_DIR), std::string::npos) << file << ":\n" << text;
    EXPECT_EQ(text.find("LLVM-22"), std::string::npos) << file << ":\n" << text;
  }
}

TEST_F(Installed, NeedsNoLlvm) {
  const Ran ran = shell("LC_ALL=C objdump -p " + quoted(library().string()));
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_NE(ran.output.find("libkiln.so.0."), std::string::npos) << "its SONAME has the version";
  for (const char* other : {"libLLVM", "libfmt", "libz", "libcuda"})
    EXPECT_EQ(ran.output.find(other), std::string::npos) << ran.output.substr(0, 2000);
}

// cmake/libkiln.map lists by hand what the headers declare.
TEST_F(Installed, ExportsWhatTheHeadersDeclare) {
  const Ran ran = shell(std::string(KILN_NM) + " -DC --defined-only " + quoted(library().string()));
  ASSERT_EQ(ran.code, 0) << ran.output;
  std::set<std::string> exported;
  const std::regex c_function(R"(\b(kiln_\w+)\()");
  const std::regex symbol(R"(^[0-9a-f]+ [A-Za-z] (.*?)(\[abi:cxx11\])?(\(.*)?$)"), version("@@KILN_.*$");
  std::string line;
  for (std::istringstream lines(ran.output); std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, symbol)) exported.insert(std::regex_replace(match[1].str(), version, ""));
  }
  std::set<std::string> classes, declared;
  for (const std::string& header : headers()) {
    std::string text = text_of(prefix() + "/include/" + header);
    const std::regex scope(R"((?:^|\n)(?:class|struct) (\w+)[^;{]*\{([\s\S]*?)\n\};)");
    for (std::sregex_iterator it(text.begin(), text.end(), scope), end; it != end; ++it) classes.insert((*it)[1]);
    if (header == "kiln/kiln.h") {
      text = std::regex_replace(text, std::regex(R"(/\*[\s\S]*?\*/)"), "");
      for (std::sregex_iterator it(text.begin(), text.end(), c_function), end; it != end; ++it)
        declared.insert((*it)[1]);
      continue;
    }
    // A function of the namespace begins at the left margin: clang-format keeps it there.
    const std::regex function(R"(^(?!inline|constexpr|template|using|class|struct)\w[\w:<>,&* ]*[ *&](\w+)\()");
    std::smatch match;
    for (std::istringstream lines(text); std::getline(lines, line);)
      if (!line.ends_with("{") && std::regex_search(line, match, function)) declared.insert("kiln::" + match[1].str());
  }
  EXPECT_TRUE(declared.contains("kiln::randn") && declared.contains("kiln::launch_checked"));
  for (const std::string& name : declared) EXPECT_TRUE(exported.contains(name)) << name << " is not exported";
  for (const char* member : {"kiln::Runtime::open", "kiln::Kernel::launch", "kiln::Tensor::as_strided"})
    EXPECT_TRUE(exported.contains(member)) << member;
  for (const std::string& name : exported) {
    if (name.starts_with("KILN_") || declared.contains(name)) continue;
    const std::regex of_class(R"(.*?kiln::(\w+)::.*)");
    std::smatch match;
    EXPECT_TRUE(std::regex_match(name, match, of_class) && classes.contains(match[1]))
        << name << " is exported, and no header declares it";
  }
}

}  // namespace
