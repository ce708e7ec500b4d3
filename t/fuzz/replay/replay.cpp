/*
 * replay FILE...: gives the files to a fuzz target, without the fuzzer. The
 * name of each is printed before: where it fails, the last one is to blame.
 */

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>

#include "fuzz.h"

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        std::ifstream file(argv[i], std::ios::binary);
        std::string bytes(std::istreambuf_iterator<char>(file), {});

        if (!file) {
            fprintf(stderr, "%s: cannot be read\n", argv[i]);
            return 1;
        }

        puts(argv[i]);
        fflush(stdout);

        /* not a byte more than there are: to read past them is noticed */
        auto exact = std::make_unique<uint8_t[]>(bytes.size());
        std::copy(bytes.begin(), bytes.end(), exact.get());

        LLVMFuzzerTestOneInput(exact.get(), bytes.size());
    }

    return 0;
}
