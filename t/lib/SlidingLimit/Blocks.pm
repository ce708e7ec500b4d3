# To be used after Test::Nginx::Socket: every block that names no Redis counts
# in the shared one, and waits for it as long as a busy machine may need. Its
# refusals are logged below the level of errors, so that it can have none.

package SlidingLimit::Blocks;

use strict;
use warnings;

use Test::Nginx::Util ();

Test::Nginx::Util::timeout(20);

Test::Nginx::Util::add_block_preprocessor(sub {
    my ($block) = @_;
    my $config = $block->http_config // '';

    return if $config =~ /sliding_limit_redis/;

    $block->set_value(http_config => <<"END");
    sliding_limit_redis redis://127.0.0.1:\$TEST_NGINX_REDIS_PORT
                        timeout=10s connect_timeout=10s;
    sliding_limit_log_level warn;
$config
END
});

1;
