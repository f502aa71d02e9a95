#include "kernels/linear/onednn.h"

#include <dnnl.h>
#include <omp.h>

#include <dnnl.hpp>
#include <map>
#include <mutex>
#include <tuple>

#include "core/error.h"

namespace hark::onednn {
namespace {

using dnnl::memory;
using Type = memory::data_type;

// oneDNN uses as many threads as OpenMP gives.
class Threads {
  public:
    explicit Threads(int threads) : before_(omp_get_max_threads()) {
        if (threads != before_) omp_set_num_threads(threads);
        changed_ = threads != before_;
    }
    ~Threads() {
        if (changed_) omp_set_num_threads(before_);
    }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;

  private:
    int before_;
    bool changed_;
};

const dnnl::engine& engine() {
    static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
    return cpu;
}

struct Product {
    dnnl::matmul primitive;
    memory::desc a, b, c;
};

Product make_product(Type in, Type out, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldc) {
    const memory::desc a({m, k}, in, memory::dims{lda, 1});
    const memory::desc b({k, n}, in, memory::dims{1, k});
    const memory::desc c({m, n}, out, memory::dims{ldc, 1});
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc chosen(engine(), a, b, c);
#else
    const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(a, b, c), engine());
#endif
    return {dnnl::matmul(chosen), a, b, c};
}

// Making a primitive takes milliseconds, running one microseconds: primitives are kept. Their
// number is limited, since prompts have many lengths.
Product cached_product(Type in, Type out, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldc,
                       int threads) {
    using Key = std::tuple<int, int64_t, int64_t, int64_t, int64_t, int64_t, int>;
    constexpr size_t kMostKept = 1024;
    static std::map<Key, Product> cache;
    static std::mutex mutex;
    const Key key(static_cast<int>(in), m, n, k, lda, ldc, threads);
    const std::lock_guard lock(mutex);
    auto found = cache.find(key);
    if (found == cache.end()) {
        if (cache.size() >= kMostKept) cache.clear();
        found = cache.emplace(key, make_product(in, out, m, n, k, lda, ldc)).first;
    }
    return found->second;
}

void run(int threads, Type in, Type out, void* c, int64_t ldc, const void* a, int64_t lda,
         const void* b, int64_t m, int64_t n, int64_t k) {
    const Threads guard(threads);
    try {
        const Product product = cached_product(in, out, m, n, k, lda, ldc, threads);
        dnnl::stream stream(engine());
        product.primitive.execute(
            stream, {{DNNL_ARG_SRC, memory(product.a, engine(), const_cast<void*>(a))},
                     {DNNL_ARG_WEIGHTS, memory(product.b, engine(), const_cast<void*>(b))},
                     {DNNL_ARG_DST, memory(product.c, engine(), c)}});
        stream.wait();
    } catch (const dnnl::error& error) {
        fail("oneDNN: product ", m, " x ", n, " x ", k, " failed: ", error.what());
    }
}

}  // namespace

void multiply(int threads, float* c, int64_t ldc, const Factor& a, const Factor& b, int64_t m,
              int64_t n, int64_t k, bool accumulate) {
    const Threads guard(threads);
    const dnnl_status_t status =
        dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0f, a.values,
                   a.stride, b.values, b.stride, accumulate ? 1.0f : 0.0f, c, ldc);
    require(status == dnnl_success, "oneDNN: product ", m, " x ", n, " x ", k,
            " failed with status ", static_cast<int>(status));
}

void multiply(int threads, float* c, int64_t ldc, const bf16_t* a, int64_t lda, const bf16_t* b,
              int64_t m, int64_t n, int64_t k) {
    run(threads, Type::bf16, Type::f32, c, ldc, a, lda, b, m, n, k);
}

void multiply(int threads, int32_t* c, int64_t ldc, const int8_t* a, int64_t lda, const int8_t* b,
              int64_t m, int64_t n, int64_t k) {
    run(threads, Type::s8, Type::s32, c, ldc, a, lda, b, m, n, k);
}

}  // namespace hark::onednn
