/* Any bytes as a configuration file: a configuration or an error, nothing else. */
#include "core/config.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *const environment[] = {NULL};
    struct err err = {0};
    struct config *config =
        config_parse("fuzz", (struct slice){(const char *)data, size}, environment, &err);

    if (!config && (err.class == ERR_NONE || err.text[0] == '\0'))
        abort();
    config_free(config);
    return 0;
}
