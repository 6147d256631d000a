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

#define CSN_ANSWER(number, answer) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, (answer))
// The argument of the system call must have none of the bits; otherwise, `answer`.
#define CSN_ALLOW_WITHOUT(number, argument, bits, answer) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 4), \
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[argument])), \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), \
        BPF_STMT(BPF_RET | BPF_K, (answer))
// The first argument, a descriptor, must be standard input.
#define CSN_ALLOW_STDIN(number, answer) CSN_ALLOW_WITHOUT(number, 0, 0xFFFFFFFF, answer)

// What happens at a write to another descriptor, at pread64 and at sched_yield. They are never made.
enum csn_denial {
    // The process is killed, as at any other system call.
    CSN_KILL = 0,
    // They fail with EPERM: JavaScriptCore asks /proc how much memory it uses, and wakes threads that there are not,
    // and it can do without. rt_sigprocmask, with which abort() begins, is answered by SIGSYS.
    CSN_FAIL = 1,
};

// Takes every right from the process, for ever: the address space may grow by `headroom` bytes, and every system call
// but those for memory, time, the socket and the end kills the process. Returns 0, or -1 if that is not possible.
static inline int csn_confine(unsigned long headroom, enum csn_denial denial) {
#ifndef CSN_AUDIT_ARCH
    (void)headroom;
    (void)denial;
    errno = ENOSYS;
    return -1;
#else
    unsigned long size = csn_address_space();
    if (size == 0 || csn_limit(RLIMIT_AS, size + headroom) != 0 || csn_limit(RLIMIT_CORE, 0) != 0 ||
        csn_limit(RLIMIT_FSIZE, 0) != 0 || csn_limit(RLIMIT_NOFILE, 0) != 0 || csn_limit(RLIMIT_NPROC, 0) != 0) {
        return -1;
    }
    const unsigned int killed = SECCOMP_RET_KILL_PROCESS;
    const unsigned int denied = denial == CSN_FAIL ? SECCOMP_RET_ERRNO | EPERM : killed;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CSN_AUDIT_ARCH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, killed),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        CSN_ALLOW_STDIN(SYS_read, killed),
        CSN_ALLOW_STDIN(SYS_write, denied),
        CSN_ANSWER(SYS_pread64, denied),
        CSN_ANSWER(SYS_sched_yield, denied),
        CSN_ANSWER(SYS_rt_sigprocmask, denial == CSN_FAIL ? SECCOMP_RET_TRAP : killed),
        CSN_ANSWER(SYS_setitimer, SECCOMP_RET_ALLOW),
        CSN_ANSWER(SYS_rt_sigreturn, SECCOMP_RET_ALLOW),
        CSN_ANSWER(SYS_exit_group, SECCOMP_RET_ALLOW),
        CSN_ANSWER(SYS_brk, SECCOMP_RET_ALLOW),
        CSN_ANSWER(SYS_munmap, SECCOMP_RET_ALLOW),
        CSN_ANSWER(SYS_mremap, SECCOMP_RET_ALLOW),
        CSN_ANSWER(SYS_madvise, SECCOMP_RET_ALLOW),
        CSN_ANSWER(SYS_futex, SECCOMP_RET_ALLOW),
        CSN_ANSWER(SYS_gettimeofday, SECCOMP_RET_ALLOW),
        CSN_ANSWER(SYS_clock_gettime, SECCOMP_RET_ALLOW),
        CSN_ALLOW_WITHOUT(SYS_mmap, 2, PROT_EXEC, killed),
        CSN_ALLOW_WITHOUT(SYS_mprotect, 2, PROT_EXEC, killed),
        BPF_STMT(BPF_RET | BPF_K, killed),
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
