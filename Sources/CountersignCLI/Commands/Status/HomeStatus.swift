// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignHome
import CountersignNegotiate
import CountersignReporting
import CountersignSitePolicy
import CountersignVault

/// What `countersign status` knows about a home at one moment. ``StatusReader`` reads it; ``problems`` finds what needs
/// the person; ``StatusText`` and ``StatusReport`` show both. None of them reads a file.
struct HomeStatus {
    enum Server {
        case none
        case running(ControlReply)
        /// It does not answer, or belongs to another user.
        case unreachable(Diagnostic)
    }

    enum Vault {
        case none
        case open(by: VaultKey)
        /// The running server has it locked.
        case locked
        /// It needs its passphrase, and no server gives information from it. `inServer`: a server has it open, and
        /// performs no operations.
        case closed(inServer: Bool)
        case faulty(Diagnostic)
    }

    enum Sites {
        /// `remarks` are about files and lines that have no effect.
        case listed([SiteRule], remarks: [Diagnostic])
        case faulty([Diagnostic])
    }

    /// What the vault says; empty without a vault.
    struct Contents {
        /// Sorted by name.
        var credentials: [ListedCredential] = []
        var identities: IdentityListing?
        var renewals: [RenewalState] = []
        /// Sorted by name.
        var signIns: [ListedSignIn] = []
        /// Those that sign-ins have installed.
        var profiles: [ProfileRecord] = []
        /// The names that a site's line can give.
        var names: StoredNames?
        /// The names of interrupted wipes.
        var wipes: [String] = []
    }

    /// In seconds since 1970.
    var now: Int64
    var path: String
    var isThere = true
    var server = Server.none
    /// The version of this program.
    var version: String
    var isPaused = false
    var vault = Vault.none
    /// Nil if the vault cannot be read.
    var contents: Contents?
    var sites = Sites.listed([], remarks: [])
    /// The credentials that the breaker does not permit to be sent.
    var blocked: [BlockedCredential] = []
    /// Of everything, with or without an end in the near future.
    var endings: [Ending] = []
    /// The user's own Kerberos ticket, if it is valid.
    var ticket: UserTicket?
    /// Other faults of files.
    var faults: [Diagnostic] = []

    var isLockedInServer: Bool { if case .running(let reply) = server { reply.isLocked } else { false } }

    /// What ends within 30 days, the first end first.
    var nearEndings: [Ending] { endings.filter { $0.isNear(at: now) }.sorted { $0.time < $1.time } }
}
