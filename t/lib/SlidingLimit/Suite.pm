# To be used before Test::Nginx::Socket. Tells it where the module is, and gives
# configurations:
#
#   $TEST_NGINX_REDIS_PORT   a Redis, shared with suites that run meanwhile
#   $TEST_NGINX_RUN          a word that no other run uses, for keys
#   $TEST_NGINX_DEAD_PORT    a port nobody listens on
#
# Test::Nginx runs each block in an nginx of its own with master_process off.

package SlidingLimit::Suite;

use strict;
use warnings;

use File::Temp ();
use SlidingLimit::Servers ();
use Time::HiRes ();

our $servroot;

BEGIN {
    $ENV{TEST_NGINX_REDIS_PORT} ||= 6379;
    $ENV{TEST_NGINX_RUN} = sprintf 'run%x-%x', $$, Time::HiRes::time() * 1e6;
    # a port and a directory of its own for each suite: they run side by side
    $servroot = File::Temp->newdir();
    chmod 0755, $servroot;
    $ENV{TEST_NGINX_SERVROOT} = "$servroot/servroot";
    $ENV{TEST_NGINX_PORT} = SlidingLimit::Servers::free_port();
    $ENV{TEST_NGINX_DEAD_PORT} = SlidingLimit::Servers::free_port();
    # blocks stand in an order that a reader can follow
    $ENV{TEST_NGINX_NO_SHUFFLE} = 1;
    $ENV{TEST_NGINX_LOAD_MODULES} //= SlidingLimit::Servers::module();
}

1;
