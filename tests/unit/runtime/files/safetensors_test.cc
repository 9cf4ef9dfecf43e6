// .safetensors files, written and read.
#include "runtime/files/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/process.h"
#include "tests/unit/open_device.h"

namespace kiln::runtime {
namespace {

std::string with_header(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

class SafetensorsFile : public testing::Test {
 protected:
  Result<Safetensors> read(const std::string& content) const {
    KILN_ASSERT(write_file_atomic(path_, content).ok(), "{}", path_);
    return load_safetensors(cpu_, path_);
  }
  /// The message for a file of that header and that many bytes of tensors, without the path.
  std::string problem(const std::string& header, size_t bytes = 0) const {
    auto result = read(with_header(header, std::string(bytes, 'x')));
    return result.ok() ? "read" : result.error().message.substr(path_.size() + 2);
  }

  ScratchFolder folder_;
  std::string path_ = folder_.path + "/t.safetensors";
  Device cpu_ = *open_device("cpu");
};

TEST_F(SafetensorsFile, ReadsWhatTheReferenceWrites) {
  // safetensors.torch.save({'h': bf16, 'q': fp8, 'i': int64}, metadata={'made': 'by hand'}) of safetensors 0.8.
  auto file = read(with_header(R"({"__metadata__":{"made":"by hand"},)"
                               R"("i":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
                               R"("h":{"dtype":"BF16","shape":[2],"data_offsets":[16,20]},)"
                               R"("q":{"dtype":"F8_E4M3","shape":[2,1],"data_offsets":[20,22]}}  )",
                               std::string("\7\0\0\0\0\0\0\0\xf9\xff\xff\xff\xff\xff\xff\xff\x80?\0\xc0\60~", 22)));
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_EQ(file->tensors.size(), 3u);
  EXPECT_EQ(file->metadata, (std::vector<std::pair<std::string, std::string>>{{"made", "by hand"}}));
  EXPECT_EQ(file->tensors[0].name, "i");
  EXPECT_EQ(*file->tensors[0].tensor.to_doubles(), (std::vector<double>{7, -7}));
  EXPECT_EQ(file->tensors[1].tensor.dtype(), DType::kBF16);
  EXPECT_EQ(*file->tensors[1].tensor.to_doubles(), (std::vector<double>{1, -2}));
  EXPECT_EQ(file->tensors[2].tensor.dtype(), DType::kF8E4M3);
  EXPECT_EQ(*file->tensors[2].tensor.to_doubles(), (std::vector<double>{.5, 448}));
}

TEST_F(SafetensorsFile, WhatIsSavedIsLoaded) {
  Safetensors content;
  for (int i = 0; i < kNumDTypes; ++i)
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {7}, {3, 5}, {0, 3}}) {
      const auto dtype = static_cast<DType>(i);
      if (!is_in_torch(dtype)) continue;
      content.tensors.push_back({fmt::format("{} \"é\" {}", name(dtype), content.tensors.size()),
                                 *(*randn(cpu_, DType::kF32, shape, 3)).to(dtype)});
    }
  content.metadata = {{"key", "a\ttext\n"}};
  ASSERT_TRUE(save_safetensors(content, path_).ok());
  auto back = load_safetensors(cpu_, path_);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->metadata, content.metadata);
  ASSERT_EQ(back->tensors.size(), content.tensors.size());
  for (size_t i = 0; i < content.tensors.size(); ++i) {
    const NamedTensor &was = content.tensors[i], &is = back->tensors[i];
    EXPECT_EQ(is.name, was.name);
    EXPECT_EQ(is.tensor.dtype(), was.tensor.dtype());
    EXPECT_TRUE(std::ranges::equal(is.tensor.shape(), was.tensor.shape()));
    EXPECT_EQ(*is.tensor.to_bytes(), *was.tensor.to_bytes());
  }
  // The header ends where the widest elements are aligned.
  uint64_t length = 0;
  std::memcpy(&length, read_file(path_)->data(), sizeof length);
  EXPECT_EQ(length % 8, 0u);
}

