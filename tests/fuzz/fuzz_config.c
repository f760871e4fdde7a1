/* Any bytes as a configuration file: a configuration that can be printed and read again,
 * or an error, nothing else. */
#include "core/config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct config *parse(struct slice text)
{
    const char *const environment[] = {NULL};
    struct err err = {0};
    struct config *config = config_parse("fuzz", text, environment, &err);

    if (!config && (err.class == ERR_NONE || err.text[0] == '\0'))
        abort();
    return config;
}

/* To be freed. */
static char *print(const struct config *config)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        abort();
    config_print(config, out);
    (void)fclose(out);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config *config = parse((struct slice){(const char *)data, size});
    struct config *again;
    char *text;

    if (!config)
        return 0;
    text = print(config);
    again = parse(slice_of(text));
    if (!again || again->ntables != config->ntables || again->nkafka < config->nkafka)
        abort();
    free(text);
    config_free(again);
    config_free(config);
    return 0;
}
