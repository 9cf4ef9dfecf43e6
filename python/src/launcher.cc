// Launches of code that Triton has loaded: arguments of Python to slots, and the call of the driver.
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "kiln/cuda_launch.h"
#include "kiln/tensor.h"
#include "python/src/image.h"

namespace kiln::python {

namespace {

/// How one argument becomes slots.
struct Step {
  enum class Kind { kSkip, kPointer, kSigned, kUnsigned, kF16, kBF16, kF32, kF64, kDescriptor, kTuple };
  Kind kind = Kind::kSkip;
  int bits = 64;
  int rank = 0;             // kDescriptor
  bool padded = false;      // kDescriptor: with NaN
  std::vector<Step> items;  // kTuple
};

struct Launcher {
  CudaLauncher code;
  std::vector<Step> steps;
  size_t slots = 0;
  bool cooperative = false;
  Ref with_nan;  // null: there is no descriptor
};

/// Thrown for a descriptor with NaN around its tensor where the code has 0.
struct IsPadded {};

Step step_of(PyObject* object) {
  using Kind = Step::Kind;
  Step out;
  if (object == Py_None) return out;
  if (PyList_Check(object)) {
    out.kind = Kind::kTuple;
    for (Py_ssize_t i = 0; i < length(object); ++i) out.items.push_back(step_of(item(object, i)));
    return out;
  }
  if (PyLong_Check(object)) {
    out.kind = Kind::kDescriptor;
    const int rank = static_cast<int>(integer_of(object));
    out.rank = std::abs(rank), out.padded = rank < 0;
    return out;
  }
  const std::string_view type = text_of(object);
  struct Row {
    std::string_view name;
    Kind kind;
    int bits;
  };
  constexpr Row kRows[] = {{"*", Kind::kPointer, 64},    {"i1", Kind::kSigned, 8},     {"u1", Kind::kUnsigned, 8},
                           {"i8", Kind::kSigned, 8},     {"i16", Kind::kSigned, 16},   {"i32", Kind::kSigned, 32},
                           {"i64", Kind::kSigned, 64},   {"u8", Kind::kUnsigned, 8},   {"u16", Kind::kUnsigned, 16},
                           {"u32", Kind::kUnsigned, 32}, {"u64", Kind::kUnsigned, 64}, {"fp16", Kind::kF16, 16},
                           {"bf16", Kind::kBF16, 16},    {"fp32", Kind::kF32, 32},     {"f32", Kind::kF32, 32},
                           {"fp64", Kind::kF64, 64}};
  for (const Row& row : kRows)
    if (type == row.name || (row.kind == Kind::kPointer && type.starts_with('*'))) {
      out.kind = row.kind;
      out.bits = row.bits;
      return out;
    }
  raise(PyExc_TypeError, "no launch argument of type %R", object);
}

size_t slots_of(const Step& step) {
  size_t n = 0;
  switch (step.kind) {
    case Step::Kind::kSkip:
      return 0;
    case Step::Kind::kDescriptor:
      // A base, `rank` sizes, and all strides but the last.
      return static_cast<size_t>(2 * step.rank);
    case Step::Kind::kTuple:
      for (const Step& i : step.items) n += slots_of(i);
      return n;
    default:
      return 1;
  }
}

struct Words {
  PyObject *data_ptr, *base, *shape, *strides, *padding, *round_f32_to_tf32;
};
const Words& words() {
  // Interned once: looking an attribute up then compares pointers.
  static const Words kWords = {PyUnicode_InternFromString("data_ptr"), PyUnicode_InternFromString("base"),
                               PyUnicode_InternFromString("shape"),    PyUnicode_InternFromString("strides"),
                               PyUnicode_InternFromString("padding"),  PyUnicode_InternFromString("round_f32_to_tf32")};
  return kWords;
}

class Arguments {
 public:
  Arguments(const Launcher& launcher, uint64_t* slots) : launcher_(launcher), next_(slots) {}

