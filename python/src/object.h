// Python objects in C++, within the limited API: one build serves CPython 3.10 and everything after it. Functions here
// throw Raised where Python has an exception set; guarded() turns that, and errors of Kiln, into a return to Python.
#pragma once
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030A0000
#endif
#include <Python.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

#include "kiln/result.h"

namespace kiln::python {

/// Python has an exception set.
struct Raised {};

/// A reference that is owned.
class Ref {
 public:
  Ref() = default;
  /// Takes over a new reference; throws Raised for null.
  static Ref take(PyObject* object) {
    if (!object) throw Raised();
    return Ref(object);
  }
  static Ref share(PyObject* object) {
    Py_XINCREF(object);
    return Ref(object);
  }
  Ref(Ref&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  Ref& operator=(Ref&& o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  Ref(const Ref& o) : object_(o.object_) { Py_XINCREF(object_); }
  Ref& operator=(const Ref& o) {
    Ref copy(o);
    std::swap(object_, copy.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  explicit Ref(PyObject* object) : object_(object) {}
  PyObject* object_ = nullptr;
};

/// When Python ends, the GIL is not to be had any more: before 3.14 Python ends a daemon thread that asks for it, by
/// unwinding, through our frames and their references. Such a thread waits for the end here, as since 3.14 it does
/// there.
template <class Fn>
auto take_gil(Fn take) {
  try {
    return take();
  } catch (...) {  // it must not go on
    for (;;) pause();
  }
}

/// The GIL, given back while it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    take_gil([this] { PyEval_RestoreThread(state_); });
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};
/// The GIL, taken on a thread that gave it back.
class WithGil {
 public:
  WithGil() : state_(take_gil([] { return PyGILState_Ensure(); })) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

/// kiln.Error, with the diagnostic's parts as attributes.
[[noreturn]] void raise(const Diagnostic& error);
template <class... Args>
[[noreturn]] void raise(PyObject* type, const char* format, Args... args) {
  PyErr_Format(type, format, args...);
  throw Raised();
}
template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return *std::move(result);
}
inline void check(int status) {
  if (status < 0) throw Raised();
}
inline void check(const Status& status) {
  if (!status.ok()) raise(status.error());
}

/// Calls fn() → Ref.
template <class Fn>
PyObject* guarded(Fn fn) {
  try {
    return fn().release();
  } catch (const Raised&) {
    return nullptr;
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
    return nullptr;
  }
}

/// One call more on the stack that Python's limit of recursion is about; RecursionError where that is too many.
class Deeper {
 public:
  explicit Deeper(const char* where) {
    if (Py_EnterRecursiveCall(where)) throw Raised();
  }
  ~Deeper() { Py_LeaveRecursiveCall(); }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
};

inline Ref none() { return Ref::share(Py_None); }
inline Ref text(std::string_view s) {
  return Ref::take(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace"));
}
inline Ref bytes(std::string_view s) {
  return Ref::take(PyBytes_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size())));
}
/// A list of str.
template <class Texts>
Ref text_list(const Texts& texts) {
  Ref list = Ref::take(PyList_New(0));
  for (const auto& t : texts) check(PyList_Append(list.get(), text(t).get()));
  return list;
}
/// The exception that Python has set, which it then has no more.
inline Ref take_exception() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  Py_XDECREF(type), Py_XDECREF(trace);
  return value ? Ref::take(value) : none();
}
inline Ref number(long long v) { return Ref::take(PyLong_FromLongLong(v)); }
inline std::string_view text_of(PyObject* object) {
  if (!PyUnicode_Check(object)) raise(PyExc_TypeError, "expected a str, got %R", object);
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(object, &size);
  if (!data) throw Raised();
  return {data, static_cast<size_t>(size)};
}
inline long long integer_of(PyObject* object) {
  const long long v = PyLong_AsLongLong(object);
  if (v == -1 && PyErr_Occurred()) throw Raised();
  return v;
}
/// Of a tuple or a list; the items stay the sequence's.
inline Py_ssize_t length(PyObject* sequence) {
  const Py_ssize_t n = PySequence_Size(sequence);
  if (n < 0) throw Raised();
  return n;
}
inline PyObject* item(PyObject* sequence, Py_ssize_t i) {
  PyObject* found = PyTuple_Check(sequence) ? PyTuple_GetItem(sequence, i) : PyList_GetItem(sequence, i);
  if (!found) throw Raised();
  return found;
}

/// The C++ object behind a Python object of one of this module's types.
template <class T>
struct Boxed {
  PyObject_HEAD T value;
};
template <class T>
T& unboxed(PyObject* self) {
  return reinterpret_cast<Boxed<T>*>(self)->value;
}
/// A new object of a heap type whose C++ value is `value`.
template <class T>
Ref boxed(PyTypeObject* type, T value) {
  auto alloc = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  Ref self = Ref::take(alloc(type, 0));
  new (&unboxed<T>(self.get())) T(std::move(value));
  return self;
}
template <class T>
void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  unboxed<T>(self).~T();
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

/// The module's types; each adds itself to the module.
void add_checked(PyObject* module);
void add_dispatcher(PyObject* module);
void add_errors(PyObject* module);
void add_expr(PyObject* module);
void add_expr_program(PyObject* module);
void add_function_table(PyObject* module);
void add_image(PyObject* module);
void add_launcher(PyObject* module);
void add_session(PyObject* module);
/// Adds a heap type and gives it; the module keeps it alive.
PyTypeObject* add_type(PyObject* module, PyType_Spec& spec, const char* name);

}  // namespace kiln::python
