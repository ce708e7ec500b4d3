#include "store/pure/sl_memory_cells.h"

#include <algorithm>
#include <iterator>
#include <new>

namespace sl {

namespace {

/* A slot for every second cell: most keys have a block of their own. */
uint32_t slots_for(uint64_t cells)
{
    uint32_t slots = 64;

    while (uint64_t{slots} * 4 <= cells) {
        slots *= 2;
    }

    return slots;
}

}  // namespace

void Cells::format(void *memory, size_t size,
                   const uint8_t (&secret)[kSipHashKeySize]) noexcept
{
    memset(memory, 0, size);

    auto *header = new (memory) TableHeader();
    Cells cells(memory, size);

    std::copy(std::begin(secret), std::end(secret), header->secret);
    cells.lay_out();

    for (CellNumber n = header->end_cell; n-- > header->first_cell;) {
        cells.give(n);
    }
}

void Cells::lay_out() const noexcept
{
    constexpr uint64_t kMostCells = uint64_t{1} << kCellNumberBits;

    uint64_t count = std::min<uint64_t>(size_ / kCellSize, kMostCells);
    uint32_t slots = slots_for(count);

    header().hash_mask = slots - 1;
    header().first_cell = static_cast<CellNumber>(
        kHeaderCells + slots * sizeof(CellNumber) / kCellSize);
    header().end_cell = static_cast<CellNumber>(count);
}

void Cells::clear_slots() const noexcept
{
    memset(slots(), 0, (size_t{header().hash_mask} + 1) * sizeof(CellNumber));
}

}  // namespace sl
