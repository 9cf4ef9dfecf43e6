"""triton.knobs: Triton's settings. Kiln has its own (`kiln env`); those that it cannot follow are refused."""


# Results are the same without them: where things are kept, what is printed besides.
_WITHOUT_EFFECT = {
    "build.cc", "build.cudacrt_path", "build.cudart_path", "redis.key_format", "redis.host", "redis.port",
    "cache.manager_class", "cache.remote_manager_class", "compilation.always_compile", "compilation.store_binary_only",
    "compilation.disable_line_info", "compilation.use_ir_loc", "compilation.front_end_debugging", "autotuning.cache",
    "autotuning.print", "nvidia.cuobjdump", "nvidia.nvdisasm", "nvidia.ptxas", "nvidia.ptxas_blackwell",
    "nvidia.libdevice_path", "nvidia.libcuda_path", "nvidia.dump_ptxas_log", "proton.disable", "proton.cupti_lib_dir",
    "proton.enable_nvtx",
}

_INSTEAD = {
    "cache.dir": "KILN_CACHE_DIR is the folder", "cache.home_dir": "KILN_CACHE_DIR is the folder",
    "compilation.dump_ir": "%ir KERNEL shows it, KILN_DUMP_DIR keeps it",
    "cache.dump_dir": "KILN_DUMP_DIR is the folder",
    "nvidia.dump_nvptx": "%ptx KERNEL shows it",
    "compilation.allow_non_constexpr_globals": "annotate the global as tl.constexpr",
    "runtime.interpret": "the cpu device runs kernels without a GPU", "runtime.debug": "kernel[grid](…, check=True)",
    "runtime.override_num_warps": "kernel[grid](…, num_warps=…)",
    "runtime.override_arch": "%target shows code for another GPU",
    "language.fp32_default": "TRITON_F32_DEFAULT in the environment counts",
}


class _Knobs:
    def __init__(self, name, **values):
        self.__dict__["_name"] = name
        self.__dict__.update(values)

    def __setattr__(self, key, value):
        if key not in self.__dict__:
            raise AttributeError(f"triton.knobs.{self._name} has no knob '{key}'")
        name = f"{self._name}.{key}"
        if value != self.__dict__[key] and name not in _WITHOUT_EFFECT:
            nearest = _INSTEAD.get(name)
            raise NotImplementedError(f"triton.knobs.{name} has no effect under Kiln" +
                                      (f": {nearest}" if nearest else ""))
        self.__dict__[key] = value

    def copy(self):
        made = _Knobs(self._name)
        made.__dict__.update(self.__dict__)
        return made

    def scope(self):
        return _Scope(self)

    def __repr__(self):
        return f"triton.knobs.{self._name}"


class _Scope:
    """Puts back what was there."""

    def __init__(self, knobs):
        self._knobs = knobs

    def __enter__(self):
        self._saved = dict(self._knobs.__dict__)

    def __exit__(self, *exc):
        self._knobs.__dict__.update(self._saved)


build = _Knobs("build", cc=None, cudacrt_path=None, cudart_path=None)
redis = _Knobs("redis", key_format="triton:{key}:{filename}", host="localhost", port=6379)
cache = _Knobs("cache", home_dir=None, dump_dir=None, override_dir=None, dir=None, manager_class=None,
               remote_manager_class=None)
compilation = _Knobs("compilation", override=False, dump_ir=False, dump_ir_extract_di_local_variables=False,
                     store_binary_only=False, always_compile=False, use_ir_loc=None, enable_asan=False,
                     disable_line_info=False, front_end_debugging=False, allow_non_constexpr_globals=False,
                     instrumentation_mode="", listener=None)
autotuning = _Knobs("autotuning", cache=False, print=False, warmup=None, rep=None)
runtime = _Knobs("runtime", interpret=False, debug=False, sanitize_overflow=True, override_arch=None,
                 override_num_warps=None, launch_enter_hook=None, launch_exit_hook=None, kernel_load_start_hook=None,
                 kernel_load_end_hook=None, jit_cache_hook=None, jit_post_compile_hook=None, add_stages_inspection_hook=None)
language = _Knobs("language", fp32_default=None, default_fp_fusion=True)
nvidia = _Knobs("nvidia", cuobjdump=None, nvdisasm=None, ptxas=None, ptxas_blackwell=None, dump_nvptx=False,
                disable_ptxas_opt=False, mock_ptx_version=None, dump_ptxas_log=False, libdevice_path=None,
                libcuda_path=None)
amd = _Knobs("amd", use_buffer_ops=True, dump_amdgcn=False, libhip_path=None)
proton = _Knobs("proton", disable=False, cupti_lib_dir=None, enable_nvtx=True)
