/* A table in ordinary use: after each operation all of it is as it should be.
 */

#include "fuzz.h"
#include "table_guarded.h"
#include "table_operations.h"
#include "table_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    GuardedTable &table = GuardedTable::fresh();
    Input input(data, size);
    Operations operations(table.get(), &input);

    while (!input.is_empty()) {
        operations.do_one();
        Walk(table.cells()).check_all();
    }

    operations.check_newcomer();

    return 0;
}
