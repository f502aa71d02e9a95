#include "formats/packed/scale_grid.h"

namespace hark {

ScaleGrid read_scales(const ModuleParts& parts, const std::string& part, int64_t rows,
                      int64_t columns, const Cell& cell) {
    ScaleGrid grid;
    grid.cell_rows = cell.rows > 0 ? cell.rows : rows;
    grid.cell_columns = cell.columns > 0 ? cell.columns : columns;
    const int64_t height = (rows - 1) / grid.cell_rows + 1;
    grid.width = (columns - 1) / grid.cell_columns + 1;
    FloatPart scales = parts.floats(part);
    std::vector<int64_t> shape = scales.shape;
    if (shape.empty()) shape = {1};
    if (shape.size() == 1) shape.push_back(1);
    parts.check(shape == std::vector{height, grid.width}, part, "expected ", height, " x ",
                grid.width, " scales, each of ", grid.cell_rows, " rows and ", grid.cell_columns,
                " columns, found ", scales.values.size(), " in ", scales.shape.size(),
                " dimensions");
    grid.scales = std::move(scales.values);
    grid.dtype = scales.dtype;
    return grid;
}

void set_numbers(PackedMatrix& matrix, int bits, const std::shared_ptr<const ScaleGrid>& grid) {
    matrix.bits = bits;
    matrix.neighbours = grid->cell_columns;
    matrix.scale = [grid](int64_t row, int64_t column) { return grid->scale_at(row, column); };
}

void read_cell_of_column(const ModuleParts& parts, const std::string& part, int64_t columns,
                         ScaleGrid& grid) {
    const std::byte* data = parts.take(part, "I32", {columns});
    grid.cell_of_column.resize(static_cast<size_t>(columns));
    for (int64_t c = 0; c < columns; ++c) {
        const auto group = load_value<int32_t>(data, c);
        parts.check(group >= 0 && group < grid.width, part, "expected groups below ", grid.width,
                    ", found ", group);
        grid.cell_of_column[static_cast<size_t>(c)] = group;
    }
}

}  // namespace hark
