// SPDX-License-Identifier: Apache-2.0

// A process without rights: it can compute, and talk over the one socket that is its standard input.

#ifndef COUNTERSIGN_CLINUX_CONFINEMENT_H
#define COUNTERSIGN_CLINUX_CONFINEMENT_H

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define CSN_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CSN_AUDIT_ARCH AUDIT_ARCH_AARCH64
#endif

// The exit status when the processor time of one call is used up.
#define CSN_TIME_IS_UP 12

// prlimit: sets both limits.
static inline int csn_limit(int resource, unsigned long value) {
    struct rlimit limit = {value, value};
    return setrlimit(resource, &limit);
}

// The size of the address space in bytes; 0 if it cannot be read.
static inline unsigned long csn_address_space(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL) return 0;
    if (fscanf(file, "%lu", &pages) != 1) pages = 0;
    fclose(file);
    return pages * (unsigned long)sysconf(_SC_PAGESIZE);
}

#define CSN_ALLOW(number) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
// The word `offset` of the system call's data must have none of the bits.
#define CSN_ALLOW_WITHOUT(number, argument, bits) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 4), \
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[argument])), \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
// The first argument, a descriptor, must be standard input.
#define CSN_ALLOW_STDIN(number) CSN_ALLOW_WITHOUT(number, 0, 0xFFFFFFFF)

// Takes every right from the process, for ever: the address space may grow by `headroom` bytes, and every system call
// but those for memory, time, the socket and the end kills the process. Returns 0, or -1 if that is not possible.
static inline int csn_confine(unsigned long headroom) {
#ifndef CSN_AUDIT_ARCH
    (void)headroom;
    errno = ENOSYS;
    return -1;
#else
    unsigned long size = csn_address_space();
    if (size == 0 || csn_limit(RLIMIT_AS, size + headroom) != 0 || csn_limit(RLIMIT_CORE, 0) != 0 ||
        csn_limit(RLIMIT_FSIZE, 0) != 0 || csn_limit(RLIMIT_NOFILE, 0) != 0 || csn_limit(RLIMIT_NPROC, 0) != 0) {
        return -1;
    }
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CSN_AUDIT_ARCH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        CSN_ALLOW_STDIN(SYS_read),
        CSN_ALLOW_STDIN(SYS_write),
        CSN_ALLOW(SYS_setitimer),
        CSN_ALLOW(SYS_rt_sigreturn),
        CSN_ALLOW(SYS_exit_group),
        CSN_ALLOW(SYS_brk),
        CSN_ALLOW(SYS_munmap),
        CSN_ALLOW(SYS_mremap),
        CSN_ALLOW(SYS_madvise),
        CSN_ALLOW(SYS_futex),
        CSN_ALLOW(SYS_gettimeofday),
        CSN_ALLOW(SYS_clock_gettime),
        CSN_ALLOW_WITHOUT(SYS_mmap, 2, PROT_EXEC),
        CSN_ALLOW_WITHOUT(SYS_mprotect, 2, PROT_EXEC),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    // For all threads at once.
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0 ? 0 : -1;
#endif
}

static inline void csn_time_is_up(int signal) {
    (void)signal;
    _exit(CSN_TIME_IS_UP);
}

// Makes SIGPROF, the signal of the timer, end the process.
static inline int csn_prepare_timer(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = csn_time_is_up;
    return sigaction(SIGPROF, &action, NULL);
}

// Ends the process once it has used this much processor time; 0 to stop that.
static inline int csn_start_timer(int milliseconds) {
    struct itimerval time = {{0, 0}, {milliseconds / 1000, milliseconds % 1000 * 1000}};
    return setitimer(ITIMER_PROF, &time, NULL);
}

// The exit status or the signal of a child that waitid has found, which is a macro over a union.
static inline int csn_child_status(const siginfo_t *info) { return info->si_status; }

#endif
