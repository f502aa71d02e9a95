# Runs on a rented instance, from its standard input: a kernel on each GPU, by the driver alone, because
# a GPU that nvidia-smi shows may refuse all work (CUDA error 802). Prints "ok CUDA GPUS NAME", such as
# "ok 13.0 1 NVIDIA A10", or what failed, with exit status 1. It needs Ubuntu's Python and no package.
import ctypes
import sys

PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry fill(.param .u64 out) {
    .reg .b32 %r<5>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.s32 %rd2, %r4, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r4;
    ret;
}
"""
BLOCKS, THREADS = 64, 256


def check(status, call):
    if status:
        sys.exit(f"{call}: CUDA error {status}")


def run_kernel(cuda, index):
    device, context, module, kernel = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    memory, count = ctypes.c_uint64(), BLOCKS * THREADS
    values = (ctypes.c_uint32 * count)()
    check(cuda.cuDeviceGet(ctypes.byref(device), index), "cuDeviceGet")
    check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device), "cuCtxCreate")
    check(cuda.cuModuleLoadData(ctypes.byref(module), PTX), "cuModuleLoadData")
    check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"fill"), "cuModuleGetFunction")
    check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4 * count)), "cuMemAlloc")
    arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(memory), ctypes.c_void_p))
    check(cuda.cuLaunchKernel(kernel, BLOCKS, 1, 1, THREADS, 1, 1, 0, None, arguments, None), "cuLaunchKernel")
    check(cuda.cuMemcpyDtoH_v2(values, memory, ctypes.c_size_t(4 * count)), "cuMemcpyDtoH")
    if list(values) != list(range(count)):
        sys.exit(f"GPU {index}: the kernel wrote wrong values")
    name = ctypes.create_string_buffer(100)
    check(cuda.cuDeviceGetName(name, 100, device), "cuDeviceGetName")
    check(cuda.cuCtxDestroy_v2(context), "cuCtxDestroy")
    return name.value.decode()


try:
    driver = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    sys.exit(f"no driver: {error}")
check(driver.cuInit(0), "cuInit")
version, gpus, names = ctypes.c_int(), ctypes.c_int(), []
check(driver.cuDriverGetVersion(ctypes.byref(version)), "cuDriverGetVersion")
check(driver.cuDeviceGetCount(ctypes.byref(gpus)), "cuDeviceGetCount")
if gpus.value == 0:
    sys.exit("no GPU")
for gpu in range(gpus.value):
    names.append(run_kernel(driver, gpu))
print(f"ok {version.value // 1000}.{version.value % 1000 // 10} {gpus.value} {names[0]}")
