// SPDX-License-Identifier: Apache-2.0
// Gives up all rights as the worker for scripts does, and then tries what the first argument says. Exits with 0 if that
// was possible, and with 1 if it failed. The second one is "fail" for CSN_FAIL, and anything else for CSN_KILL.
#define _GNU_SOURCE
#include "confinement.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>

static void *run(void *argument) { return argument; }

int main(int count, char **arguments) {
    if (count != 3 || csn_prepare_timer() != 0) return 2;
    if (csn_confine(64UL << 20, strcmp(arguments[2], "fail") == 0 ? CSN_FAIL : CSN_KILL) != 0) return 2;
    const char *what = arguments[1];
    char byte = 0;
    int done = 0;
    if (strcmp(what, "compute") == 0) done = malloc(1 << 20) != NULL;
    if (strcmp(what, "allocate") == 0) done = malloc(256UL << 20) != NULL;
    if (strcmp(what, "loop") == 0) {
        csn_start_timer(100);
        for (volatile int i = 0;; i++) {}
    }
    if (strcmp(what, "open") == 0) done = open("/dev/null", O_RDONLY) >= 0;
    if (strcmp(what, "socket") == 0) done = socket(AF_INET, SOCK_STREAM, 0) >= 0;
    if (strcmp(what, "fork") == 0) done = fork() >= 0;
    if (strcmp(what, "execute") == 0) done = execl("/bin/true", "true", NULL) == 0;
    if (strcmp(what, "kill") == 0) done = kill(getppid(), 0) == 0;
    if (strcmp(what, "write") == 0) done = write(2, "x", 1) == 1;
    if (strcmp(what, "read") == 0) done = read(1, &byte, 1) >= 0;
    if (strcmp(what, "pread") == 0) done = pread(0, &byte, 1, 0) >= 0;
    if (strcmp(what, "yield") == 0) done = sched_yield() == 0;
    if (strcmp(what, "abort") == 0) abort();
    pthread_t thread;
    if (strcmp(what, "thread") == 0) done = pthread_create(&thread, NULL, run, NULL) == 0;
    if (strcmp(what, "code") == 0) {
        done = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
    }
    _exit(done ? 0 : 1);
}
