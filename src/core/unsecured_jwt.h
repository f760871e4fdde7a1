/* unsecured_jwt.h - a token that says who the relay is and is not signed.
 *
 * For brokers in development (RFC 7519, section 6).  librdkafka can make such tokens
 * itself, but its version 2.0.2 crashes when it renews one. */
#ifndef WALRELAY_CORE_UNSECURED_JWT_H
#define WALRELAY_CORE_UNSECURED_JWT_H

#include "base/err.h"

#include <stdint.h>

struct unsecured_jwt {
    char token[1024];
    char principal[256];
    int64_t expires_ms; /* since 1970, as now_ms */
};

/* config is librdkafka's sasl.oauthbearer.config: `principal=NAME`, and as one likes
 * `principalClaimName=sub`, `lifeSeconds=3600`, divided by spaces.  -1 with ERR_CONFIG
 * for anything else in it. */
int unsecured_jwt(const char *config, int64_t now_ms, struct unsecured_jwt *ret,
                  struct err *err) __attribute__((warn_unused_result));

#endif
