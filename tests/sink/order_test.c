#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void records_of_many_keys_arrive_complete_and_in_order(void **state)
{
    struct rig *rig = rig_new(1, 4);
    struct record_list list;

    (void)state;
    rig_start(rig);
    for (int i = 0; i < 10000; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "order-%d", i * 7 % 100);
        rig_put(rig, "events", key, 1);
    }
    rig_run_until_all_acked(rig);
    list = rig_read(rig, "events");
    assert_int_equal(list.n, 10000);
    assert_int_equal(record_list_count(&list, 0, 10000), 10000);
    record_list_must_ascend(&list);
    record_list_free(&list);
    rig_free(rig);
}

static void one_record_travels_alone_until_its_acknowledgement(void **state)
{
    struct rig *rig = rig_new(1, 1);

    (void)state;
    rig_start(rig);
    rd_kafka_mock_broker_set_rtt(rig->mock, 1, 100);
    rig_put(rig, "events", "k", 200);
    while (rig->acked == 0)
        rig_turn(rig, 100);
    assert_int_equal(rig->acked, 1);
    rig_run_until_all_acked(rig);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_many_keys_arrive_complete_and_in_order),
        cmocka_unit_test(one_record_travels_alone_until_its_acknowledgement),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
