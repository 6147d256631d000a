// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignSitePolicy
import Glibc
import NIOConcurrencyHelpers

/// Finds out about the clients of a proxy what a list of sites asks for. It reads files and the user database, so it
/// must not run on an event loop.
///
/// A number of a process says nothing once the process has ended, and a process may run another program. So everything
/// is read through one descriptor of the process's folder, and what does not agree is unknown.
package struct ClientIdentification: Sendable {
    /// The process that connected to a Unix-domain socket, as the kernel reported it on accepting.
    struct UnixPeer: Sendable {
        let credentials: PeerCredentials
        /// SO_PEERPIDFD (Linux 6.5). This value's owner closes it. Nil if the kernel does not have it.
        let descriptor: Int32?
        /// CLOCK_BOOTTIME in clock ticks.
        let acceptedTicks: UInt64
    }

    /// What the list's names stand for, for ``lifetimeSeconds``: asking costs more than everything else together.
    private struct KnownNames {
        let needs: ClientNeeds
        let names: ClientFacts.Names
        let until: UInt64
    }

    /// SO_PEERPIDFD, which the Glibc module leaves out.
    static let processDescriptorOption: CInt = 77

    private static let lifetimeSeconds: UInt64 = 10
    private let knownNames = NIOLockedValueBox<KnownNames?>(nil)
    private let recent = NIOLockedValueBox<[Int32]>([])

    /// The client at the other end of a TCP connection. `socketInode` is that of its socket.
    func facts(uid: UInt32?, socketInode: UInt32?, _ needs: ClientNeeds) -> ClientFacts {
        var facts = facts(uid, needs)
        guard needs.needsProcess, let uid, let socketInode, let pid = process(of: socketInode, uid),
            let folder = ProcessFolder(pid: pid)
        else { return facts }
        read(folder, pid, needs, into: &facts) { $0.holds(inode: socketInode) }
        return facts
    }

    /// The client at the other end of a connection to a Unix-domain socket.
    func facts(of peer: UnixPeer, _ needs: ClientNeeds) -> ClientFacts {
        var facts = facts(peer.credentials.uid, needs)
        guard needs.needsProcess, peer.credentials.pid > 0, let folder = ProcessFolder(pid: peer.credentials.pid) else {
            return facts
        }
        read(folder, peer.credentials.pid, needs, into: &facts) { folder in
            // The folder is that of the peer if the peer is still there now.
            if let descriptor = peer.descriptor { return Self.isRunning(descriptor) }
            return folder.startTicks.map { $0 <= peer.acceptedTicks } ?? false
        }
        return facts
    }

    /// CLOCK_BOOTTIME in clock ticks.
    static var ticks: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        let perSecond = UInt64(max(1, sysconf(Int32(_SC_CLK_TCK))))
        return UInt64(time.tv_sec) * perSecond + UInt64(time.tv_nsec) * perSecond / 1_000_000_000
    }

    /// Reads what the process's folder says. Nothing of it counts if its user is another one, or if `isClient` is false
    /// afterwards.
    private func read(
        _ folder: borrowing ProcessFolder, _ pid: Int32, _ needs: ClientNeeds, into facts: inout ClientFacts,
        isClient: (borrowing ProcessFolder) -> Bool
    ) {
        let executable = folder.executable
        let group = needs.needsControlGroup ? folder.controlGroup : nil
        // Reading the credentials costs more than everything else.
        let credentials = needs.needsGroups || folder.owner != facts.uid ? folder.credentials : nil
        guard folder.owner == facts.uid || credentials?.uid == facts.uid, isClient(folder) else { return }
        facts.pid = pid
        facts.executable = executable
        facts.controlGroup = group
        facts.groups = credentials?.uid == facts.uid ? credentials?.groups : nil
        if let group {
            // A container keeps its name; one whose files do not mention it yet is unknown.
            facts.containerNames =
                group.containerID.map { needs.needsContainerNames ? ContainerNames.names(of: $0) : nil } ?? []
        }
    }

    /// A process descriptor becomes readable when the process has ended (pidfd_open(2)). False for -1, too.
    private static func isRunning(_ process: Int32) -> Bool {
        var entry = pollfd(fd: process, events: Int16(POLLIN), revents: 0)
        return process >= 0 && poll(&entry, 1, 0) == 0
    }

    /// The processes that were found last are asked first: a browser or an agent has many connections.
    private func process(of inode: UInt32, _ uid: UInt32) -> Int32? {
        for pid in recent.withLockedValue({ $0 }) where ProcessFolder(pid: pid)?.holds(inode: inode) == true {
            return pid
        }
        guard let pid = ProcessOfSocket.find(inode: inode, uid: uid) else { return nil }
        recent.withLockedValue { $0 = [pid] + $0.prefix(3) }
        return pid
    }

    private func facts(_ uid: UInt32?, _ needs: ClientNeeds) -> ClientFacts {
        var facts = ClientFacts(uid: uid)
        facts.token = ClientFacts.Name.none
        facts.socket = ClientFacts.Name.none
        facts.names = names(needs)
        facts.userName = facts.names.users.first { $0.value == uid }?.key
        return facts
    }

    private func names(_ needs: ClientNeeds) -> ClientFacts.Names {
        let now = MonotonicClock.seconds()
        var names: ClientFacts.Names
        if let known = knownNames.withLockedValue({ $0 }), known.needs == needs, now < known.until {
            names = known.names
        } else {
            names = Self.accounts(in: needs)
            let known = KnownNames(needs: needs, names: names, until: now + Self.lifetimeSeconds)
            knownNames.withLockedValue { $0 = known }
        }
        // A file may be replaced at any time.
        for path in needs.executables { names.executables[path] = Self.file(at: path) }
        return names
    }

    /// What the names in a list stand for now. May ask the network.
    package static func names(in needs: ClientNeeds) -> ClientFacts.Names {
        var names = accounts(in: needs)
        for path in needs.executables { names.executables[path] = file(at: path) }
        return names
    }

    private static func accounts(in needs: ClientNeeds) -> ClientFacts.Names {
        var names = ClientFacts.Names()
        for name in needs.users { names.users[name] = SystemUsers.number(of: name) }
        for name in needs.groups { names.groups[name] = SystemUsers.number(ofGroup: name) }
        return names
    }

    private static func file(at path: String) -> ClientFacts.FileIdentity? {
        var found = stat()
        guard stat(path, &found) == 0, found.st_mode & S_IFMT == S_IFREG else { return nil }
        return ClientFacts.FileIdentity(device: UInt64(found.st_dev), inode: UInt64(found.st_ino))
    }
}
