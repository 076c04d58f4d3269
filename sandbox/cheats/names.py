"""Which check a newly used module, function or attribute falls under: data only."""

from __future__ import annotations

from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


HONEST_MODULES = _words(
    "torch triton math typing functools itertools dataclasses enum collections numpy __future__ packaging abc operator "
    "typing_extensions contextlib warnings logging copy string numbers statistics tl_math libdevice"
)
"""Top-level modules an honest kernel edit may start to import; what is used of them is judged name by name."""

MODULE_CHECKS: Mapping[str, str] = {
    **dict.fromkeys(
        _words(
            "gc inspect traceback linecache weakref builtins tracemalloc frame dis symtable ast tokenize site sysconfig"
        ),
        "introspection",
    ),
    "sys": "introspection",
    **dict.fromkeys(
        _words(
            "os subprocess socket shutil pathlib tempfile io mmap fcntl resource pty select selectors urllib requests "
            "http httpx psutil glob ctypes cffi _ctypes safetensors h5py sqlite3 shelve dbm posix nt errno stat "
            "posixpath genericpath fileinput zipfile tarfile importlib_resources pkgutil syslog termios tty ssl ftplib "
            "smtplib telnetlib webbrowser cProfile profile pstats"
        ),
        "system-access",
    ),
    **dict.fromkeys(
        _words(
            "importlib imp runpy code codeop marshal pickle cloudpickle dill base64 zlib bz2 lzma binascii codecs "
            "types numba cupy pyximport cython jax tensorflow pycuda cuda hip tinygrad uuid secrets hashlib gzip quopri"
        ),
        "dynamic-code",
    ),
    **dict.fromkeys(_words("pip ensurepip pkg_resources setuptools conda venv distutils"), "runtime-install"),
    **dict.fromkeys(_words("time timeit datetime calendar sched"), "timing"),
    **dict.fromkeys(
        _words("threading _thread concurrent asyncio queue multiprocessing joblib greenlet gevent contextvars"),
        "concurrency",
    ),
    **dict.fromkeys(_words("atexit signal faulthandler"), "exit-hook"),
    **dict.fromkeys(_words("random"), "rng"),
    **dict.fromkeys(_words("unittest mock pytest"), "monkeypatch"),
    **dict.fromkeys(_words("platform getpass argparse optparse configparser"), "environment-branch"),
    **dict.fromkeys(
        _words(
            "xformers flash_attn apex deepspeed vllm sglang liger_kernel aiter einops scipy sklearn transformers "
            "torchvision torchaudio flaggems flag_gems cutlass unsloth fla bitsandbytes opt_einsum tritonbench"
        ),
        "library-call",
    ),
}
"""Modules outside these two sets fall under `foreign-import`."""

