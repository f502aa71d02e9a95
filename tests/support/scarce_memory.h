// Memory that runs out at times.
#pragma once

#include <memory>
#include <vector>

#include "core/arena.h"
#include "core/error.h"

namespace hark::test {

// A device's memory as it is, until no more may be taken. One at a time.
struct ScarceMemory {
    static inline MemorySource source;
    static inline bool is_spent = false;
    static inline int64_t slab_bytes = 0;       // committed, of all slabs
    static inline int64_t most_slab_bytes = 0;  // of them; more is OutOfMemory

    // Of the host: reserved memory has slabs of 4 KiB.
    static MemorySource of(const MemorySource& device) {
        source = device;
        is_spent = false;
        slab_bytes = 0;
        most_slab_bytes = int64_t{1} << 40;
        MemorySource scarce = device;
        scarce.allocate_on = [](int, size_t bytes) {
            if (is_spent) throw OutOfMemory(concat("needed ", bytes, " bytes"));
            return source.allocate(bytes);
        };
        if (device.device == Device::cpu) scarce.reserve = reserve;
        return scarce;
    }

  private:
    class Slabs : public ReservedMemory {
      public:
        explicit Slabs(size_t bytes) : bytes_(bytes + 4096) {
            data_ = bytes_.data();
            slab_ = 4096;
        }
        ~Slabs() override { slab_bytes -= own_; }
        void commit(size_t begin, size_t end) override {
            const auto more = static_cast<int64_t>(end - begin);
            if (slab_bytes + more > most_slab_bytes)
                throw OutOfMemory(concat("needed a slab of ", more, " bytes"));
            slab_bytes += more;
            own_ += more;
        }
        void decommit(size_t begin, size_t end) override {
            slab_bytes -= static_cast<int64_t>(end - begin);
            own_ -= static_cast<int64_t>(end - begin);
        }

      private:
        std::vector<std::byte> bytes_;
        int64_t own_ = 0;
    };
    static std::unique_ptr<ReservedMemory> reserve(size_t bytes) {
        return std::make_unique<Slabs>(bytes);
    }
};

}  // namespace hark::test
