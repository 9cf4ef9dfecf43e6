#include "support/launch_options.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/docs_table.h"

namespace kiln {
namespace {

TEST(LaunchOptions, DefaultsAreAllowed) {
  EXPECT_EQ(wrong_option({}), "");
  for (const LaunchOption& o : kLaunchOptions) EXPECT_TRUE(o.allows(o.least) && o.allows(o.most)) << o.name;
}

TEST(LaunchOptions, TheFirstWrongOneIsNamed) {
  CodeOptions options;
  options.num_stages = 0;
  EXPECT_EQ(wrong_option(options), "num_stages must be from 1 to 255, got 0");
  options.num_warps = 12;
  EXPECT_EQ(wrong_option(options), "num_warps must be a power of two from 1 to 32, got 12");
}

TEST(LaunchOptions, EveryOptionIsPartOfTheKey) {
  for (const LaunchOption& o : kLaunchOptions) {
    CodeOptions other;
    o.set(other, o.get(other) == o.most ? o.least : o.most);
    EXPECT_NE(key_text(other), key_text({})) << o.name;
    EXPECT_EQ(tuned_text(other) != tuned_text({}), o.is_tuned()) << o.name;
    o.set_default(other);
    EXPECT_EQ(other, CodeOptions{}) << o.name;
  }
  EXPECT_TRUE(tuned_text({}).starts_with("num_warps: 4, num_stages: 3, num_ctas: 1")) << tuned_text({});
}

TEST(LaunchOptions, AreReadAsTheyAreWritten) {
  for (const LaunchOption& o : kLaunchOptions)
    for (int value : {o.least, o.most, o.get({})}) {
      CodeOptions written, read;
      o.set(written, value);
      const std::string text = o.text(written);
      ASSERT_TRUE(text.starts_with(std::string(o.name) + "=")) << text;
      ASSERT_TRUE(o.read(text.substr(o.name.size() + 1), read).ok()) << text;
      EXPECT_EQ(read, written) << text;
    }
  CodeOptions options;
  Status wrong = find_launch_option("num_warps")->read("3", options);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message, "num_warps must be a power of two from 1 to 32, not '3'");
  EXPECT_FALSE(find_launch_option("debug")->read("", options).ok());
  EXPECT_EQ(options, CodeOptions{});
}

TEST(LaunchOptions, FoundByName) {
  for (const LaunchOption& o : kLaunchOptions) EXPECT_EQ(find_launch_option(o.name), &o);
  EXPECT_EQ(find_launch_option("num_warp"), nullptr);
}

TEST(LaunchOptions, AreInTheLanguageReference) {
  std::string table = "| option | values | | meaning |\n|---|---|---|---|\n";
  for (const LaunchOption& o : kLaunchOptions)
    table += fmt::format("| `{}={}` | {} | {} | {} |\n", o.name, o.python_default, o.allowed(), o.is_tuned() ? "T" : "",
                         o.help);
  kiln::testing::check_docs_table("language.md", "launch options", table);
}

}  // namespace
}  // namespace kiln
