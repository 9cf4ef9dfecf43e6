#pragma once
#include "repl/script/interp/interp.h"

namespace kiln::script {

// torch.allclose(input, other, rtol, atol, equal_nan), torch.equal(input, other), and what torch.testing.assert_close()
// says of two tensors: (actual, expected, rtol, atol, equal_nan, check_dtype).
Value allclose_tensors(Interp& in, NativeArgs& a);
Value equal_tensors(Interp& in, NativeArgs& a);
Value assert_tensors_close(Interp& in, NativeArgs& a);

}  // namespace kiln::script
