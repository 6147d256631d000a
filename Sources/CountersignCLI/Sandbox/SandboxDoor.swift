// SPDX-License-Identifier: Apache-2.0

import CountersignCLinux
import CountersignHome
import Glibc

/// The first program in a sandbox: makes the socket on which the proxy outside accepts the command's connections, and
/// becomes the command.
///
/// A listening socket stays in the network namespace in which it was made, whichever process has it. So the namespace
/// of the sandbox has a loopback interface and nothing else, and the proxy needs no relay in it.
enum SandboxDoor {
    static let command = "sandbox-door"
    /// The address of the proxy inside. Nothing else listens there.
    static let (host, port) = ("127.0.0.1", 3128)

    /// Passes the listening socket to the process at the other end of `socket`, waits until that one lets the command
    /// begin, and runs `words`. Returns 127 or 126 if the command cannot be run, and reports why.
    static func enter(_ socket: Int32, _ words: [String]) -> Int32 {
        guard !words.isEmpty, let listener = listen() else {
            Console.error(Diagnostic("cannot listen in the sandbox: \(String(cString: strerror(errno)))"))
            return 126
        }
        guard csn_send_descriptor(socket, listener) == 0, mayBegin(socket) else { return 126 }
        close(socket)
        close(listener)
        restoreSignals()
        var arguments = words.map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        execvp(words[0], &arguments)
        let failure = errno
        Console.error(.cannotRun(words[0], failure))
        return failure == ENOENT || failure == ENOTDIR ? 127 : 126
    }

    private static func listen() -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(port)).bigEndian
        address.sin_addr.s_addr = inet_addr(host)
        let isListening = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        return isListening && Glibc.listen(descriptor, 4096) == 0 ? descriptor : nil
    }

    /// False if the process outside has no proxy for the command.
    private static func mayBegin(_ socket: Int32) -> Bool {
        var byte: UInt8 = 0
        while true {
            let count = read(socket, &byte, 1)
            if count < 0, errno == EINTR { continue }
            return count == 1
        }
    }

    /// The command starts as it would from a shell: no signal blocked or ignored. They are blocked in bwrap
    /// (``SandboxedChild``).
    private static func restoreSignals() {
        for number in [SIGPIPE, SIGXFSZ] { signal(number, SIG_DFL) }
        var none = sigset_t()
        sigemptyset(&none)
        sigprocmask(SIG_SETMASK, &none, nil)
    }
}
