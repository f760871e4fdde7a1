#include "core/strangers.h"

#include <stdlib.h>

static void forget(struct stranger *stranger)
{
    free(stranger->schema);
    free(stranger->name);
    *stranger = (struct stranger){0};
}

/* An empty place has neither name, and equals no table. */
static bool is(const struct stranger *stranger, struct slice schema, struct slice name)
{
    return slice_eq(slice_of(stranger->name), name) &&
           slice_eq(slice_of(stranger->schema), schema);
}

static struct stranger *find_or_take(struct strangers *strangers, struct slice schema,
                                     struct slice name)
{
    struct stranger *taken;

    for (size_t i = 0; i < STRANGERS_MAX; i++) {
        if (is(&strangers->all[i], schema, name))
            return &strangers->all[i];
    }
    taken = &strangers->all[strangers->next];
    strangers->next = (strangers->next + 1) % STRANGERS_MAX;
    forget(taken);
    taken->schema = strndup(schema.ptr, schema.len);
    taken->name = strndup(name.ptr, name.len);
    return taken;
}

int strangers_add(struct strangers *strangers, struct slice schema, struct slice name,
                  int64_t before_us)
{
    struct stranger *stranger = find_or_take(strangers, schema, name);

    if (!stranger->schema || !stranger->name) {
        forget(stranger);
        return -1;
    }
    stranger->before_us = before_us;
    return 0;
}

bool strangers_have(const struct strangers *strangers, struct slice schema,
                    struct slice name, int64_t commit_us)
{
    for (size_t i = 0; i < STRANGERS_MAX; i++) {
        if (is(&strangers->all[i], schema, name))
            return commit_us < strangers->all[i].before_us;
    }
    return false;
}

void strangers_done(struct strangers *strangers)
{
    for (size_t i = 0; i < STRANGERS_MAX; i++)
        forget(&strangers->all[i]);
}
