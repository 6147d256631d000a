// SPDX-License-Identifier: Apache-2.0

// What a command in a sandbox may not ask of the kernel, and how its listening socket leaves the sandbox.

#ifndef COUNTERSIGN_CLINUX_SANDBOX_H
#define COUNTERSIGN_CLINUX_SANDBOX_H

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

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
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 8, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 7, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 6, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 5, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
        // The kernel, too, looks only at the lower 32 bits.
        CSN_SANDBOX_ARGUMENT(1),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCLINUX, 1, 0),
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
    return setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
}

// Sends a descriptor with one byte over a Unix-domain socket. Returns 0, or -1.
static inline int csn_send_descriptor(int socket, int descriptor) {
    char byte = 0;
    struct iovec content = {&byte, 1};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr alignment;
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    ssize_t sent;
    do sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == 1 ? 0 : -1;
}

// Waits for a descriptor, which the caller owns and which exec closes, and puts the sender's process into `process` as
// this process's namespace numbers it; 0 without csn_receive_credentials. Returns -1 if the other end is closed.
static inline int csn_receive_descriptor(int socket, int *process) {
    char byte = 0;
    struct iovec content = {&byte, 1};
    // struct ucred, which only _GNU_SOURCE declares: pid, uid, gid.
    int credentials[3];
    union {
        char bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof credentials)];
        struct cmsghdr alignment;
    } control;
    struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control.bytes};
    ssize_t received;
    do received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (received < 0 && errno == EINTR);
    int descriptor = -1;
    *process = 0;
    if (received != 1) return -1;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header != NULL; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET) continue;
        if (header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int))) {
            memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
        }
        // SCM_CREDENTIALS
        if (header->cmsg_type == 2 && header->cmsg_len == CMSG_LEN(sizeof credentials)) {
            memcpy(credentials, CMSG_DATA(header), sizeof credentials);
            *process = credentials[0];
        }
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
