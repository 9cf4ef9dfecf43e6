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
