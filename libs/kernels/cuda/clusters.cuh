// Launches of kernels whose blocks form clusters (compute capability 9.0).
#pragma once

#include <array>
#include <type_traits>

#include "kernels/cuda/cuda_common.cuh"
#include "kernels/cuda/shared_memory.cuh"

namespace hark::cuda {

// A launch of a kernel that may start before the previous one ends, as pdl_launch's, in clusters of
// `size` blocks with `bytes` of shared memory each.
template <class... Parameters>
class ClusterLaunch {
  public:
    ClusterLaunch(Context& ctx, void (*kernel)(Parameters...), int size, int threads, int bytes)
        : kernel_(kernel), size_(static_cast<unsigned>(size)) {
        attributes_[0].id = cudaLaunchAttributeClusterDimension;
        attributes_[0].val.clusterDim = {size_, 1, 1};
        attributes_[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes_[1].val.programmaticStreamSerializationAllowed = 1;
        config_.gridDim = size_;
        config_.blockDim = static_cast<unsigned>(threads);
        config_.dynamicSmemBytes = static_cast<size_t>(bytes);
        config_.stream = stream_of(ctx);
        config_.attrs = attributes_.data();
        config_.numAttrs = 1;
        overlaps_ = handles_of(ctx).overlaps;
        handles_of(ctx).ready_ids = nullptr;
        allow_shared(reinterpret_cast<const void*>(kernel), bytes);
    }
    ClusterLaunch(const ClusterLaunch&) = delete;

    // Number of clusters that run at the same time.
    int64_t most_clusters() const {
        int most = 0;
        CUDA_CHECK(cudaOccupancyMaxActiveClusters(&most, kernel_, &config_));
        return most;
    }
    void start(int64_t clusters, const std::type_identity_t<Parameters>&... parameters) {
        config_.gridDim = size_ * static_cast<unsigned>(clusters);
        config_.numAttrs = overlaps_ ? 2 : 1;
        CUDA_CHECK(cudaLaunchKernelEx(&config_, kernel_, parameters...));
    }

  private:
    void (*kernel_)(Parameters...);
    unsigned size_;
    bool overlaps_;
    std::array<cudaLaunchAttribute, 2> attributes_{};
    cudaLaunchConfig_t config_{};
};

}  // namespace hark::cuda
