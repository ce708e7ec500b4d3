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

/* What rulings take of the memory, one part in so many; but some always fit. */
constexpr size_t kShareOfRulings = 32;
constexpr size_t kFewestRulings = 4;

/* The least that fills a cell. */
constexpr uint32_t kFewestRulingSlots = kCellSize / sizeof(uint32_t);

RulingsHeader rulings_for(size_t size)
{
    RulingsHeader rulings{};
    size_t capacity =
        std::clamp<size_t>(size / kShareOfRulings / sizeof(RulingEntry),
                           kFewestRulings, UINT32_MAX / 2);
    uint32_t slots = kFewestRulingSlots;

    while (slots < capacity) {
        slots *= 2;
    }

    rulings.capacity = static_cast<uint32_t>(capacity);
    rulings.index_mask = slots - 1;

    return rulings;
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
    lay_out_rulings(static_cast<CellNumber>(
        kHeaderCells + slots * sizeof(CellNumber) / kCellSize));
    header().end_cell = static_cast<CellNumber>(count);
}

void Cells::lay_out_rulings(CellNumber first) const noexcept
{
    RulingsHeader &rulings = header().rulings;
    RulingsHeader fitting = rulings_for(size_);

    rulings.first_cell = first;
    rulings.index_mask = fitting.index_mask;
    rulings.capacity = fitting.capacity;

    size_t size = index_size() + fitting.capacity * sizeof(RulingEntry);

    header().first_cell = first + static_cast<CellNumber>(size / kCellSize);
}

void Cells::clear_slots() const noexcept
{
    memset(slots(), 0, (size_t{header().hash_mask} + 1) * sizeof(CellNumber));
}

void Cells::clear_ruling_slots() const noexcept
{
    memset(at(header().rulings.first_cell), 0, index_size());
}

}  // namespace sl