  void add(const Step& step, PyObject* object) {
    using Kind = Step::Kind;
    switch (step.kind) {
      case Kind::kSkip:
        break;
      case Kind::kPointer:
        put(pointer(object));
        break;
      case Kind::kSigned: {
        const long long v = integer_of(object);
        if (step.bits < 64 && (v < -(1LL << (step.bits - 1)) || v >= (1LL << (step.bits - 1))))
          raise(PyExc_OverflowError, "the argument %R does not fit into %d bits", object, step.bits);
        put(static_cast<uint64_t>(v));
        break;
      }
      case Kind::kUnsigned: {
        // Not checked, as in Triton's launcher: -1 is the greatest unsigned number.
        const unsigned long long v = PyLong_AsUnsignedLongLongMask(object);
        if (PyErr_Occurred()) throw Raised();
        put(v);
        break;
      }
      case Kind::kF16: {
        uint16_t bits = 0;
        from_double(DType::kF16, real(object), &bits);
        put(bits);
        break;
      }
      case Kind::kBF16:  // cut off, as Triton's launcher does
        put(std::bit_cast<uint32_t>(static_cast<float>(real(object))) >> 16);
        break;
      case Kind::kF32:
        put(std::bit_cast<uint32_t>(static_cast<float>(real(object))));
        break;
      case Kind::kF64:
        put(std::bit_cast<uint64_t>(real(object)));
        break;
      case Kind::kDescriptor:
        descriptor(step, object);
        break;
      case Kind::kTuple: {
        const Ref fast = Ref::take(PySequence_Tuple(object));
        if (length(fast.get()) != static_cast<Py_ssize_t>(step.items.size()))
          raise(PyExc_TypeError, "expected a tuple of %d items, got %R", static_cast<int>(step.items.size()), object);
        for (size_t i = 0; i < step.items.size(); ++i) add(step.items[i], item(fast.get(), static_cast<Py_ssize_t>(i)));
        break;
      }
    }
    // Triton's message counts all arguments, also those without a slot.
    ++index_;
  }

 private:
  void put(uint64_t v) { *next_++ = v; }

  static double real(PyObject* object) {
    const double v = PyFloat_AsDouble(object);
    if (v == -1 && PyErr_Occurred()) throw Raised();
    return v;
  }

  uint64_t pointer(PyObject* object) {
    if (object == Py_None) return 0;
    if (PyLong_Check(object)) {
      const unsigned long long v = PyLong_AsUnsignedLongLong(object);
      if (PyErr_Occurred()) throw Raised();
      return v;
    }
    const Ref address = Ref::take(PyObject_CallMethodObjArgs(object, words().data_ptr, nullptr));
    if (!PyLong_Check(address.get()))
      raise(PyExc_TypeError, "data_ptr method of Pointer object must return 64-bit int");
    const unsigned long long v = PyLong_AsUnsignedLongLong(address.get());
    if (PyErr_Occurred()) throw Raised();
    // Asks the driver, since a tensor of the CPU that is not mapped would fault in the kernel.
    Result<uint64_t> reached = launcher_.code.device_address(v);
    if (reached.ok()) return *reached;
    if (reached.error().kind == ErrorKind::kValue)
      raise(PyExc_ValueError, "Pointer argument (at %d) cannot be accessed from Triton (cpu tensor?)", index_);
    raise(PyExc_RuntimeError, "Triton Error [CUDA]: %s", reached.error().message.c_str());
  }

  /// Base, sizes, and strides but the last: what Kiln's code takes of a descriptor.
  void descriptor(const Step& step, PyObject* object) {
    const auto is_nan = [](PyObject* v) { return PyUnicode_Check(v) && text_of(v) == "nan"; };
    if (!step.padded && has(object, words().padding, is_nan)) throw IsPadded();
    if (has(object, words().round_f32_to_tf32, [](PyObject* v) { return PyObject_IsTrue(v) == 1; }))
      raise(PyExc_NotImplementedError,
            "Kiln's code cannot use a tensor descriptor that rounds to tf32; compile this kernel with Triton "
            "(kiln.triton.disable())");
    put(pointer(Ref::take(PyObject_GetAttr(object, words().base)).get()));
    numbers(object, words().shape, step.rank, step.rank);
    numbers(object, words().strides, step.rank, step.rank - 1);
  }
  template <class Test>
  static bool has(PyObject* object, PyObject* name, Test test) {
    PyObject* found = PyObject_GetAttr(object, name);
    if (!found) return PyErr_Clear(), false;
    const Ref owned = Ref::take(found);
    return test(found);
  }
  void numbers(PyObject* object, PyObject* name, int count, int used) {
    const Ref list = Ref::take(PySequence_Tuple(Ref::take(PyObject_GetAttr(object, name)).get()));
    if (length(list.get()) != count)
      raise(PyExc_TypeError, "expected a tensor descriptor of %d dimensions, got %R", count, object);
    for (int i = 0; i < used; ++i) put(static_cast<uint64_t>(integer_of(item(list.get(), i))));
  }

