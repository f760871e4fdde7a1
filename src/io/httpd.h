/* httpd.h - GET /metrics; the only file that knows libmicrohttpd is httpd.c.
 *
 * It runs in the loop of whoever has it: poll httpd_fd, call httpd_polled and
 * httpd_serve.  Nothing here blocks, there is no thread, and what clients can take is
 * bounded: 16 connections, 8 kB for the request and one page for the answer of each, 10 s
 * of silence. */
#ifndef WALRELAY_IO_HTTPD_H
#define WALRELAY_IO_HTTPD_H

#include "base/buf.h"
#include "base/err.h"
#include "core/config.h"

#include <poll.h>
#include <stdint.h>

struct httpd;

/* Appends the page; called inside httpd_serve. */
typedef void (*httpd_page_t)(void *arg, struct buf *page);

struct httpd_options {
    struct address_setting listen;
    size_t page_max; /* bytes of a page */
    httpd_page_t page;
    void *arg;
};

/* Listens from then on.  NULL with err set: ERR_CONFIG, with the address, when that
 * cannot be.  A name is looked up, which may block. */
struct httpd *httpd_new(const struct httpd_options *options, struct err *err)
    __attribute__((warn_unused_result));
void httpd_free(struct httpd *httpd);

struct pollfd httpd_fd(const struct httpd *httpd);

/* What poll(2) said of it. */
void httpd_polled(struct httpd *httpd, const struct pollfd *fd);

/* Called in every turn of the loop. */
void httpd_serve(struct httpd *httpd, int64_t now_ms);

/* When httpd_serve has something to do without an event. */
int64_t httpd_deadline(const struct httpd *httpd);

#endif
