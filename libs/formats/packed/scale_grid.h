// Scales, and zero points, of a matrix's cells.
#pragma once

#include <algorithm>

#include "formats/packed/packed_matrix.h"

namespace hark {

// The rows and columns of a matrix that share a scale; 0: all of them. {0, 0} is the whole matrix,
// {1, 0} a row, {1, 128} a group of a row's columns, {128, 128} a block.
struct Cell {
    int64_t rows = 0, columns = 0;
};

struct ScaleGrid {
    std::vector<float> scales, zeros;     // per cell, row-major; zeros may be empty
    std::vector<int32_t> cell_of_column;  // if the cells' columns are not neighbours
    int64_t cell_rows = 1, cell_columns = 1;
    int64_t width = 1;         // cells next to each other
    Dtype dtype = Dtype::f32;  // of the scales

    float scale_at(int64_t row, int64_t column) const {
        return scales[static_cast<size_t>(row / cell_rows * width + column / cell_columns)];
    }
    int64_t cells() const { return static_cast<int64_t>(scales.size()); }
    int64_t height() const { return cells() / width; }
    // Writes (value(r, c) - zero) * scale for rows [first, first + count), (count, columns).
    template <class Value>
    void read(int64_t columns, int64_t first, int64_t count, const Value& value, float* to) const {
        for (int64_t r = first; r < first + count; ++r, to += columns) {
            const int64_t row = r / cell_rows * width;
            if (!cell_of_column.empty()) {
                for (int64_t c = 0; c < columns; ++c)
                    to[c] = scaled(row + cell_of_column[static_cast<size_t>(c)], value(r, c));
                continue;
            }
            for (int64_t c = 0; c < columns; c += cell_columns)
                for (int64_t i = c; i < std::min(columns, c + cell_columns); ++i)
                    to[i] = scaled(row + c / cell_columns, value(r, i));
        }
    }

  private:
    float scaled(int64_t cell, float value) const {
        const auto i = static_cast<size_t>(cell);
        return (zeros.empty() ? value : value - zeros[i]) * scales[i];
    }
};

// The scales in `part` of a matrix (rows, columns). Throws Error if they are not one per cell. The
// shape may leave out a last dimension of 1, and a first one.
ScaleGrid read_scales(const ModuleParts& parts, const std::string& part, int64_t rows,
                      int64_t columns, const Cell& cell);

// Says of the matrix that its values are whole numbers of `bits` bits, 4 or 8, times the scales of
// cells of neighbouring columns.
void set_numbers(PackedMatrix& matrix, int bits, const std::shared_ptr<const ScaleGrid>& grid);

// Reads `part`, I32 (columns), as the grid's cell_of_column.
void read_cell_of_column(const ModuleParts& parts, const std::string& part, int64_t columns,
                         ScaleGrid& grid);

}  // namespace hark
