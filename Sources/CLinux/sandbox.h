// SPDX-License-Identifier: Apache-2.0

// What a command in a sandbox may not ask of the kernel, and how its listening socket leaves the sandbox.

#ifndef COUNTERSIGN_CLINUX_SANDBOX_H
#define COUNTERSIGN_CLINUX_SANDBOX_H

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// Of sys/socket.h and sys/ioctl.h. To include them would make their declarations this module's, and Swift files that
// import Glibc alone would no longer find them.
enum {
    csn_af_unix = 1,
    csn_af_inet = 2,
    csn_af_inet6 = 10,
    csn_af_netlink = 16,
    csn_sol_socket = 1,
    csn_so_passcred = 16,
    csn_scm_rights = 1,
    csn_scm_credentials = 2,
    csn_msg_nosignal = 0x4000,
    csn_msg_cmsg_cloexec = 0x40000000,
    csn_tiocsti = 0x5412,
    csn_tioclinux = 0x541C,
};

// struct iovec, struct msghdr and struct cmsghdr with room for two messages, as the kernel has them on 64-bit machines.
typedef struct {
    void *base;
    size_t length;
} csn_iovec;

typedef struct {
    size_t length;
    int32_t level;
    int32_t type;
    int32_t values[4];
} csn_control;

typedef struct {
    void *name;
    uint32_t name_length;
    csn_iovec *content;
    size_t content_count;
    void *control;
    size_t control_length;
    int32_t flags;
} csn_message;

#if defined(__x86_64__)
#define CSN_SANDBOX_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CSN_SANDBOX_ARCH AUDIT_ARCH_AARCH64
#endif

#define CSN_SANDBOX_DENY(number, error) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define CSN_SANDBOX_ARGUMENT(number) \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[number]))

// Writes the filter for bwrap's --seccomp to a pipe: 8 bytes for each instruction, in the machine's byte order. Returns
// 0, or -1 with ENOSYS on other architectures.
//
// bwrap's namespaces leave three ways out. The terminal takes input from any process that has it (TIOCSTI, TIOCLINUX).
// The session's keyring, which may contain Kerberos tickets, is inherited (keyrings(7)). Sockets of some families, such
// as AF_VSOCK, are in no network namespace; io_uring makes sockets without the system call. System calls of another
// architecture have other numbers, so that a program which makes one is killed.
static inline int csn_write_sandbox_filter(int pipe) {
#ifndef CSN_SANDBOX_ARCH
    (void)pipe;
    errno = ENOSYS;
    return -1;
#else
    const struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CSN_SANDBOX_ARCH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        // x32 has the architecture of x86-64, and numbers of its own.
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        CSN_SANDBOX_DENY(SYS_add_key, EPERM),
        CSN_SANDBOX_DENY(SYS_request_key, EPERM),
        CSN_SANDBOX_DENY(SYS_keyctl, EPERM),
        CSN_SANDBOX_DENY(SYS_io_uring_setup, ENOSYS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 6),
        CSN_SANDBOX_ARGUMENT(0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, csn_af_unix, 8, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, csn_af_inet, 7, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, csn_af_inet6, 6, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, csn_af_netlink, 5, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
        // The kernel, too, looks only at the lower 32 bits.
        CSN_SANDBOX_ARGUMENT(1),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, csn_tiocsti, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, csn_tioclinux, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    // Far less than a pipe holds.
    return write(pipe, filter, sizeof filter) == (ssize_t)sizeof filter ? 0 : -1;
#endif
}

// The kernel adds the sender's process to each message that arrives: SO_PASSCRED.
static inline int csn_receive_credentials(int socket) {
    int on = 1;
    return (int)syscall(SYS_setsockopt, socket, csn_sol_socket, csn_so_passcred, &on, sizeof on);
}

// Sends a descriptor with one byte over a Unix-domain socket. Returns 0, or -1.
static inline int csn_send_descriptor(int socket, int descriptor) {
    char byte = 0;
    csn_iovec content = {&byte, 1};
    csn_control control = {offsetof(csn_control, values) + sizeof descriptor, csn_sol_socket, csn_scm_rights, {0}};
    control.values[0] = descriptor;
    // The length of one message, up to the next multiple of 8.
    csn_message message = {NULL, 0, &content, 1, &control, offsetof(csn_control, values) + 8, 0};
    long sent;
    do sent = syscall(SYS_sendmsg, socket, &message, csn_msg_nosignal);
    while (sent < 0 && errno == EINTR);
    return sent == 1 ? 0 : -1;
}

// Waits for a descriptor, which the caller owns and which exec closes, and puts the sender's process into `process` as
// this process's namespace numbers it; 0 without csn_receive_credentials. Returns -1 if the other end is closed.
static inline int csn_receive_descriptor(int socket, int *process) {
    char byte = 0;
    csn_iovec content = {&byte, 1};
    csn_control control[2];
    csn_message message = {NULL, 0, &content, 1, control, sizeof control, 0};
    long received;
    do received = syscall(SYS_recvmsg, socket, &message, csn_msg_cmsg_cloexec);
    while (received < 0 && errno == EINTR);
    int descriptor = -1;
    *process = 0;
    if (received != 1) return -1;
    size_t offset = 0;
    while (offset + offsetof(csn_control, values) <= message.control_length) {
        const csn_control *part = (const csn_control *)((const char *)control + offset);
        size_t length = part->length;
        if (length < offsetof(csn_control, values) || offset + length > message.control_length) break;
        size_t values = (length - offsetof(csn_control, values)) / sizeof part->values[0];
        if (part->level == csn_sol_socket && part->type == csn_scm_rights && values == 1) descriptor = part->values[0];
        // struct ucred: pid, uid, gid.
        if (part->level == csn_sol_socket && part->type == csn_scm_credentials && values == 3)
            *process = part->values[0];
        offset += (length + 7) & ~(size_t)7;
    }
    return descriptor;
}

// A descriptor of a process, which exec closes (pidfd_open(2)); or -1.
static inline int csn_open_process(int process) { return (int)syscall(SYS_pidfd_open, process, 0); }

// Sends a signal to the process of a descriptor, never to another one that has its number now.
static inline int csn_signal_process(int descriptor, int signal) {
    return (int)syscall(SYS_pidfd_send_signal, descriptor, signal, NULL, 0);
}

#endif
