/*
 * Sockets that lead nowhere but to the target: whatever is connected to, the
 * other end is in its hands. They are pairs of real ones, so that what the
 * kernel says about them is true.
 */

#pragma once

#include <memory>
#include <string>
#include <vector>

namespace fuzz {

/* What becomes of connections that are opened from now on. */
enum class Welcome {
    kOpen,
    kRefused,      /* at once */
    kRefusedLater, /* when it is asked what has become of it */
    kSilence,      /* nothing, ever */
    kNoSocket,     /* this process has too many */
};

/* The other end of a connection. */
class Wire {
  public:
    Wire(int here, int there, Welcome welcome)
        : here_(here), there_(there), welcome_(welcome), is_connecting_(false)
    {}
    ~Wire() { close(); }

    Wire(const Wire &) = delete;
    Wire &operator=(const Wire &) = delete;

    /* What connect() says on the module's end: always an error, as errno has
     * it. Newer versions of hiredis ask again. */
    int connect();

    /* What the module has sent since; false: it has closed the connection. */
    bool receive(std::string *to);

    /* Returns how many bytes had room. */
    size_t send(const std::string &bytes);

    void close();

    bool is_open() const { return here_ >= 0; }

    /* The module's end. */
    int there() const { return there_; }
    Welcome welcome() const { return welcome_; }

  private:
    int here_;
    int there_;
    Welcome welcome_;
    bool is_connecting_;
};

/* All that were opened since, the oldest first. */
std::vector<std::shared_ptr<Wire>> &wires();

void set_welcome(Welcome welcome);

/* The kernel takes only little at a time on connections opened from now on. */
void set_narrow(bool is_narrow);

/* Something can be heard on the module's end. */
bool has_arrived(int there);

}  // namespace fuzz