  const Launcher& launcher_;
  uint64_t* next_;
  int index_ = 0;
};

/// With the code that has NaN around tensors; the hook at the beginning was called.
Ref launch_padded(const Launcher& launcher, PyObject* const* args, Py_ssize_t n) {
  constexpr Py_ssize_t kEnter = 7;
  if (!launcher.with_nan)
    raise(PyExc_NotImplementedError, "this launcher has no code for a tensor descriptor padded with nan");
  const Ref all = Ref::take(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* const given = i == kEnter ? Py_None : args[i];
    Py_INCREF(given);
    PyTuple_SetItem(all.get(), i, given);
  }
  return Ref::take(PyObject_CallObject(launcher.with_nan.get(), all.get()));
}

/// launch(x, y, z, stream, function, packed metadata, launch metadata, enter hook, exit hook, *arguments), as
/// CompiledKernel.run is called.
PyObject* launch(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  constexpr Py_ssize_t kFixed = 9;
  return guarded([&] {
    const auto& launcher = unboxed<Launcher>(self);
    if (n != kFixed + static_cast<Py_ssize_t>(launcher.steps.size()))
      raise(PyExc_TypeError, "a launch takes %d arguments of the kernel, got %d",
            static_cast<int>(launcher.steps.size()), static_cast<int>(n - kFixed));
    const std::array<int64_t, 3> grid = {integer_of(args[0]), integer_of(args[1]), integer_of(args[2])};
    const auto handle = [&](PyObject* object) {
      const unsigned long long v = object == Py_None ? 0 : PyLong_AsUnsignedLongLong(object);
      if (PyErr_Occurred()) throw Raised();
      return reinterpret_cast<void*>(v);
    };
    void* const stream = handle(args[3]);
    void* const function = handle(args[4]);
    PyObject *metadata = args[6], *enter = args[7], *leave = args[8];
    // Hooks of Triton's (proton) around the launch.
    if (enter != Py_None) Ref::take(PyObject_CallFunctionObjArgs(enter, metadata, nullptr));
    constexpr size_t kInline = 64;
    uint64_t few[kInline];
    std::vector<uint64_t> many;
    uint64_t* slots = few;
    if (launcher.slots > kInline) many.resize(launcher.slots), slots = many.data();
    Arguments out(launcher, slots);
    try {
      for (size_t i = 0; i < launcher.steps.size(); ++i) out.add(launcher.steps[i], args[kFixed + static_cast<int>(i)]);
    } catch (const IsPadded&) {
      return launch_padded(launcher, args, n);
    }
    const Status status = [&] {
      WithoutGil without;
      return launcher.code.launch(function, grid, {slots, launcher.slots}, stream, launcher.cooperative);
    }();
    if (!status.ok()) raise(PyExc_RuntimeError, "Triton Error [CUDA]: %s", status.error().message.c_str());
    if (leave != Py_None) Ref::take(PyObject_CallFunctionObjArgs(leave, metadata, nullptr));
    return none();
  });
}

/// Launcher(plan, steps, cooperative, with_nan=None): a step for each argument of the kernel in Triton's order: its
/// type
/// ("*fp16", "i32", …), None for a constexpr, the rank of a tensor descriptor (negative: with NaN around its tensor), a
/// list for a tuple. `with_nan` launches in place of this code where other descriptors have NaN.
PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&] {
    PyObject *image = nullptr, *steps = nullptr, *with_nan = Py_None;
    int cooperative = 0;
    if (!PyArg_ParseTuple(args, "OOp|O", &image, &steps, &cooperative, &with_nan)) throw Raised();
    Launcher out;
    const Image& code = image_of(image);
    out.code = value_of(CudaLauncher::make(code));
    out.cooperative = cooperative != 0;
    if (with_nan != Py_None) out.with_nan = Ref::share(with_nan);
    for (Py_ssize_t i = 0; i < length(steps); ++i) {
      out.steps.push_back(step_of(item(steps, i)));
      out.slots += slots_of(out.steps.back());
    }
    if (out.slots != code.params().size())
      raise(PyExc_TypeError, "the code has %d parameters, and these arguments have %d",
            static_cast<int>(code.params().size()), static_cast<int>(out.slots));
    return boxed(type, std::move(out));
  });
}

PyMethodDef methods[] = {{"launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(launch)), METH_FASTCALL,
                          "launch(x, y, z, stream, function, packed_metadata, launch_metadata, enter, exit, *args)"},
                         {}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy<Launcher>)},
                       {Py_tp_methods, methods},
                       {Py_tp_doc, const_cast<char*>("Launcher(image, steps, cooperative)")},
                       {}};
PyType_Spec spec = {"kiln._kiln.Launcher", sizeof(Boxed<Launcher>), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

void add_launcher(PyObject* module) { add_type(module, spec, "Launcher"); }

}  // namespace kiln::python
