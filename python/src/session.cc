// kiln._kiln.Session: a prompt without a terminal (kiln/session.h).
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "kiln/faults.h"
#include "kiln/interop.h"
#include "kiln/session.h"
#include "python/src/devices.h"
#include "python/src/object.h"
#include "runtime/tensor/dlpack_abi.h"

namespace kiln::python {

namespace {

PyTypeObject* value_type = nullptr;

// --- values ----------------------------------------------------------------------------------------------------------

constexpr const char* kUnused = "dltensor";  // a capsule that nobody has taken the tensor out of

std::string_view kind_name(SessionValue::Kind kind) {
  switch (kind) {
    case SessionValue::Kind::kNone:
      return "none";
    case SessionValue::Kind::kPlain:
      return "plain";
    case SessionValue::Kind::kTensor:
      return "tensor";
    case SessionValue::Kind::kTable:
      return "table";
    case SessionValue::Kind::kOther:
      return "other";
  }
  return "other";
}

const Tensor& tensor_of(PyObject* self) {
  const SessionValue& value = unboxed<SessionValue>(self);
  if (value.kind != SessionValue::Kind::kTensor) raise(PyExc_TypeError, "the value is no tensor");
  return value.tensor;
}

void delete_unused(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kUnused)) return;
  auto* tensor = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kUnused));
  tensor->deleter(tensor);
}

// The arguments say with what stream the consumer will read: the tensor is computed and waited for in any case.
PyObject* dlpack(PyObject* self, PyObject*, PyObject*) {
  return guarded([&] {
    const Tensor& tensor = tensor_of(self);
    check([&] {
      const WithoutGil free;
      return tensor.device().synchronize();
    }());
    // The capsule owns it until a consumer renames the capsule, as DLPack asks.
    DLManagedTensor* managed = value_of(to_dlpack(tensor));
    PyObject* capsule = PyCapsule_New(managed, kUnused, delete_unused);
    if (!capsule) managed->deleter(managed);
    return Ref::take(capsule);
  });
}

PyObject* dlpack_device(PyObject* self, PyObject*) {
  return guarded([&] {
    DLManagedTensor* managed = value_of(to_dlpack(tensor_of(self)));
    // DLPack's numbers of a device come with an export, which is let go at once.
    const runtime::dlpack::Device device = managed->tensor.device;
    managed->deleter(managed);
    return Ref::take(PyTuple_Pack(2, number(device.type).get(), number(device.id).get()));
  });
}

Ref tables_of(const SessionValue& value) {
  Ref list = Ref::take(PyList_New(0));
  for (const SessionTable& t : value.tables) {
    Ref row = Ref::take(PyDict_New());
    for (const auto& [name, form] :
         {std::pair("name", &t.name), std::pair("text", &t.text), std::pair("html", &t.html),
          std::pair("markdown", &t.markdown), std::pair("csv", &t.csv), std::pair("json", &t.json)})
      check(PyDict_SetItemString(row.get(), name, text(*form).get()));
    check(PyDict_SetItemString(row.get(), "columns", text_list(t.columns).get()));
    check(PyList_Append(list.get(), row.get()));
  }
  return list;
}

template <auto Get>
PyObject* get(PyObject* self, void*) {
  return guarded([&] { return Get(unboxed<SessionValue>(self)); });
}

#define KILN_GETTER(NAME, EXPRESSION, DOC)                                                    \
  {                                                                                           \
    NAME, get<[](const SessionValue& v) -> Ref { return EXPRESSION; }>, nullptr, DOC, nullptr \
  }
PyGetSetDef value_getters[] = {
    KILN_GETTER("kind", text(kind_name(v.kind)), "'none', 'plain', 'tensor', 'table' or 'other'"),
    KILN_GETTER("type", text(v.type), "'int', 'list', 'torch.Tensor', …"),
    KILN_GETTER("repr", text(v.repr), "as the prompt shows it"),
    KILN_GETTER("json", text(v.json), "of a plain value; tuples are lists"),
    KILN_GETTER("tables", tables_of(v), "a dict for each table of a command: its name and forms"),
    {}};
#undef KILN_GETTER

PyMethodDef value_methods[] = {
    {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(dlpack)), METH_VARARGS | METH_KEYWORDS,
     "A tensor's memory, as DLPack has it."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, "(type, index) of the tensor's device."},
    {}};

PyType_Slot value_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy<SessionValue>)},
                             {Py_tp_methods, value_methods},
                             {Py_tp_getset, value_getters},
                             {Py_tp_doc, const_cast<char*>("A value of a session (kiln/session.h).")},
                             {}};
PyType_Spec value_spec = {"kiln._kiln.SessionValue", sizeof(Boxed<SessionValue>), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, value_slots};

// --- sessions --------------------------------------------------------------------------------------------------------

std::atomic<bool> python_ends{false};
const std::thread::id main_thread = std::this_thread::get_id();  // the one that imports

