/* sqlfile.h - the files of sql/ that setup runs, put into the program by the build. */
#ifndef WALRELAY_APP_SQLFILE_H
#define WALRELAY_APP_SQLFILE_H

extern const char sql_role[];
extern const char sql_plugin[];
extern const char sql_outbox_events[];
extern const char sql_state[];
extern const char sql_dead_letters[];
extern const char sql_slot[];

#endif
