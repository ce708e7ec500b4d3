/*
 * Stories of a worker and its Redis, told by the input: who asks, what
 * operators want, what servers answer and in what pieces, who goes away, and
 * how much time passes.
 */

#include "fuzz.h"
#include "redis/scene.h"

using namespace fuzz;

namespace {

class Story {
  public:
    Story(const uint8_t *data, size_t size)
        : input_(data, size), scene_(byte()), most_bytes_(0)
    {}

    void tell()
    {
        while (!input_.is_empty()) {
            go_on();
        }
    }

  private:
    unsigned byte() { return input_.number<uint8_t>(); }

    std::string text() { return input_.text(byte()); }

    void go_on();
    void go_on_with(Server &server, unsigned what);
    void go_on_with_operators(unsigned what);

    Input input_;
    Scene scene_;

    /* What servers say goes out in pieces of so many bytes; 0: at once. */
    size_t most_bytes_;
};

void Story::go_on()
{
    static constexpr ngx_msec_t kTimes[] = {1,    9,    10,    24,    50,  75,
                                            99,   100,  150,   200,   500, 1000,
                                            1500, 5000, 10000, 700000};

    unsigned what = byte();

    switch (what & 15) {
    case 0:
        if (what == 0) {
            scene_.turn(most_bytes_);
        } else {
            pass(kTimes[what >> 4]);
            scene_.turn(most_bytes_, Pace::kHeldUp);
        }
        break;
    case 1:
        if (what & 0x80) {
            go_on_with_operators(what >> 4 & 7);
        } else {
            scene_.settle();
        }
        break;
    case 2:
        scene_.ask(byte());
        break;
    case 3:
        /* many at once */
        for (unsigned shape = byte(), n = 0; n <= what >> 4; n++) {
            scene_.ask(shape);
        }
        break;
    case 4:
        pass(kTimes[what >> 4]);
        scene_.turn(most_bytes_);
        break;
    case 5:
        if (Question *question = scene_.question(byte())) {
            question->abandon(what & 16);
        }
        break;
    case 6:
        if (Question *question = scene_.question(byte())) {
            question->settle(scene_.store(), what & 16 ? 5 : 0);
        }
        break;
    case 7:
        most_bytes_ = what >> 4;
        break;
    case 8:
        set_welcome(static_cast<Welcome>((what >> 4) % 5));
        break;
    case 9:
        end_connections();
        break;
    default:
        if (Server *server = scene_.server(what >> 4)) {
            go_on_with(*server, what & 15);
        }
    }
}

void Story::go_on_with(Server &server, unsigned what)
{
    switch (what) {
    case 10:
        server.reply_well(byte());
        break;
    case 11:
        server.reply_with_error(byte());
        break;
    case 12:
        server.reply_with_text(text());
        break;
    case 13:
        server.reply_with_error_text(text());
        break;
    case 14:
        server.say(text());
        break;
    default:
        what = byte();

        if (what & 1) {
            server.turn_away();
        } else if (what & 2) {
            server.hang_up();
        } else {
            /* more than the module is willing to read */
            server.say(std::string(what * 256, 'a'));
        }
    }
}

void Story::go_on_with_operators(unsigned what)
{
    switch (what) {
    case 0:
        scene_.intervene(byte());
        break;
    case 1:
        scene_.list_rulings("");
        break;
    case 2:
        scene_.list_rulings(text());
        break;
    case 3:
        /* from where an answer has ended */
        if (Operator *before = scene_.an_operator(byte())) {
            scene_.list_rulings(before->cursor());
        }
        break;
    default:
        if (Operator *gone = scene_.an_operator(byte())) {
            gone->abandon();
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Story(data, size).tell();

    return 0;
}
