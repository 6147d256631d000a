// SPDX-License-Identifier: Apache-2.0

import CountersignSitePolicy

/// A line of the list of sites.
public struct AllowedSite: Equatable, Sendable {
    /// The site in the form of the list: `https://git.corp.example` or `https://*.corp.example`.
    public let site: String
    /// The whole line, with its options.
    public let line: String
    /// The file and the number of the line: `AllowedSites/work.sites:3`.
    public let location: String
    /// The name of the credential that answers.
    public let credential: String
    /// The name of the client identity that answers; nil for the one whose issuer the server accepts.
    public let identity: String?

    /// Creates a value, for the tests of a program.
    public init(site: String, line: String, location: String, credential: String, identity: String? = nil) {
        self.site = site
        self.line = line
        self.location = location
        self.credential = credential
        self.identity = identity
    }

    init(_ rule: SiteRule) {
        self.init(
            site: rule.pattern.description, line: rule.text, location: rule.location, credential: rule.credential,
            identity: rule.identity)
    }
}

/// A fault in a list of sites.
public struct SiteProblem: Equatable, Sendable, CustomStringConvertible {
    /// `AllowedSites/work.sites`.
    public let file: String
    /// Counted from 1.
    public let line: Int
    /// Counted from 1, in Unicode scalars.
    public let column: Int
    /// A sentence for display, in lower case and without a full stop.
    public let message: String
    /// How to correct it.
    public let hint: String?

    /// Creates a value, for the tests of a program.
    public init(file: String, line: Int, column: Int, message: String, hint: String? = nil) {
        self.file = file
        self.line = line
        self.column = column
        self.message = message
        self.hint = hint
    }

    init(_ problem: SiteListError.Problem) {
        self.init(
            file: problem.file, line: problem.line, column: problem.column, message: problem.message, hint: problem.hint
        )
    }

    /// `AllowedSites/work.sites:3:14: unknown option "awnser"`.
    public var description: String { "\(file):\(line):\(column): \(message)" }
}

/// The result of ``HomeManager/checkSite(_:)``.
public struct SiteCheck: Equatable, Sendable {
    /// The line that lists the site; nil if none does.
    public let site: AllowedSite?
    /// Why challenges of the site are not answered, as a clause for display; nil if they may be.
    public let reason: String?

    /// Creates a value, for the tests of a program.
    public init(site: AllowedSite?, reason: String?) {
        self.site = site
        self.reason = reason
    }
}
