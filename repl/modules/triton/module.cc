// The modules triton, triton.runtime and triton.testing.
#include <algorithm>
#include <bit>
#include <cmath>

#include "compiler/frontend/builtins.h"
#include "repl/modules/modules.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/triton/autotuner.h"
#include "repl/modules/triton/kernel.h"
#include "repl/script/builtins/builtins.h"

namespace kiln::script {

namespace {

Value cdiv(Interp& in, NativeArgs& a) {
  if (!a[0].is_small_int() || !a[1].is_small_int()) {
    Value one = Value::integer(1);
    return in.binary(ast::BinaryOp::kFloorDiv,
                     in.binary(ast::BinaryOp::kAdd, a[0], in.binary(ast::BinaryOp::kSub, a[1], one)), a[1]);
  }
  int64_t x = a[0].integer(), y = a[1].integer();
  if (y == 0) in.fail_as("ZeroDivisionError", "cdiv by zero");
  return in.binary(ast::BinaryOp::kFloorDiv, Value::wide(ast::Int{x} + y - 1), a[1]);
}

Value next_power_of_2(Interp& in, NativeArgs& a) {
  int64_t n = in.to_int(a[0], "next_power_of_2()'s argument");
  if (n <= 0) return Value::integer(n == 0 ? 0 : 1);
  if (n > int64_t{1} << 62) in.fail(ErrorKind::kValue, "the next power of 2 of {} does not fit into 64 bits", n);
  return Value::integer(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))));
}

/// Triton's has the dtypes that torch lacks; here tensors have them too.
Value reinterpret(Interp& in, NativeArgs& a) {
  tensor_of(in, a[0], "reinterpret()");
  return in.call(in.attribute(a[0], "view"), {a[1]});
}

Value set_allocator(Interp&, NativeArgs&) { return Value::none(); }

constexpr NativeDef kTriton[] = {
    {"cdiv(x, y)", cdiv, "x / y rounded up"},
    {"next_power_of_2(n)", next_power_of_2, "the least power of 2 that is not below n"},
    {"reinterpret(tensor, dtype)", reinterpret, "the same memory as elements of another dtype: tensor.view(dtype)"},
    {"set_allocator(allocator)", set_allocator, "accepted: Kiln allocates scratch memory itself"},
};

// --- triton.runtime.driver
// ----------------------------------------------------------------------------------------------

Value active_device(Interp& in, NativeArgs&) { return make<DeviceObject>(torch_state(in).device()); }
Value current_device(Interp& in, NativeArgs&) {
  return *make<DeviceObject>(torch_state(in).device())->attribute(in, "index");
}
Value current_target(Interp& in, NativeArgs&) {
  DeviceInfo i = torch_state(in).device().info();
  auto o = make<Opaque>("target");
  bool cuda = torch_state(in).device().is_cuda();
  o->members.set("backend", Value::str(cuda ? "cuda" : "cpu"));
  o->members.set("arch", cuda ? Value::integer(std::atoi(i.target.c_str() + 3)) : Value::str(i.target));
  o->members.set("warp_size", Value::integer(32));
  return o;
}

/// The properties that occupancy formulas of scripts read. A CPU has no registers or warps that programs share, and all
/// of its memory for what a GPU would keep in shared memory.
Value device_properties(Interp& in, NativeArgs&) {
  constexpr int64_t kRegisters = 65536, kWarp = 32;
  DeviceInfo i = torch_state(in).device().info();
  auto d = make<Dict>();
  d->table.set("name", Value::str(i.name));
  d->table.set("multiprocessor_count", Value::integer(i.compute_units));
  const bool cuda = torch_state(in).device().is_cuda();
  d->table.set("max_num_regs", cuda ? Value::integer(kRegisters) : Value::none());
  d->table.set("max_shared_mem", Value::integer(i.shared_bytes > 0 ? i.shared_bytes : i.memory_bytes));
  d->table.set("warpSize", cuda ? Value::integer(kWarp) : Value::none());
  d->table.set("total_memory", Value::integer(i.memory_bytes));
  return d;
}
Value empty_cache(Interp& in, NativeArgs&) {
  Device& device = torch_state(in).device();
  int64_t bytes[] = {bytes_over_caches(device.info())};
  return wrap(in.take(Tensor::empty(device, DType::kI8, bytes)));
}
Value clear_cache(Interp& in, NativeArgs& a) {
  tensor_of(in, a[0], "clear_cache()");
  in.check(a[0].get<TensorObject>()->changing(in).fill(0));
  return Value::none();
}
Value device_interface(Interp& in, NativeArgs&) { return in.import_module("torch.cuda"); }

