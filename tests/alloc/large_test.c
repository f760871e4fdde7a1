/* The memory for one large event is not there. */
#include "rig.h"

#include <stdlib.h>

void failing_above(size_t bytes); /* in failing.c */

enum { SMALL = 1 << 20, LARGE = 4 << 20 };

static void an_event_that_finds_no_memory_is_named_and_can_be_tried_again(void **state)
{
    struct rig *rig = rig_new(1, 1);
    struct message message = rig_message("events", "k");
    char *payload = calloc(1, LARGE);

    (void)state;
    assert_non_null(payload);
    message.payload = (struct slice){payload, LARGE};
    rig->memory_bytes = SMALL;
    rig_set(rig, "message.max.bytes", "10000000");
    rig_start(rig);

    failing_above(LARGE / 2);
    assert_int_equal(rig_offer(rig, message), -1);
    assert_int_equal(rig->err.class, ERR_INTERNAL);
    assert_non_null(strstr(rig->err.text, "out of memory"));
    assert_non_null(strstr(rig->err.text, "event id 0 at 0/0"));
    assert_non_null(strstr(rig->err.text, "4194304 bytes"));

    failing_above(0);
    assert_int_equal(rig_offer(rig, message), 1);
    free(payload);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_that_finds_no_memory_is_named_and_can_be_tried_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
