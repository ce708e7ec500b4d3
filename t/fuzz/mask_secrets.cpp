/* Passwords in what servers say: no message shows one. */

#include <algorithm>

#include "base/pure/sl_escape.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input input(data, size);
    size_t room = input.number<uint16_t>() % 1024;
    std::string first = input.text_before('\n');
    std::string second = input.text_before('\n');
    std::string text = input.rest();

    std::string masked(room, '\0');

    masked.resize(sl::mask_secrets(text, {first, second}, masked.data(), room));
    check(masked.size() <= room);

    /* with a '*' in it, a secret can come about by masking */
    for (const std::string &secret : {first, second}) {
        check(secret.empty() || secret.find('*') != std::string::npos
              || masked.find(secret) == std::string::npos);
    }

    /* where none is, nothing is changed */
    if ((first.empty() || text.find(first) == std::string::npos)
        && (second.empty() || text.find(second) == std::string::npos))
    {
        check(masked == text.substr(0, room));
    }

    /* less room shows the beginning of the same */
    std::string all(3 * text.size(), '\0');

    all.resize(sl::mask_secrets(text, {second, first}, all.data(), all.size()));
    check(masked == all.substr(0, room));

    return 0;
}
