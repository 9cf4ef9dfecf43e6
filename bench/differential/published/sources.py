"""Kernels of files that cannot be imported as they stand: a name and what it needs, statement by statement."""
import ast
import builtins
import importlib
import os
import types


class Missing(Exception):
    """A name that no statement of the file binds, or whose statement cannot be run here."""


class Lazy(types.ModuleType):
    """A module of the checkout: its names are looked up in its file when they are asked for."""

    def __init__(self, name, file):
        super().__init__(name)
        self.__dict__["_file"] = file

    def __getattr__(self, name):
        if name.startswith("__"): raise AttributeError(name)
        try:
            return self._file.get(name)
        except Missing as e:
            raise AttributeError(str(e)) from None


def is_jit(decorator):
    text = ast.unparse(decorator).split("(")[0]
    return text == "jit" or text.endswith((".jit", "_jit"))


class File:
    """The top-level statements of one file, run one at a time when a name of theirs is needed."""

    def __init__(self, path, loader):
        self.path, self.loader = path, loader
        self.names = {"__name__": "kiln_" + os.path.basename(path)[:-3], "__file__": path, "__builtins__": builtins}
        with open(path, encoding="utf-8") as f: self.tree = ast.parse(f.read(), path)
        self.binders, self.running = {}, set()
        self._collect(self.tree.body)

    def _collect(self, body):
        for node in body:
            if isinstance(node, (ast.If, ast.Try)):
                for part in ("body", "orelse", "finalbody"): self._collect(getattr(node, part, []))
                for handler in getattr(node, "handlers", []): self._collect(handler.body)
                continue
            for name in _bound(node): self.binders.setdefault(name, []).append(node)

    def kernel(self, name, line):
        """The function called so whose `def` is at that line, or of that name: tests define theirs inside of others."""
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.FunctionDef) or node.name != name or node in self.tree.body: continue
            if line not in (node.lineno, *(d.lineno for d in node.decorator_list)): continue
            self.binders[name] = [node]
        return self.get(name)

    def get(self, name):
        if name in self.names: return self.names[name]
        problem = f"{name} is not bound in {self.path}"
        # The first that can be run; what an `except` binds comes last.
        for node in sorted(self.binders.get(name, []), key=lambda n: isinstance(n, ast.Assign)):
            if id(node) in self.running: continue
            self.running.add(id(node))
            try:
                self._run(node, name)
                if name in self.names: return self.names[name]
            except Missing as e:
                problem = str(e)
            except Exception as e:
                problem = f"{name}: {type(e).__name__}: {e}"
            finally:
                self.running.discard(id(node))
        raise Missing(problem)

    def _run(self, node, name):
        if isinstance(node, ast.ImportFrom): return self._import_from(node, name)
        if isinstance(node, ast.Import): return self._import(node, name)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            jits = [d for d in node.decorator_list if is_jit(d)]
            constants = [d for d in node.decorator_list if "constexpr" in ast.unparse(d)]
            if isinstance(node, ast.FunctionDef):
                mark = ast.Name("__jit__", ast.Load(), lineno=node.lineno, col_offset=0, end_lineno=node.lineno,
                                end_col_offset=1)  # the function's own line: its text is looked up by it
                node.decorator_list = [mark] if jits else constants
                if jits: self.names["__jit__"] = self.loader.jit
            self._needs(node)
        else:
            self._needs(node)
        exec(compile(ast.fix_missing_locations(ast.Module([node], [])), self.path, "exec"), self.names)

    def _needs(self, node):
        for n in ast.walk(node):
            if not isinstance(n, ast.Name) or n.id not in self.binders or n.id in self.names: continue
            try:
                self.get(n.id)
            except Missing:
                pass  # perhaps a name of a branch that is not taken; what reads it says so

    def _import_from(self, node, name):
        for alias in node.names:
            if (alias.asname or alias.name) != name: continue
            base = self.loader.find(self.path, node.module or "", node.level)
            if isinstance(base, list):  # a folder, and the file of its own
                for path in (os.path.join(base[0], alias.name + ".py"), os.path.join(base[0], alias.name)):
                    if os.path.isfile(path):
                        self.names[name] = Lazy(name, self.loader.file(path))
                        return
                base = os.path.join(base[0], "__init__.py")
            if base is not None and os.path.isfile(base):
                self.names[name] = self.loader.file(base).get(alias.name)
                return
            module = importlib.import_module(node.module)
            try:
                self.names[name] = getattr(module, alias.name)
            except AttributeError:
                self.names[name] = importlib.import_module(f"{node.module}.{alias.name}")

    def _import(self, node, name):
        for alias in node.names:
            if (alias.asname or alias.name.split(".")[0]) != name: continue
            base = self.loader.find(self.path, alias.name, 0)
            if isinstance(base, str) and alias.asname: self.names[name] = Lazy(name, self.loader.file(base))
            else: exec(f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else ""), self.names)


def _bound(node):
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)): return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [a.asname or (a.name.split(".")[0] if isinstance(node, ast.Import) else a.name) for a in node.names]
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
    return []


class Loader:

    def __init__(self, jit):
        self.jit, self.files = jit, {}

    def file(self, path):
        if path not in self.files: self.files[path] = File(path, self)
        return self.files[path]

    def find(self, path, module, level):
        """The file of a module, [its folder], or None where it is not of the checkout."""
        parts = module.split(".") if module else []
        if level:
            folder = os.path.dirname(path)
            for _ in range(level - 1): folder = os.path.dirname(folder)
            return self._at(folder, parts)
        if parts[0] in ("triton", "torch", "numpy", "math", "typing", "os", "sys"): return None
        folder = os.path.dirname(path)
        while len(folder) > 1:
            if (found := self._at(folder, parts)) is not None: return found
            folder = os.path.dirname(folder)
        return None

    def _at(self, folder, parts):
        path = os.path.join(folder, *parts)
        if parts and os.path.isfile(path + ".py"): return path + ".py"
        if os.path.isdir(path) and (not parts or os.path.isfile(os.path.join(path, "__init__.py"))): return [path]
        return None
