/* namelist.h - lists of names in PostgreSQL's settings. */
#ifndef WALRELAY_CORE_NAMELIST_H
#define WALRELAY_CORE_NAMELIST_H

#include <stdbool.h>

/* Does a comma-separated list of names, which may stand in double quotes, hold
 * exactly this one?  (output_plugin_libraries and the like.) */
bool namelist_has(const char *list, const char *name);

/* Does synchronous_standby_names name a client with this application_name?  The
 * grammar is syncrep_gram.y's, `a, b`, `2 (a, b)`, `FIRST 2 (a, b)`, `ANY 2 (a, b)`;
 * names are compared as SyncRepGetStandbyPriority does: case does not count, and *
 * is everybody.  The server has checked the setting, so bad syntax is not reported. */
bool standby_names_match(const char *setting, const char *application_name);

#endif
