#include "base/clock.h"
#include "io/httpd.h"

#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = 16, LIMIT_MS = 20000 };

static char loopback[] = "127.0.0.1";

struct bench {
    struct httpd *httpd;
    uint16_t port;
    int pages; /* that were made */
    size_t page_bytes;
};

static void page(void *arg, struct buf *page)
{
    struct bench *b = arg;

    b->pages++;
    while (page->len < b->page_bytes && !page->failed)
        buf_add_str(page, "one 1\n");
}

static struct sockaddr_in address_of(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons(port)};
}

/* A socket on a port that nobody else has. */
static int take_port(uint16_t *ret)
{
    struct sockaddr_in address = address_of(0);
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *ret = ntohs(address.sin_port);
    return fd;
}

static struct httpd *listen_at(struct bench *b, struct err *err)
{
    const struct httpd_options options = {
        .listen = {loopback, b->port}, .page_max = 1 << 20, .page = page, .arg = b};

    return httpd_new(&options, err);
}

static int set_up(void **state)
{
    static struct bench bench;
    struct err err = {0};

    bench = (struct bench){.page_bytes = 6};
    (void)close(take_port(&bench.port));
    bench.httpd = listen_at(&bench, &err);
    *state = &bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;

    httpd_free(b->httpd);
    return 0;
}

/* Without memory a test fails, which is right. */
static struct bench *ready(void **state)
{
    struct bench *b = *state;

    assert_non_null(b->httpd);
    return b;
}

/* ---- clients --------------------------------------------------------------------- */