NAME_CHECKS: Mapping[str, str] = {
    "os.environ": "environment-branch",
    "os.getenv": "environment-branch",
    "os.getpid": "environment-branch",
    "os._exit": "exit-hook",
    "sys.argv": "environment-branch",
    "sys.exit": "exit-hook",
    "sys.excepthook": "exit-hook",
    "sys.settrace": "introspection",
    "collections.abc": "",
    "functools.lru_cache": "hidden-state",
    "functools.cache": "hidden-state",
    "functools.cached_property": "hidden-state",
    "functools.singledispatch": "hidden-state",
    "itertools.count": "hidden-state",
    "itertools.cycle": "hidden-state",
    "operator.attrgetter": "dynamic-code",
    "operator.methodcaller": "dynamic-code",
    "operator.itemgetter": "",
    "operator": "library-call",
    "contextlib.suppress": "exception-fallback",
    "copy": "library-call",
    "warnings": "",
    "logging": "",
    "numpy.random": "rng",
    "numpy.load": "system-access",
    "numpy.save": "system-access",
    "numpy.savez": "system-access",
    "numpy.memmap": "system-access",
    "numpy.fromfile": "system-access",
    "numpy.testing": "harness-edit",
    "numpy.ctypeslib": "system-access",
    "torch.manual_seed": "rng",
    "torch.seed": "rng",
    "torch.random": "rng",
    "torch.Generator": "rng",
    "torch.set_rng_state": "rng",
    "torch.get_rng_state": "rng",
    "torch.initial_seed": "rng",
    "torch.rand": "rng",
    "torch.rand_like": "rng",
    "torch.randn": "rng",
    "torch.randn_like": "rng",
    "torch.randint": "rng",
    "torch.randint_like": "rng",
    "torch.randperm": "rng",
    "torch.normal": "rng",
    "torch.bernoulli": "rng",
    "torch.multinomial": "rng",
    "torch.cuda.manual_seed": "rng",
    "torch.cuda.manual_seed_all": "rng",
    "torch.cuda.set_rng_state": "rng",
    "torch.cuda.get_rng_state": "rng",
    "torch.cuda.Event": "timing",
    "torch.Event": "timing",
    "torch.cuda.synchronize": "timing",
    "torch.cuda._sleep": "timing",
    "torch.cuda.nvtx": "timing",
    "torch.utils.benchmark": "timing",
    "torch.profiler": "timing",
    "torch.autograd.profiler": "timing",
    "triton.testing": "timing",
    "triton.profiler": "timing",
    "torch.cuda.Stream": "concurrency",
    "torch.cuda.stream": "concurrency",
    "torch.cuda.streams": "concurrency",
    "torch.cuda.current_stream": "concurrency",
    "torch.cuda.default_stream": "concurrency",
    "torch.cuda.set_stream": "concurrency",
    "torch.cuda.ExternalStream": "concurrency",
    "torch.cuda.StreamContext": "concurrency",
    "torch.Stream": "concurrency",
    "torch.accelerator": "concurrency",
    "torch.multiprocessing": "concurrency",
    "torch.distributed": "concurrency",
    "torch.futures": "concurrency",
    "torch.cuda.graph": "graph-capture",
    "torch.cuda.graphs": "graph-capture",
    "torch.cuda.CUDAGraph": "graph-capture",
    "torch.cuda.make_graphed_callables": "graph-capture",
    "torch.cuda.graph_pool_handle": "graph-capture",
    "torch.cuda.is_current_stream_capturing": "graph-capture",
    "torch.compile": "graph-capture",
    "torch.jit": "graph-capture",
    "torch.fx": "graph-capture",
    "torch.export": "graph-capture",
    "torch._dynamo": "graph-capture",
    "torch._inductor": "graph-capture",
    "torch.compiler": "graph-capture",
    "torch.overrides": "tensor-subclass",
    "torch.utils._python_dispatch": "tensor-subclass",
    "torch.library": "tensor-subclass",
    "torch.Tensor._make_subclass": "tensor-subclass",
    "torch.Tensor._make_wrapper_subclass": "tensor-subclass",
    "torch.Tensor.as_subclass": "tensor-subclass",
    "torch._subclasses": "tensor-subclass",
    "torch.utils.cpp_extension": "dynamic-code",
    "torch.cuda._compile_kernel": "dynamic-code",
    "torch.ops.load_library": "dynamic-code",
    "torch.classes": "dynamic-code",
    "torch.hub": "system-access",
    "torch.load": "system-access",
    "torch.save": "system-access",
    "torch.from_file": "system-access",
    "torch.serialization": "system-access",
    "torch.utils.data": "system-access",
    "torch.UntypedStorage": "system-access",
    "torch.from_dlpack": "system-access",
    "torch.utils.dlpack": "system-access",
    "torch.cuda.memory": "stale-memory",
    "torch.cuda.empty_cache": "stale-memory",
    "torch.cuda.memory_snapshot": "stale-memory",
    "torch.cuda.caching_allocator_alloc": "stale-memory",
    "torch.cuda.caching_allocator_delete": "stale-memory",
    "torch.cuda.MemPool": "stale-memory",
    "torch.cuda.is_available": "environment-branch",
    "torch.cuda.device_count": "environment-branch",
    "torch.cuda.is_initialized": "environment-branch",
    "torch.utils.hooks": "monkeypatch",
    "triton.knobs": "environment-branch",
    "triton.runtime.interpreter": "environment-branch",
    "triton.runtime.cache": "environment-branch",
    "triton.runtime.JITFunction": "environment-branch",
    "triton.runtime.jit.JITFunction": "environment-branch",
    "triton.compiler": "dynamic-code",
    "triton._C": "dynamic-code",
    "triton.backends": "environment-branch",
    "torch.autocast": "lower-precision",
    "torch.amp": "lower-precision",
    "torch.cuda.amp": "lower-precision",
    "torch.set_float32_matmul_precision": "lower-precision",
    "torch.set_default_dtype": "lower-precision",
    "torch.equal": "input-probe",
    "torch.allclose": "input-probe",
    "torch.any": "input-probe",
    "torch.all": "input-probe",
    "torch.is_nonzero": "input-probe",
    "torch.count_nonzero": "input-probe",
    "torch.testing": "harness-edit",
}
"""Qualified name, or a prefix of it up to a dot, to its check; the longest match wins. An empty check is allowed."""

