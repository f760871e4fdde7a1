/* job.h - something that blocks, done beside the loop in a short-lived thread.
 *
 * Connecting blocks (DNS, TLS, Kerberos, a silent first host), and so does
 * destroying a Kafka producer.  The thread shares nothing with the loop but its
 * argument, which belongs to the thread until the job is done. */
#ifndef WALRELAY_IO_JOB_H
#define WALRELAY_IO_JOB_H

#include "base/err.h"

#include <stdbool.h>

struct job;

/* Runs work(arg) in a new thread with all signals blocked but those of its own faults.
 * NULL with err set (ERR_RETRY) when there are no threads or file descriptors left. */
struct job *job_start(void (*work)(void *arg), void *arg, struct err *err)
    __attribute__((warn_unused_result));

/* Readable in poll(2) once the work is done. */
int job_fd(const struct job *job);
bool job_is_done(const struct job *job);

/* Waits for the end of the work, gives arg back and frees the job. */
void job_finish(struct job *job);

/* How many were started and not finished.  While there is one, its thread may run: what
 * it looks at must stay, and so must what exit(3) tears down (OpenSSL's and Kerberos'
 * tables); _exit(2) does not. */
int jobs_left(void);

#endif
