// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignHome
import CountersignProxy
import Dispatch
import FoundationEssentials
import Glibc

/// The listening sockets that `serve` was started with: by systemd (sd_listen_fds(3)), or by the `serve` that it
/// replaces, which also passes its control socket and waits until this process is ready.
struct InheritedSockets: Sendable {
    let addresses: [ProxyConfiguration.ListeningAddress]
    let control: Int32?
    /// Whether this process replaces another one.
    var replacesProcess: Bool { ready != nil }
    /// The former process: where to report that this one is ready, and how to learn that it accepts no more clients.
    private let ready: Int32?

    /// The variables that one process passes to the next.
    static let variables = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "COUNTERSIGN_RESTART"]
    /// The names of descriptors in `LISTEN_FDNAMES`. The file of a socket of the first kind is removed at the end.
    static let (own, activated, control, ready) = ("own", "activated", "control", "ready")
    private static let first: Int32 = 3
    private static let most: Int32 = 64

    /// Takes over the sockets; nil without any. Children of this process do not inherit them. Throws
    /// ``CountersignError`` if one cannot be used.
    static func take(permitsNetwork: Bool) throws -> InheritedSockets? {
        let environment = ProcessInfo.processInfo.environment
        for name in variables { unsetenv(name) }
        let isReplacement = environment["COUNTERSIGN_RESTART"].flatMap { Int32($0) } == getppid()
        guard let process = environment["LISTEN_PID"].flatMap({ Int32($0) }),
            process == getpid() || isReplacement && process == getppid(),
            let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }), (1...most).contains(count)
        else { return nil }
        let descriptors = (0..<count).map { first + $0 }
        for descriptor in descriptors { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        let names = (environment["LISTEN_FDNAMES"] ?? "").split(separator: ":", omittingEmptySubsequences: false)
        guard isReplacement, names.count == descriptors.count else {
            for descriptor in descriptors { try check(descriptor, permitsNetwork) }
            return InheritedSockets(
                addresses: descriptors.map { .inherited(descriptor: $0, isOwn: false) }, control: nil, ready: nil)
        }
        func all(_ name: String) -> [Int32] { zip(descriptors, names).filter { $0.1 == name }.map(\.0) }
        let addresses = zip(descriptors, names).filter { $0.1 == own || $0.1 == activated }
        return InheritedSockets(
            addresses: addresses.map { .inherited(descriptor: $0.0, isOwn: $0.1 == own) },
            control: all(control).first, ready: all(ready).first)
    }

    private static func check(_ descriptor: Int32, _ permitsNetwork: Bool) throws {
        guard let name = ListeningSocket.name(ofInherited: descriptor) else {
            throw CountersignError(
                .configuration, "descriptor \(descriptor) of the service manager is not a listening stream socket",
                hint: "use ListenStream= in the unit of the socket")
        }
        guard !permitsNetwork, !name.hasPrefix("unix:") else { return }
        let host = name.prefix(upTo: name.lastIndex(of: ":") ?? name.endIndex).filter { !"[]".contains($0) }
        guard HostText.isLoopbackAddress(host) else {
            throw CountersignError(
                .configuration, "the service manager's socket \(name) has not a loopback address",
                hint: "pass --unsafe-listen and --client-token-file, or use a loopback address")
        }
    }

    /// Tells the process that this one replaces that it can begin to accept clients, and waits until that one has
    /// ceased to, or has ended.
    func takeOver() async {
        guard let ready else { return }
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "countersign.replacement").async {
                _ = write(ready, "1", 1)
                var end: UInt8 = 0
                while read(ready, &end, 1) < 0, errno == EINTR {}
                close(ready)
                continuation.resume()
            }
        }
    }
}
