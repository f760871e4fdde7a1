#include "app/load.h"

#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BYTES = 32 << 20 }; /* config_parse refuses less than that */

static int read_file(FILE *file, struct buf *text)
{
    char chunk[4096];
    size_t n;

    while (!text->failed && (n = fread(chunk, 1, sizeof(chunk), file)) > 0)
        buf_add(text, (struct slice){chunk, n});
    return ferror(file) ? -1 : 0;
}

static int read_path(const char *path, struct buf *text, struct err *err)
{
    FILE *file = fopen(path, "re");
    int rc;

    if (!file)
        return err_set(
            err, errno == ENOMEM ? ERR_INTERNAL : ERR_CONFIG,
            "cannot open %s: %s; -c or WALRELAY_CONFIG names the configuration", path,
            strerror(errno));
    rc = read_file(file, text);
    if (rc < 0)
        (void)err_set(err, ERR_CONFIG, "cannot read %s: %s", path, strerror(errno));
    (void)fclose(file);
    if (rc == 0 && text->no_memory) /* a part of it could pass for the whole */
        rc = err_set(err, ERR_INTERNAL, "out of memory for %s", path);
    return rc;
}

struct config *config_load(const char *path, config_env_t env, struct err *err)
{
    struct config *config = NULL;
    struct buf text;

    buf_init(&text, MAX_BYTES);
    if (read_path(path, &text, err) == 0)
        config = config_parse(path, buf_slice(&text), env, err);
    buf_done(&text);
    return config;
}
