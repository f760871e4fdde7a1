#include "core/config_origins.h"

#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

struct config_value *origins_find(const struct config_origins *origins,
                                  const struct setting *setting, size_t table,
                                  const char *key)
{
    for (size_t i = 0; i < origins->n; i++) {
        struct config_value *value = &origins->values[i];

        if (value->setting == setting && value->table == table &&
            strcmp(value->key, key) == 0)
            return value;
    }
    return NULL;
}

static void value_done(struct config_value *value)
{
    free(value->key);
    free(value->text);
    free(value->origin);
}

int origins_set(struct config_origins *origins, struct config_value value,
                struct err *err)
{
    struct config_value *place =
        origins_find(origins, value.setting, value.table, value.key);
    struct config_value *values = origins->values;

    value.key = strdup(value.key);
    value.text = strdup(value.text);
    value.origin = strdup(value.origin);
    if (!place)
        values = grow(values, origins->n, sizeof(*values));
    if (!values || !value.key || !value.text || !value.origin) {
        if (values)
            origins->values = values;
        value_done(&value);
        return err_set(err, ERR_INTERNAL, "out of memory");
    }
    origins->values = values;
    if (place)
        value_done(place);
    else
        place = &values[origins->n++];
    *place = value;
    return 0;
}

void origins_free(struct config_origins *origins)
{
    if (!origins)
        return;
    for (size_t i = 0; i < origins->n; i++)
        value_done(&origins->values[i]);
    free(origins->values);
    free(origins);
}