static int call(const struct bench *b, const char *words)
{
    struct sockaddr_in address = address_of(b->port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(send(fd, words, strlen(words), MSG_NOSIGNAL), strlen(words));
    return fd;
}

/* One turn of a loop; nothing sleeps while there is something to do. */
static void turn(struct bench *b)
{
    struct pollfd fd = httpd_fd(b->httpd);
    int64_t left = httpd_deadline(b->httpd) - clock_mono_ms();

    (void)poll(&fd, 1, left < 0 ? 0 : left < 20 ? (int)left : 20);
    httpd_polled(b->httpd, &fd);
    httpd_serve(b->httpd, clock_mono_ms());
}

/* Reads until the server closes, or until the answer has these words. */
static void hear(struct bench *b, int fd, const char *words, struct buf *ret)
{
    int64_t limit = clock_mono_ms() + LIMIT_MS;
    char some[4096];

    while (clock_mono_ms() < limit) {
        ssize_t n = recv(fd, some, sizeof(some), 0);

        if (n > 0)
            buf_add(ret, (struct slice){some, (size_t)n});
        if (n == 0 || (words && strstr(buf_str(ret), words)))
            return;
        if (n < 0)
            turn(b);
    }
    fail_msg("no answer but %s", buf_str(ret));
}

static void assert_answer(struct bench *b, const char *request, const char *status,
                          const char *words)
{
    int fd = call(b, request);
    struct buf answer;

    buf_init(&answer, 1 << 20);
    hear(b, fd, words, &answer);
    (void)close(fd);
    assert_int_equal(strncmp(buf_str(&answer), status, strlen(status)), 0);
    assert_non_null(strstr(buf_str(&answer), words));
    buf_done(&answer);
}

/* ---- tests ------------------------------------------------------------------------ */

static void the_page_is_answered(void **state)
{
    struct bench *b = ready(state);

    assert_answer(b, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n",
                  "one 1\n");
    assert_answer(b, "GET /metrics?a=b HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\n",
                  "text/plain; version=0.0.4");
    assert_answer(b, "HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n",
                  "Content-Length: 6\r\n");
}

static void there_are_no_other_pages_and_methods(void **state)
{
    struct bench *b = ready(state);

    assert_answer(b, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 404 Not Found\r\n",
                  "there is only /metrics");
    assert_answer(b, "GET /metrics/ HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 404 ",
                  "only");
    assert_answer(b, "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
                  "HTTP/1.1 405 Method Not Allowed\r\n", "Allow: GET, HEAD\r\n");
    assert_int_equal(b->pages, 0);
}

static void what_is_no_request_is_refused(void **state)
{
    struct bench *b = ready(state);
    struct buf answer;
    int fd = call(b, "\x16\x03\x01 no such thing\r\n\r\n");

    buf_init(&answer, 1 << 20);
    hear(b, fd, NULL, &answer);
    assert_int_equal(b->pages, 0);
    buf_done(&answer);
    (void)close(fd);
}

static void a_page_over_its_limit_is_an_error(void **state)
{
    struct bench *b = ready(state);

    b->page_bytes = 2 << 20;
    assert_answer(b, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 500 ",
                  "no memory");
}

static void a_client_that_does_not_read_keeps_nobody_up(void **state)
{
    struct bench *b = ready(state);
    int lazy[3];

    b->page_bytes = 500000;
    for (size_t i = 0; i < COUNT(lazy); i++)
        lazy[i] = call(b, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    while (b->pages < (int)COUNT(lazy))
        turn(b);
    assert_answer(b, "HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n",
                  "\r\n\r\n");
    for (size_t i = 0; i < COUNT(lazy); i++)
        (void)close(lazy[i]);
}

/* More than are allowed: those beyond wait until others end. */
static void when_all_connections_are_used_others_wait_for_one(void **state)
{
    struct bench *b = ready(state);
    struct buf answer;
    int silent[CLIENTS];
    int late;

    for (size_t i = 0; i < CLIENTS; i++)
        silent[i] = call(b, "GET /met");
    for (int i = 0; i < 3 * CLIENTS; i++)
        turn(b);
    late = call(b, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    for (int i = 0; i < 10; i++)
        turn(b);
    assert_int_equal(b->pages, 0);
    for (size_t i = 0; i < CLIENTS; i++)
        (void)close(silent[i]);
    buf_init(&answer, 1 << 20);
    hear(b, late, "one 1\n", &answer);
    buf_done(&answer);
    (void)close(late);
}

/* Its socket sleeps between two calls and is not asked again and again. */
static void nobody_calls_and_there_is_nothing_to_do(void **state)
{
    struct bench *b = ready(state);

    for (int i = 0; httpd_deadline(b->httpd) != CLOCK_NEVER; i++) {
        assert_in_range(i, 0, 100);
        turn(b);
    }
    assert_true(httpd_fd(b->httpd).fd >= 0);
}

static void a_port_that_is_taken_is_named(void **state)
{
    struct bench *b = ready(state);
    struct bench other = {.page_bytes = 6};
    struct err err = {0};
    char expected[128];
    int fd = take_port(&other.port);

    (void)b;
    assert_int_equal(listen(fd, 1), 0);
    assert_null(listen_at(&other, &err));
    if (err.class == ERR_INTERNAL) /* no memory */
        fail_msg("%s", err.text);
    (void)snprintf(expected, sizeof(expected),
                   "cannot listen at 127.0.0.1:%u (listen in [http]): %s",
                   (unsigned)other.port, strerror(EADDRINUSE));
    assert_string_equal(err.text, expected);
    assert_int_equal(err.class, ERR_CONFIG);
    (void)close(fd);
}

static void an_address_that_is_not_ours_is_named(void **state)
{
    static char foreign[] = "2001:db8::1";
    const struct httpd_options options = {.listen = {foreign, 8464}};
    struct err err = {0};

    (void)state;
    assert_null(httpd_new(&options, &err));
    assert_non_null(strstr(err.text, "cannot listen at [2001:db8::1]:8464 (listen in"));
}

static void a_predecessors_connections_do_not_keep_the_port(void **state)
{
    struct bench *b = ready(state);
    struct err err = {0};

    assert_answer(b, "GET /metrics HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\n", "one 1\n");
    httpd_free(b->httpd); /* the server's end closed first: TIME_WAIT */
    b->httpd = listen_at(b, &err);
    assert_non_null(b->httpd);
    assert_answer(b, "GET /metrics HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\n", "one 1\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_page_is_answered),
        TEST(there_are_no_other_pages_and_methods),
        TEST(what_is_no_request_is_refused),
        TEST(a_page_over_its_limit_is_an_error),
        TEST(a_client_that_does_not_read_keeps_nobody_up),
        TEST(when_all_connections_are_used_others_wait_for_one),
        TEST(nobody_calls_and_there_is_nothing_to_do),
        TEST(a_port_that_is_taken_is_named),
        TEST(an_address_that_is_not_ours_is_named),
        TEST(a_predecessors_connections_do_not_keep_the_port),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
