// SPDX-License-Identifier: Apache-2.0

import CountersignSitePolicy

/// A connection of a client, as a person sees it.
package struct ConnectedClient: Sendable {
    package private(set) var facts: ClientFacts
    /// The site of its CONNECT, if the proxy reads the requests in it.
    package let site: String?
    private let process: ClientProcess
    /// Whether the program was looked up when the client connected.
    private let isIdentified: Bool

    init(_ session: ClientSession) {
        process = session.process
        site = session.connectSite?.origin.description
        let known = session.client?.facts
        isIdentified = known?.executable != nil
        facts = known ?? ClientFacts(uid: session.process.uid)
        if facts.pid == nil { facts.pid = session.process.pid }
    }

    /// With what can be found out about its program now. Reads files and the user database.
    func identified(by identification: ClientIdentification) -> ConnectedClient {
        var client = self
        let needs = ClientNeeds.program(and: nil)
        var found = facts
        if isIdentified {
            found = facts
        } else if let inode = process.socketInode {
            found = identification.facts(uid: process.uid, socketInode: inode, needs)
        } else if let pid = process.pid, let uid = process.uid {
            let peer = ClientIdentification.UnixPeer(
                credentials: PeerCredentials(pid: pid, uid: uid), descriptor: nil, acceptedTicks: UInt64.max)
            found = identification.facts(of: peer, needs)
        }
        (found.token, found.socket) = (facts.token, facts.socket)
        found.pid = found.pid ?? facts.pid
        found.userName = found.userName ?? found.uid.flatMap { SystemUsers.name(of: $0) }
        if found.containerNames == nil, let id = found.controlGroup?.containerID {
            found.containerNames = ContainerNames.names(of: id)
        }
        client.facts = found
        return client
    }
}
