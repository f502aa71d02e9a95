#include "kernels/linear/small_m_mma_tiled.cuh"

namespace hark::cuda {

void tiled_product(Context& ctx, const SmallMArgs& args, Tensor x, Tensor w, Tile tile) {
    with_small_m_types(x.dtype, w.dtype, [&](auto x_value, auto w_value) {
        using X = decltype(x_value);
        using W = decltype(w_value);
        using T = Tilings<W>;
        const auto launch = [&]<class Of>(Of) {
            launch_tiled<Of>(ctx, args, RowTiles(), ceil_div(args.rows, Of::kRows),
                             static_cast<const X*>(x.data), static_cast<const W*>(w.data));
        };
        if (tile == Tile::k32x32) return launch(typename T::Small());
        if (tile == Tile::k64x64) return launch(typename T::Middle());
        launch(typename T::Large());
    });
}

}  // namespace hark::cuda