TARGET_QUERIES = (
    "torch.version.hip",
    "torch.version.cuda",
    "torch.cuda.get_device_capability",
    "torch.cuda.get_device_name",
    "torch.cuda.get_device_properties",
    "torch.cuda.current_device",
    "triton.runtime.driver",
)
"""What a portable kernel may ask to choose between two vendors' paths. Noted, because only one path was run."""

HONEST_TORCH = _words(
    "Tensor device dtype Size layout finfo iinfo empty empty_like empty_strided zeros zeros_like ones ones_like full "
    "full_like arange tensor as_strided is_tensor is_floating_point broadcast_shapes promote_types result_type numel "
    "float64 float32 float16 bfloat16 float double half float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
    "int8 int16 int32 int64 int long short uint8 uint16 uint32 uint64 bool complex64 complex128 contiguous_format "
    "channels_last preserve_format strided no_grad inference_mode enable_grad set_grad_enabled is_grad_enabled "
    "autograd.Function autograd.function nn.Module nn.Parameter nn.ParameterList nn.Buffer cuda.device inf pi nan "
    "float4_e2m1fn_x2 float8_e8m0fnu broadcast_tensors view_as_real view_as_complex cuda.device_of "
    "cuda.amp.custom_fwd cuda.amp.custom_bwd amp.custom_fwd amp.custom_bwd nn.init _assert"
)
"""What an honest host function may start to use of `torch`: types, allocation, views. Anything else computes."""

BUILTIN_CHECKS: Mapping[str, str] = {
    **dict.fromkeys(_words("exec eval compile __import__ getattr memoryview bytearray chr"), "dynamic-code"),
    **dict.fromkeys(_words("globals locals vars dir __builtins__ __loader__ __spec__"), "introspection"),
    **dict.fromkeys(_words("setattr delattr"), "monkeypatch"),
    **dict.fromkeys(_words("open input breakpoint"), "system-access"),
    **dict.fromkeys(_words("quit exit SystemExit KeyboardInterrupt GeneratorExit"), "exit-hook"),
    **dict.fromkeys(_words("id hash"), "identity-cache"),
    "next": "hidden-state",
    "__file__": "environment-branch",
    "__name__": "environment-branch",
    "__debug__": "environment-branch",
}

