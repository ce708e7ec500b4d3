/*
 * A table with whatever a killed process may have left in it: any bytes at any
 * place, with the mark that a change was under way. Whoever comes next stays
 * inside of the memory, comes to an end, and finds or makes a table that is as
 * it should be and counts.
 */

#include "fuzz.h"
#include "table_guarded.h"
#include "table_operations.h"
#include "table_walk.h"

namespace {

/* Writes over some of the table what the input says. */
class Scribbler {
  public:
    Scribbler(GuardedTable *table, Input *input)
        : table_(*table), input_(*input)
    {}

    void scribble()
    {
        switch (input_.number<uint8_t>() % 6) {
        case 0:
            write_bytes();
            break;
        case 1:
            fill();
            break;
        case 2:
            copy_cell();
            break;
        case 3:
            write_number<uint64_t>(any_word());
            break;
        default:
            write_number<uint32_t>(any_cell());
        }

        table_.get().leave_half_done();
    }

  private:
    static constexpr size_t kSize = GuardedTable::kSize;
    static constexpr size_t kCells = kSize / sl::kCellSize;

    GuardedTable &table_;
    Input &input_;

    /* With one beyond the last. */
    uint32_t any_cell() { return input_.number<uint16_t>() % (kCells + 1); }

    uint64_t any_word() { return input_.number<uint64_t>(); }

    void write_bytes()
    {
        size_t place = input_.number<uint16_t>() % kSize;
        size_t count = 1 + input_.number<uint8_t>();

        for (; count > 0 && place < kSize; count--, place++) {
            table_.bytes()[place] = input_.number<uint8_t>();
        }
    }

    /* All from one place on, with the same cell. */
    void fill()
    {
        size_t from = input_.number<uint16_t>() % kCells;
        uint8_t cell[sl::kCellSize];

        for (uint8_t &byte : cell) {
            byte = input_.number<uint8_t>();
        }

        for (; from < kCells; from++) {
            memcpy(table_.bytes() + from * sl::kCellSize, cell, sizeof(cell));
        }
    }

    void copy_cell()
    {
        size_t from = any_cell() % kCells;
        size_t to = any_cell() % kCells;

        memmove(table_.bytes() + to * sl::kCellSize,
                table_.bytes() + from * sl::kCellSize, sl::kCellSize);
    }

    /* Where there are numbers: in the header or in a cell. */
    template <typename Number>
    void write_number(Number number)
    {
        size_t place = input_.number<uint16_t>() % (kSize / sizeof(number));

        memcpy(table_.bytes() + place * sizeof(number), &number,
               sizeof(number));
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    GuardedTable &table = GuardedTable::fresh();
    Input input(data, size);
    Operations operations(table.get(), &input);
    Scribbler scribbler(&table, &input);

    while (!input.is_empty()) {
        uint8_t kind = input.number<uint8_t>();
        bool is_killed = kind >= 192;

        for (; kind >= 192; kind -= 8) {
            scribbler.scribble();
        }

        /* whatever comes next puts it right */
        operations.do_one();

        if (is_killed) {
            operations.check_newcomer();
        }

        Walk(table.cells()).check_all();
        check(table.get().stats().free_cells <= table.get().stats().cells);
    }

    return 0;
}
