// Without threads: a chunk is written before write() returns.
#include "formats/chunk_writer.h"

#include <utility>

namespace hark {

ChunkWriter::~ChunkWriter() = default;

void ChunkWriter::write(Chunk chunk) {
    write_chunk(out_, std::move(chunk));
    out_.flush();
}

void ChunkWriter::finish() {}

}  // namespace hark