ATTRIBUTE_CHECKS: Mapping[str, str] = {
    **dict.fromkeys(
        _words(
            "f_back f_locals f_globals f_code tb_frame tb_next gi_frame cr_frame __globals__ __code__ __closure__ "
            "__subclasses__ __builtins__ __mro__ __bases__ __base__ __self__ __func__ __wrapped__ __getattribute__ "
            "__reduce__ __reduce_ex__ __defaults__ __kwdefaults__ __dict__ __class__ __module__ __qualname__ "
            "__loader__ __spec__ __path__ __annotations__ __weakref__ __annotate__"
        ),
        "introspection",
    ),
    **dict.fromkeys(_words("data_ptr untyped_storage storage _cdata _version const_data_ptr"), "identity-cache"),
    **dict.fromkeys(_words("_unsafe_update_src cache_hook jit_cache_hook compiled_hook pre_run_hooks"), "monkeypatch"),
    **dict.fromkeys(
        _words(
            "register_hook register_forward_hook register_forward_pre_hook register_full_backward_hook "
            "register_module_forward_hook register_post_accumulate_grad_hook saved_tensors_hooks"
        ),
        "monkeypatch",
    ),
    **dict.fromkeys(_words("is_cuda is_cpu is_meta is_xpu is_hip"), "environment-branch"),
    **dict.fromkeys(_words("elapsed_time synchronize record_event wait_event wait_stream record_stream"), "timing"),
    **dict.fromkeys(_words("manual_seed normal_ uniform_ random_ bernoulli_ exponential_ cauchy_ log_normal_"), "rng"),
    **dict.fromkeys(
        _words(
            "item tolist numpy cpu any all is_nonzero nonzero count_nonzero allclose equal isnan isinf unique "
            "__bool__ __float__ __int__ __index__"
        ),
        "input-probe",
    ),
    **dict.fromkeys(_words("as_subclass _make_subclass __torch_function__ __torch_dispatch__"), "tensor-subclass"),
    **dict.fromkeys(_words("share_memory_ set_ resize_ swap_tensors"), "stale-memory"),
}
"""An attribute of any object, by its last name. `.device.type` is handled beside these."""

COMPUTING_METHODS = _words(
    "matmul mm bmm mv dot addmm baddbmm addbmm addmv addr einsum tensordot outer inner kron softmax log_softmax "
    "sum mean prod max min amax amin aminmax argmax argmin std var norm logsumexp cumsum cumprod cummax cummin sort "
    "argsort topk kthvalue median mode exp exp2 expm1 log log2 log10 log1p sqrt rsqrt pow square abs neg sign sin cos "
    "tan tanh sigmoid relu gelu silu erf erfc erfinv lerp clamp clip clamp_min clamp_max round floor ceil trunc frac "
    "reciprocal add sub mul div true_divide floor_divide fmod remainder where masked_fill masked_select masked_scatter "
    "gather scatter scatter_add scatter_reduce index_select index_add index_copy index_fill index_put take "
    "take_along_dim put tril triu diag diagonal_scatter flip roll rot90 bincount histc repeat tile "
    "repeat_interleave cross cdist logical_and logical_or logical_not logical_xor eq ne lt le gt ge maximum minimum "
    "copy_ add_ sub_ mul_ div_ addcmul addcdiv addcmul_ addcdiv_ exp_ sqrt_ rsqrt_ tanh_ sigmoid_ relu_ clamp_ "
    "clamp_min_ clamp_max_ neg_ abs_ pow_ lerp_ masked_fill_ scatter_ scatter_add_ scatter_reduce_ index_add_ "
    "index_copy_ index_fill_ index_put_ tril_ triu_ sub_ round_ floor_ ceil_ normal_ detach_ "
    "layer_norm group_norm batch_norm conv1d conv2d conv3d linear embedding dropout nan_to_num __matmul__ __add__ "
    "msort unique_consecutive searchsorted bucketize argwhere "
    "__mul__ __sub__ __truediv__ __getitem__ apply_ map_ bitwise_and bitwise_or bitwise_xor backward"
)
"""Methods of tensors that compute or copy. On a scratch buffer that a kernel filled, `SCRATCH_METHODS` are honest."""

SCRATCH_METHODS = _words("sum mean max min amax amin prod logsumexp masked_fill add_ mul_ div_ copy_ sqrt rsqrt")

INDEXING = "indexing by a tensor"
"""What `x[indices]` and `x[indices] = y` count as when they run: they gather and scatter."""
