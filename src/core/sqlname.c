#include "core/sqlname.h"

static bool plain(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    static const char more[] = "abcdefghijklmnopqrstuvwxyz_0123456789";

    return *name && strchr(letters, *name) && name[strspn(name, more)] == '\0';
}

static void add_identifier(struct buf *out, const char *name)
{
    if (plain(name)) {
        buf_add_str(out, name);
        return;
    }
    buf_add_char(out, '"');
    for (; *name; name++) {
        if (*name == '"')
            buf_add_char(out, '"');
        buf_add_char(out, *name);
    }
    buf_add_char(out, '"');
}

void sqlname_add(struct buf *out, const char *schema, const char *name)
{
    add_identifier(out, schema);
    buf_add_char(out, '.');
    add_identifier(out, name);
}
