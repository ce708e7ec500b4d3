/* Lists of statuses, compared with a set that is filled word by word. */

#include "request/pure/sl_status_list.h"

#include <set>

#include "fuzz.h"

namespace {

/* Adds the statuses that begin so; false if the word is neither a status nor a
 * class. */
bool add(const std::string &word, std::set<unsigned> *to)
{
    bool is_class = word.size() == 3 && word.substr(1) == "xx";
    std::string begin = is_class ? word.substr(0, 1) : word;
    bool any = false;

    for (unsigned status = 100; word.size() == 3 && status <= 599; status++) {
        if (std::to_string(status).substr(0, begin.size()) == begin) {
            to->insert(status);
            any = true;
        }
    }

    return any;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    std::string text = Input(data, size).rest();
    std::set<unsigned> expected;
    std::string word;
    bool is_list = true;

    for (char ch : text + ",") {
        if (ch == ',') {
            is_list = is_list && add(word, &expected);
            word.clear();
        } else {
            word += ch;
        }
    }

    sl::StatusList list;

    check(list.read(text) == is_list);

    for (unsigned status = 0; is_list && status < 1100; status++) {
        check(list.contains(status) == (expected.count(status) == 1));
    }

    return 0;
}
