/* setting_value.h - the text of a setting to the field of its struct, by its type. */
#ifndef WALRELAY_CORE_SETTING_VALUE_H
#define WALRELAY_CORE_SETTING_VALUE_H

#include "base/err.h"
#include "core/config.h"
#include "core/settings.h"

/* Reads text as the setting's type says and stores it in record, the struct config or
 * struct table_settings that the setting belongs to; not for SETTING_PROPERTY.  0, or
 * -1 with err set (ERR_CONFIG: what is wrong with it, without the setting's name). */
int setting_store(const struct setting *setting, const char *text, void *record,
                  struct err *err) __attribute__((warn_unused_result));

/* "1MB to 1024GB", "text, json": what a value may be; "" if there is no more to say than
 * setting_type_words does.  Lives in text. */
struct range_text {
    char text[128];
};
const char *setting_range(const struct setting *setting, struct range_text *range);

#endif
