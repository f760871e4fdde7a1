#include "io/httpd.h"

#include "base/clock.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECTIONS = 16,
    CONNECTION_BYTES = 8192,
    SILENCE_S = 10,
    BACKLOG = 32,
    LOOK_AGAIN_MS = 1000,
    NAP_MS = 100,
};

struct httpd {
    struct httpd_options options;
    struct MHD_Daemon *daemon;
    int fd;               /* epoll's */
    int64_t at_ms;        /* the next time, without an event */
    int64_t nap_until_ms; /* the descriptor is not polled before; 0: it is */
    bool readable;
};

/* ---- answers --------------------------------------------------------------------- */

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status,
                              struct MHD_Response *response, const char *header,
                              const char *value)
{
    enum MHD_Result rc = MHD_NO;

    if (response && MHD_add_response_header(response, header, value) == MHD_YES)
        rc = MHD_queue_response(connection, status, response);
    if (response)
        MHD_destroy_response(response);
    return rc;
}

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status,
                                   const char *text, const char *header,
                                   const char *value)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);

    return answer(connection, status, response, header, value);
}

/* The page is the answer's own, as a slow client may still read it when the next one is
 * made. */
static enum MHD_Result answer_page(const struct httpd *httpd,
                                   struct MHD_Connection *connection)
{
    static const char type[] = "text/plain; version=0.0.4; charset=utf-8";
    struct MHD_Response *response;
    struct buf page;

    buf_init(&page, httpd->options.page_max);
    httpd->options.page(httpd->options.arg, &page);
    if (page.failed || page.len == 0) {
        buf_done(&page);
        return answer_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
                           "no memory for the page\n", MHD_HTTP_HEADER_CONTENT_TYPE,
                           "text/plain");
    }
    response = MHD_create_response_from_buffer(page.len, page.ptr, MHD_RESPMEM_MUST_FREE);
    if (!response)
        buf_done(&page);
    return answer(connection, MHD_HTTP_OK, response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
}

/* MHD_NO closes the connection. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection,
                                  const char *path, const char *method,
                                  const char *version, const char *upload, size_t *size,
                                  void **state)
{
    (void)version;
    (void)upload;
    (void)size;
    (void)state;
    if (strcmp(path, "/metrics") != 0)
        return answer_text(connection, MHD_HTTP_NOT_FOUND, "there is only /metrics\n",
                           MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain");
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
        strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET or HEAD\n",
                           MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    return answer_page(arg, connection);
}

/* ---- listening ------------------------------------------------------------------- */

static int refuse(const struct address_setting *at, const char *why, struct err *err)
{
    const char *brackets = strchr(at->host, ':') ? "[]" : "";

    return err_set(err, ERR_CONFIG, "cannot listen at %.1s%s%s:%u (listen in [http]): %s",
                   brackets, at->host, brackets[0] ? brackets + 1 : "",
                   (unsigned)at->port, why);
}

static int open_socket(const struct addrinfo *address)
{
    const int on = 1;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error;

    if (fd < 0)
        return -1;
    /* connections of a predecessor that just ended do not keep the port */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

static int listen_at(const struct address_setting *at, struct err *err)
{
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    char port[8];
    int fd = -1;
    int rc;

    (void)snprintf(port, sizeof(port), "%u", (unsigned)at->port);
    rc = getaddrinfo(at->host, port, &hints, &addresses);
    if (rc != 0)
        return refuse(at, rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc), err);
    for (struct addrinfo *a = addresses; a && fd < 0; a = a->ai_next)
        fd = open_socket(a);
    rc = fd < 0 ? errno : 0;
    freeaddrinfo(addresses);
    return fd >= 0 ? fd : refuse(at, strerror(rc), err);
}

/* ---- life ------------------------------------------------------------------------ */

static int start(struct httpd *httpd, int listener, struct err *err)
{
    const union MHD_DaemonInfo *info;

    httpd->daemon = MHD_start_daemon(
        MHD_USE_EPOLL, 0, NULL, NULL, on_request, httpd, MHD_OPTION_LISTEN_SOCKET,
        listener, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENCE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END);
    if (!httpd->daemon) /* it may or may not have closed listener */
        return err_set(err, ERR_INTERNAL, "libmicrohttpd does not start: %s",
                       strerror(errno));
    info = MHD_get_daemon_info(httpd->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info)
        return err_set(err, ERR_INTERNAL, "libmicrohttpd is built without epoll");
    httpd->fd = info->epoll_fd;
    return 0;
}

struct httpd *httpd_new(const struct httpd_options *options, struct err *err)
{
    struct httpd *httpd = calloc(1, sizeof(*httpd));
    int listener;

    if (!httpd) {
        (void)err_set(err, ERR_INTERNAL, "out of memory for the HTTP server");
        return NULL;
    }
    httpd->options = *options;
    listener = listen_at(&options->listen, err);
    if (listener < 0 || start(httpd, listener, err) != 0) {
        httpd_free(httpd);
        return NULL;
    }
    return httpd;
}

void httpd_free(struct httpd *httpd)
{
    if (!httpd)
        return;
    if (httpd->daemon)
        MHD_stop_daemon(httpd->daemon);
    free(httpd);
}

/* ---- the loop -------------------------------------------------------------------- */

struct pollfd httpd_fd(const struct httpd *httpd)
{
    return (struct pollfd){httpd->nap_until_ms != 0 ? -1 : httpd->fd, POLLIN, 0};
}

static unsigned connections(const struct httpd *httpd)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(httpd->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

    return info ? info->num_connections : 0;
}

/* libmicrohttpd takes the listening socket out of its epoll while all connections are in
 * use, and looks whether it may come back when it runs, which nothing else may cause. */
static int64_t next_time(const struct httpd *httpd, unsigned before, int64_t now_ms)
{
    MHD_UNSIGNED_LONG_LONG timeout;
    int64_t at =
        before > 0 || connections(httpd) > 0 ? now_ms + LOOK_AGAIN_MS : CLOCK_NEVER;

    if (MHD_get_timeout(httpd->daemon, &timeout) == MHD_YES && timeout < LOOK_AGAIN_MS)
        at = now_ms + (int64_t)timeout;
    return at;
}

void httpd_polled(struct httpd *httpd, const struct pollfd *fd)
{
    httpd->readable = fd->revents != 0;
}

void httpd_serve(struct httpd *httpd, int64_t now_ms)
{
    unsigned before;

    if (now_ms >= httpd->nap_until_ms)
        httpd->nap_until_ms = 0;
    if (!httpd->readable && now_ms < httpd->at_ms)
        return;
    httpd->readable = false;
    before = connections(httpd);
    (void)MHD_run(httpd->daemon);
    httpd->at_ms = next_time(httpd, before, now_ms);
    /* one that waits and cannot be accepted, for want of descriptors, stays readable */
    if (before == 0 && connections(httpd) == 0)
        httpd->nap_until_ms = now_ms + NAP_MS;
}

int64_t httpd_deadline(const struct httpd *httpd)
{
    return httpd->nap_until_ms != 0 ? httpd->nap_until_ms : httpd->at_ms;
}
