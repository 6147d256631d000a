// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCryptography
import CountersignReporting
import CountersignVault

/// A ``HomeStatus`` as JSON. What needs the vault is missing while the vault cannot be read.
struct StatusReport: Encodable {
    let home: String
    /// The program's own.
    let version: String
    let paused: Bool
    let server: Server?
    let vault: Vault
    let sites: Sites
    let credentials: [ListedCredential]?
    let blocked: [BlockedCredential]
    let identities: [Identity]?
    let ticket: Ticket?
    let problems: [StatusProblem]
    /// Within 30 days.
    let endings: [Ending]
    let signIns: [SignInRow]?

    struct Server: Encodable {
        let pid: Int32
        let addresses: [String]?
        let locked: Bool
        /// RFC 3339.
        let since: String?
        let version: String?
    }

    struct Vault: Encodable {
        /// `none`, `open`, `locked`, `closed` or `faulty`.
        let state: String
        /// `key file` or `passphrase`; nil if that is not known.
        let openedBy: String?
    }

    struct Sites: Encodable {
        /// Nil if the list has errors.
        let lines: Int?
        let kinds: [String: Int]?
        /// Errors of the list, or remarks about lines without effect.
        let faults: [String]
    }

    struct Identity: Encodable {
        let name: String
        let notAfter: String?
        let isEnrolled: Bool
        /// Whether a new certificate is due.
        let isDue: Bool
    }

    struct Ticket: Encodable {
        let principal: String
        /// RFC 3339.
        let ends: String
    }

    init(_ status: HomeStatus) {
        home = status.path
        version = status.version
        paused = status.isPaused
        server = if case .running(let reply) = status.server { Server(reply) } else { nil }
        vault = Vault(status.vault)
        sites = Sites(status.sites)
        credentials = status.contents?.credentials
        blocked = status.blocked
        identities = status.contents?.renewals.map { state in
            Identity(
                name: state.name, notAfter: state.notAfter.map(WallClock.rfc3339), isEnrolled: state.isEnrolled,
                isDue: state.isDue)
        }
        ticket = status.ticket.map { ticket in
            Ticket(principal: ticket.principal, ends: WallClock.rfc3339(status.now + ticket.remainingSeconds))
        }
        problems = status.problems
        endings = status.nearEndings
        signIns = status.contents.map { contents in
            contents.signIns.map { SignInRow($0, contents.profiles, now: status.now) }
        }
    }
}

extension StatusReport.Server {
    fileprivate init(_ reply: ControlReply) {
        pid = reply.processIdentifier
        addresses = reply.addresses
        locked = reply.isLocked
        since = reply.since.map(WallClock.rfc3339)
        version = reply.version
    }
}

extension StatusReport.Vault {
    fileprivate init(_ vault: HomeStatus.Vault) {
        (state, openedBy) =
            switch vault {
            case .none: ("none", nil)
            case .open(.file): ("open", "key file")
            case .open(.passphrase): ("open", "passphrase")
            case .locked: ("locked", "passphrase")
            case .closed: ("closed", "passphrase")
            case .faulty: ("faulty", nil)
            }
    }
}

extension StatusReport.Sites {
    fileprivate init(_ sites: HomeStatus.Sites) {
        switch sites {
        case .listed(let rules, let remarks):
            lines = rules.count
            kinds = Dictionary(uniqueKeysWithValues: SiteKinds(rules).counts.map { ($0.kind, $0.count) })
            faults = remarks.map(\.message)
        case .faulty(let diagnostics):
            (lines, kinds) = (nil, nil)
            faults = diagnostics.map(\.message)
        }
    }
}