constexpr NativeDef kActive[] = {
    {"get_active_torch_device()", active_device, "the session's device"},
    {"get_current_device()", current_device, "the number of the session's GPU"},
    {"get_current_target()", current_target, "what kernels are compiled for: .backend, .arch"},
    {"get_device_interface()", device_interface, "torch.cuda"},
    {"get_empty_cache_for_benchmark()", empty_cache, "a tensor as large as the caches"},
    {"clear_cache(cache)", clear_cache, "writes over it"},
};
constexpr NativeDef kUtils[] = {{"get_device_properties(device=0)", device_properties, "figures of the device"}};

Ref<Opaque> object_of(std::string name, std::span<const NativeDef> defs) {
  auto o = make<Opaque>(std::move(name));
  for (const NativeDef& d : defs) {
    auto native = make<Native>(d);
    o->members.set(native->name, native);
  }
  return o;
}

void fill_driver(Interp&, ModuleObject& m) {
  auto active = object_of("triton.runtime.driver.active", kActive);
  active->members.set("utils", object_of("utils", kUtils));
  m.members.set("active", active);
}
/// The names under which files import what triton has.
void fill_autotuner(Interp& in, ModuleObject& m) {
  install_tuning(m);
  m.members.set("Autotuner", in.type_of(Autotuner::kKind));
  m.members.set("OutOfResources", in.exception_type("RuntimeError"));
}
void fill_jit(Interp& in, ModuleObject& m) {
  install_kernels(m);
  m.members.set("JITFunction", in.type_of(KernelObject::kKind));
  m.members.set("KernelInterface", in.type_of(KernelObject::kKind));
}
void fill_errors(Interp& in, ModuleObject& m) {
  for (std::string_view name : {"OutOfResources", "PTXASError", "AutotunerError"})
    m.members.set(name, in.exception_type("RuntimeError"));
  for (std::string_view name : {"CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct"})
    m.members.set(name, in.exception_type("Exception"));
}
void fill_compiler(Interp& in, ModuleObject& m) {
  fill_errors(in, m);
  m.members.set("errors", in.import_module("triton.compiler.errors"));
}

void fill_runtime(Interp& in, ModuleObject& m) {
  m.members.set("JITFunction", in.type_of(KernelObject::kKind));
  m.members.set("KernelInterface", in.type_of(KernelObject::kKind));
  m.members.set("OutOfResources", in.exception_type("RuntimeError"));
  m.members.set("Autotuner", in.type_of(Autotuner::kKind));
  m.members.set("driver", in.import_module("triton.runtime.driver"));
  install_kernels(m);
  install_tuning(m);
  // Last: triton.runtime.jit is the module, not the function of that name in it.
  for (std::string_view sub : {"autotuner", "errors", "jit"})
    m.members.set(sub, in.import_module("triton.runtime." + std::string(sub)));
}

void fill_tools(Interp&, ModuleObject& m) { m.members.set("TensorDescriptor", tensor_descriptor_class()); }
void fill_nothing(Interp&, ModuleObject&) {}

void fill_profiler(Interp& in, ModuleObject& m) {
  m.members.set("language", in.import_module("triton.profiler.language"));
}

void fill_triton(Interp& in, ModuleObject& m) {
  install_kernel_methods(in);
  install_tuning_methods(in);
  add_functions(m, kTriton);
  install_kernels(m);
  install_tuning(m);
  m.members.set("__version__", Value::str(std::string(frontend::kTritonVersion)));
  m.members.set("JITFunction", in.type_of(KernelObject::kKind));
  m.members.set("OutOfResources", in.exception_type("RuntimeError"));
  m.members.set("CompilationError", in.exception_type("Exception"));
  for (std::string_view sub : {"language", "runtime", "testing", "tools", "compiler"})
    m.members.set(sub, in.import_module("triton." + std::string(sub)));
}

constexpr ModuleDef kModules[] = {
    {"triton", fill_triton},
    {"triton.runtime", fill_runtime},
    {"triton.runtime.driver", fill_driver},
    {"triton.runtime.autotuner", fill_autotuner},
    {"triton.runtime.errors", fill_errors},
    {"triton.runtime.jit", fill_jit},
    {"triton.compiler", fill_compiler},
    {"triton.compiler.errors", fill_errors},
    {"triton.profiler", fill_profiler},
    {"triton.testing", fill_testing},
    {"triton.tools", fill_nothing},
    {"triton.tools.tensor_descriptor", fill_tools},
};

}  // namespace

std::span<const ModuleDef> triton_modules() { return kModules; }

}  // namespace kiln::script
