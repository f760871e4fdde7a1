/* The table of core/poison.c beside librdkafka's own list. */
#include "core/poison.h"
#include "io/kafka_error.h"

#include "unit.h"

#include <librdkafka/rdkafka.h>

enum { OLDEST_VERSION = 0x020002ff, LAST_OF_OLDEST = 97, KNOWN = 158 };

static void every_error_that_librdkafka_knows_has_a_row_of_its_name(void **state)
{
    const struct rd_kafka_err_desc *list;
    size_t n;
    size_t known = 0;

    (void)state;
    rd_kafka_get_err_descs(&list, &n);
    for (size_t i = 0; i < n; i++) {
        int code = (int)list[i].code;

        if (!list[i].name || code == 0 || code == RD_KAFKA_RESP_ERR__BEGIN ||
            code == RD_KAFKA_RESP_ERR__END)
            continue;
        if (!poison_is_known(code)) { /* of a version that came later */
            assert_true(rd_kafka_version() > OLDEST_VERSION);
            continue;
        }
        known++;
        assert_string_equal(poison_name(code), list[i].name);
    }
    assert_int_equal(known, KNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_that_librdkafka_knows_has_a_row_of_its_name),
    };

    return cmocka_run_group_tests_name("poison", tests, NULL, NULL);
}
