// Names of kernels in PTX, whose identifiers are ASCII: 核 is $6838$ there, which no name of Python contains.
#pragma once
#include <string>
#include <string_view>

namespace kiln {

/// Of a UTF-8 name. Names of ASCII letters are the same in PTX.
std::string ptx_name(std::string_view name);
/// The name that ptx_name() was made of; of another compiler's, itself.
std::string source_name(std::string_view ptx_name);

}  // namespace kiln
