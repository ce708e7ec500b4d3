/*
 * What comes over connections from Redis, byte by byte as the input has it, in
 * pieces of any size, while requests wait for their answers.
 *
 * The input begins with the configuration, with how many ask and what, and with
 * the size of the pieces. Then follows what the servers say. After a byte 0xff
 * comes a stage direction, or another 0xff if a server says that.
 */

#include "fuzz.h"
#include "redis/scene.h"

using namespace fuzz;

namespace {

std::string take_speech(Input *input, unsigned *direction)
{
    constexpr char kMark = '\xff';

    std::string speech = input->text_before(kMark);

    while ((*direction = input->number<uint8_t>()) == 0xff) {
        speech += kMark + input->text_before(kMark);
    }

    return speech;
}

/* Says it all; the rest is lost if the module does not want to hear it. */
void deliver(Scene &scene, unsigned which, const std::string &bytes,
             size_t most_bytes)
{
    Server *server = scene.server(which);

    if (server == nullptr) {
        return;
    }

    server->say(bytes);

    size_t turns = most_bytes == 0 ? 1 : bytes.size() / most_bytes + 1;

    for (; turns > 0; turns--) {
        scene.turn(most_bytes);
    }
}

void direct(Scene &scene, unsigned direction)
{
    static constexpr ngx_msec_t kTimes[] = {0, 1, 10, 75, 100, 200, 1000, 5000};

    Server *server = scene.server(direction & 3);

    if (server != nullptr && (direction & 4)) {
        server->hang_up();
    }

    if (direction & 8) {
        scene.ask(direction >> 4);
    }

    /* something for an operator, too, though seldom */
    if ((direction & 0x1f) == 0x12) {
        scene.intervene(direction >> 5);
    } else if ((direction & 0x1f) == 0x13) {
        scene.list_rulings("");
    }

    pass(kTimes[direction >> 5]);
    scene.turn(0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input input(data, size);
    Scene scene(input.number<uint8_t>());
    auto shape = input.number<uint8_t>();
    size_t most_bytes = input.number<uint8_t>();
    unsigned direction = 0;

    for (unsigned n = 0; n < (shape & 3); n++) {
        scene.ask(shape >> 2);
    }

    /* connections open */
    scene.turn(0);

    while (!input.is_empty()) {
        unsigned speaker = direction & 3;
        std::string speech = take_speech(&input, &direction);

        deliver(scene, speaker, speech, most_bytes);
        direct(scene, direction);
    }

    return 0;
}