/// Python ends threads that ask for the GIL then by unwinding, which destructors do not survive: they stay here
/// instead.
void stay_if_python_ends() {
  while (python_ends && std::this_thread::get_id() != main_thread) std::this_thread::sleep_for(std::chrono::hours(1));
}

/// A session with what Python needs around it. Its work is done without the GIL, by one thread at a time.
class Held {
 public:
  Held(Ref output, Ref progress, Session::Options options)
      : output_(std::move(output)), progress_(std::move(progress)) {
    options.output = [this](std::string_view printed) { print(output_, printed); };
    if (progress_) options.progress = [this](std::string_view line) { print(progress_, line); };
    session_ = std::make_unique<Session>(std::move(options));
  }

  /// work(Session&) without the GIL. Throws what the output raised meanwhile.
  template <class Work>
  auto with(Work work) {
    // The output may call back into the session, which waits for itself then.
    if (owner_ == std::this_thread::get_id())
      raise(PyExc_RuntimeError, "the session runs already, in this call's callers");
    auto result = [&] {
      const WithoutGil free;
      const std::lock_guard lock(busy_);
      owner_ = std::this_thread::get_id();
      auto done = work(*session_);
      owner_ = std::thread::id();
      stay_if_python_ends();
      return done;
    }();
    // The first exception of the output ended the work; it is raised where the caller sees it.
    if (const Ref raised = std::exchange(raised_, {})) {
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.get())), raised.get());
      throw Raised();
    }
    return result;
  }
  void interrupt() { session_->interrupt(); }

 private:
  void print(const Ref& output, std::string_view printed) {
    // Once Python ends, who asks for the GIL never comes back.
    stay_if_python_ends();
    const WithGil held;
    if (raised_) return;
    const Ref argument = text(printed);
    if (PyObject* result = PyObject_CallFunctionObjArgs(output.get(), argument.get(), nullptr)) {
      Py_DECREF(result);
      return;
    }
    // Kept for with(): the session's code in between knows no Python exceptions.
    raised_ = take_exception();
    session_->interrupt();
  }

  Ref output_, progress_;
  std::unique_ptr<Session> session_;
  std::mutex busy_;
  std::atomic<std::thread::id> owner_{};
  Ref raised_;  // by the output
};

using Shared = std::shared_ptr<Held>;  // Boxed holds what can be moved
Held& held(PyObject* self) { return *unboxed<Shared>(self); }

/// An interrupt is Python's own; what was said of it goes along.
[[noreturn]] void raise_status(const Diagnostic& error) {
  if (error.kind != ErrorKind::kInterrupted) raise(error);
  PyErr_SetString(PyExc_KeyboardInterrupt, error.message.c_str());
  throw Raised();
}
Ref done(const Status& status) {
  if (!status.ok()) raise_status(status.error());
  return none();
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  return guarded([&] {
    static const char* names[] = {"output", "device", "shell", "takes_sigint", "progress", nullptr};
    PyObject *output = nullptr, *progress = nullptr;
    const char* device = "";
    int shell = 0, takes_sigint = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|sppO", const_cast<char**>(names), &output, &device, &shell,
                                     &takes_sigint, &progress))
      throw Raised();
    catch_kernel_faults();
    Session::Options options;
    options.runtime = runtime_of_module();
    options.device = device;
    options.may_run_shell = shell != 0;
    options.takes_sigint = takes_sigint != 0;
    return boxed<Shared>(
        type, std::make_shared<Held>(Ref::share(output), progress ? Ref::share(progress) : Ref(), std::move(options)));
  });
}

PyObject* run(PyObject* self, PyObject* argument) {
  return guarded([&] {
    const std::string code(text_of(argument));
    return done(held(self).with([&](Session& s) { return s.run(code); }));
  });
}

PyObject* define(PyObject* self, PyObject* args) {
  return guarded([&] {
    const char *code = nullptr, *file = nullptr;
    int line = 1;
    if (!PyArg_ParseTuple(args, "ssi", &code, &file, &line)) throw Raised();
    return done(held(self).with([&](Session& s) { return s.define(code, file, line); }));
  });
}

PyObject* evaluate(PyObject* self, PyObject* argument) {
  return guarded([&] {
    const std::string expression(text_of(argument));
    auto value = held(self).with([&](Session& s) { return s.evaluate(expression); });
    if (!value.ok()) raise_status(value.error());
    return boxed(value_type, *std::move(value));
  });
}

PyObject* command(PyObject* self, PyObject* argument) {
  return guarded([&] {
    const std::string line(text_of(argument));
    auto result = held(self).with([&](Session& s) { return s.command(line); });
    Ref value = boxed(value_type, std::move(result.value));
    Ref problem = none();
    try {
      if (!result.status.ok()) raise_status(result.status.error());
    } catch (const Raised&) {
      problem = take_exception();
    }
    PyObject* interrupted = result.was_interrupted ? Py_True : Py_False;
    return Ref::take(PyTuple_Pack(4, text(result.text).get(), value.get(), problem.get(), interrupted));
  });
}