TEST_F(SafetensorsFile, HostileHeaders) {
  EXPECT_EQ(read("").error().message, path_ + ": it is no .safetensors file: it has 0 bytes");
  EXPECT_EQ(read(std::string(8, '\xff')).error().message,
            path_ + ": it is no .safetensors file or ends too early: a header of 18446744073709551615 bytes, 0 follow");
  EXPECT_EQ(read("PK\3\4 a zip file").error().kind, ErrorKind::kIo);
  EXPECT_EQ(problem("[]"), "it is no .safetensors file: its header begins without {");
  EXPECT_EQ(problem("{"),
            "its header: no JSON at byte 2: syntax error while parsing object key - unexpected end of "
            "input; expected string literal");
  EXPECT_EQ(problem("{} x"),
            "its header: no JSON at byte 4: syntax error while parsing value - invalid literal; last "
            "read: '{} x'; expected end of input");
  EXPECT_EQ(problem("{\"a\": 3}"), "its header: 3 in the place of what belongs to 'a'");
  EXPECT_EQ(problem(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4),
            "its header: tensor 'a' has a field 'x', which the format has not");
  EXPECT_EQ(problem(R"({"a":{"dtype":"F32","shape":[1]}})", 4),
            "its header: tensor 'a' lacks one of dtype, shape and data_offsets");
  EXPECT_EQ(problem(R"({"a":{"dtype":"F32","dtype":"F32"}})"), "its header: 'dtype' comes twice");
  EXPECT_EQ(problem(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                    R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                    4),
            "its header: 'a' comes twice");
  EXPECT_EQ(problem(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
            "its header: -1 in the place of what belongs to 'shape'");
  EXPECT_EQ(problem(R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4),
            "its header: a list in the place of what belongs to 'shape'");
  EXPECT_EQ(problem(R"({"__metadata__":{"a":1}})"), "its header: 1 in the place of what belongs to 'a'");
  EXPECT_EQ(problem("{" + std::string(1 << 20, '[')),
            "its header: no JSON at byte 2: syntax error while parsing object "
            "key - unexpected '['; expected string literal");
  EXPECT_EQ(problem("{\"a\":" + std::string(1 << 20, '[')), "its header: a list in the place of what belongs to 'a'");
  EXPECT_EQ(problem("{\"\xff\": 1}").substr(0, 30), "its header: no JSON at byte 3:");
}

TEST_F(SafetensorsFile, HostilePlaces) {
  auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return fmt::format(R"({{"a":{{"dtype":"{}","shape":[{}],"data_offsets":[{}]}}}})", dtype, shape, offsets);
  };
  EXPECT_EQ(problem(one("F32", "1", "0,4"), 4), "read");
  EXPECT_EQ(problem(one("F4", "1", "0,4"), 4), "tensor 'a': tensors have no dtype F4");
  EXPECT_EQ(problem(one("F32", "1", "0,8"), 4), "tensor 'a' lies at [0, 8], the file has 4 bytes of tensors");
  EXPECT_EQ(problem(one("F32", "1", "4,0"), 4), "tensor 'a' lies at [4, 0], the file has 4 bytes of tensors");
  EXPECT_EQ(problem(one("F32", "1", "0"), 4), "tensor 'a' lies at [0], the file has 4 bytes of tensors");
  EXPECT_EQ(problem(one("F32", "2", "0,4"), 4), "tensor 'a' of shape [2] and dtype F32 has 4 bytes in the file");
  // Sizes whose product leaves 64 bits, and is 4 in 64 bits.
  for (const char* shape : {"1152921504606846976", "4611686018427387905", "18446744073709551615",
                            "4294967296,4294967296", "0,4611686018427387904,8"})
    EXPECT_EQ(problem(one("F32", shape, "0,4"), 4).find("tensor 'a' of shape ["), 0u) << shape;
  EXPECT_EQ(problem(one("F32", "1", "4,8"), 8), "no tensor has byte 0 of the tensors");
  EXPECT_EQ(problem(one("F32", "1", "0,4"), 8), "no tensor has byte 4 of the tensors");
  EXPECT_EQ(problem(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                    R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                    12),
            "tensor 'b' overlaps another, at byte 4 of the tensors");
  ASSERT_EQ(mkfifo((folder_.path + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(load_safetensors(cpu_, folder_.path + "/pipe").error().message,
            folder_.path + "/pipe: it is a pipe or a device, no file");
}

TEST_F(SafetensorsFile, MistakesOfTheCaller) {
  const Tensor t = *Tensor::zeros(cpu_, DType::kF32, std::vector<int64_t>{1});
  EXPECT_EQ(save_safetensors({{{"x", t}, {"x", t}}, {}}, path_).error().message, path_ + ": two tensors are named 'x'");
  EXPECT_EQ(save_safetensors({{{"__metadata__", t}}, {}}, path_).error().kind, ErrorKind::kValue);
  const Tensor q = *Tensor::zeros(cpu_, DType::kF8E4B15, std::vector<int64_t>{1});
  EXPECT_EQ(save_safetensors({{{"x", q}}, {}}, path_).error().message, path_ + ": .safetensors files have no f8e4b15");
  EXPECT_EQ(save_safetensors({{{"x", t}}, {}}, "/dev/full").error().message,
            "cannot write '/dev/full': No space left on device");
}

}  // namespace
}  // namespace kiln::runtime