PyObject* set(PyObject* self, PyObject* args) {
  return guarded([&] {
    const char* name = nullptr;
    PyObject* object = nullptr;
    if (!PyArg_ParseTuple(args, "sO", &name, &object)) throw Raised();
    if (Py_TYPE(object) == value_type) {
      const SessionValue& value = unboxed<SessionValue>(object);
      return done(held(self).with([&](Session& s) { return s.set(name, value); }));
    }
    auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(object, kUnused));
    if (!managed) throw Raised();
    const Tensor tensor = value_of(from_dlpack(managed, runtime_of_module()));
    // So a consumer says that the tensor is taken: the capsule's destructor leaves it alone.
    check(PyCapsule_SetName(object, "used_dltensor"));
    return done(held(self).with([&](Session& s) { return s.set(name, tensor); }));
  });
}

PyObject* remove(PyObject* self, PyObject* argument) {
  return guarded([&] {
    const std::string name(text_of(argument));
    held(self).with([&](Session& s) { return s.remove(name), true; });
    return none();
  });
}

PyObject* variable(PyObject* self, PyObject* argument) {
  return guarded([&] {
    const std::string name(text_of(argument));
    return boxed(value_type, held(self).with([&](Session& s) { return s.variable(name); }));
  });
}

PyObject* holds(PyObject* self, PyObject* args) {
  return guarded([&] {
    const char* name = nullptr;
    PyObject* object = nullptr;
    if (!PyArg_ParseTuple(args, "sO!", &name, value_type, &object)) throw Raised();
    const SessionValue& value = unboxed<SessionValue>(object);
    return Ref::share(held(self).with([&](Session& s) { return s.holds(name, value); }) ? Py_True : Py_False);
  });
}

PyObject* complete(PyObject* self, PyObject* argument) {
  return guarded([&] {
    const std::string before(text_of(argument));
    const SessionCompletion found = held(self).with([&](Session& s) { return s.complete(before); });
    const std::string_view replaced = std::string_view(before).substr(before.size() - found.replaced);
    // Python counts characters, the session bytes.
    const auto characters = std::ranges::count_if(replaced, [](char c) { return (c & 0xc0) != 0x80; });
    return Ref::take(PyTuple_Pack(2, text_list(found.candidates).get(), number(characters).get()));
  });
}

PyObject* interrupt(PyObject* self, PyObject*) {
  // Without the lock, which the thread that is to be interrupted has.
  held(self).interrupt();
  return none().release();
}

PyObject* end_output(PyObject*, PyObject*) {
  python_ends = true;
  return none().release();
}

PyObject* commands(PyObject*, PyObject*) {
  return guarded([] {
    Ref list = Ref::take(PyList_New(0));
    for (const SessionCommand& c : Session::commands()) {
      const Ref row = Ref::take(
          PyTuple_Pack(4, text(c.name).get(), text(c.synopsis).get(), text(c.help).get(), text(c.description).get()));
      check(PyList_Append(list.get(), row.get()));
    }
    return list;
  });
}

PyMethodDef methods[] = {
    {"run", run, METH_O, "Code and % commands, as at the prompt."},
    {"define", define, METH_VARARGS, "define(text, file, first line): definitions of a file."},
    {"evaluate", evaluate, METH_O, "The value of an expression."},
    {"command", command, METH_O,
     "A % command -> (what it said, its value, the error or None, whether it was interrupted)."},
    {"set", set, METH_VARARGS, "set(name, value): a SessionValue, or a capsule of DLPack."},
    {"remove", remove, METH_O, "Deletes a variable."},
    {"variable", variable, METH_O, "A handle of what a variable is now."},
    {"holds", holds, METH_VARARGS, "holds(name, value): whether the variable is still that very value."},
    {"complete", complete, METH_O, "Candidates for the end of a text -> (candidates, characters that they replace)."},
    {"interrupt", interrupt, METH_NOARGS, "What runs in another thread ends with KeyboardInterrupt."},
    {"end_output", end_output, METH_NOARGS | METH_STATIC, "Python ends: sessions of other threads print nothing more."},
    {"commands", commands, METH_NOARGS | METH_STATIC, "(name, synopsis, help, description) of each % command."},
    {}};

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy<Shared>)},
                       {Py_tp_methods, methods},
                       {Py_tp_doc, const_cast<char*>("A prompt without a terminal (kiln/session.h).")},
                       {}};
PyType_Spec spec = {"kiln._kiln.Session", sizeof(Boxed<Shared>), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

void add_session(PyObject* module) {
  value_type = add_type(module, value_spec, "SessionValue");
  add_type(module, spec, "Session");
}

}  // namespace kiln::python
