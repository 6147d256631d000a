// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignHome
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

extension HomeManager {
    /// The lines of the list, in the order of files and lines. Throws `listFaulty`, with
    /// ``ChallengeError/siteProblems``.
    public func sites() async throws -> [AllowedSite] {
        try await blocking { [home] in try home.sites().rules.map { AllowedSite($0) } }
    }

    /// Whether the site of `url` is listed. The scheme `https://` may be left out. Throws `valueFaulty` for something
    /// else than a URL, and `listFaulty`.
    public func checkSite(_ url: String) async throws -> SiteCheck {
        try await blocking { [home] in
            let origin = try AbsoluteURL(parsing: url, defaultScheme: .https).origin
            let sites = try home.sites()
            let rule = sites.rule(for: origin)
            switch sites.verdict(for: origin) {
            case .answer(let rule): return SiteCheck(site: AllowedSite(rule), reason: nil)
            case .tunnel(let reason), .refuse(let reason):
                return SiteCheck(site: rule.map { AllowedSite($0) }, reason: reason.text)
            }
        }
    }

    /// The faults of a line, before it is added: its columns are those of `line`. Empty if the line on its own is
    /// correct; a duplicate site is found when the line is added.
    public func problems(inSite line: String) -> [SiteProblem] {
        do throws(SiteListError) {
            _ = try SiteList(files: [("the line", line)], publicSuffixes: Home.publicSuffixes)
            return []
        } catch {
            return error.problems.map { SiteProblem($0) }
        }
    }

    /// Adds a line to `AllowedSites/FILE.sites`: the site and its options, such as `https://git.corp.example
    /// answer=basic`. Throws `listFaulty` if the line, or the list with it, has faults.
    @discardableResult
    public func addSite(_ line: String, file: String = "local") async throws -> AllowedSite {
        guard !line.contains(where: \.isNewline) else {
            throw ChallengeError(.valueFaulty, "the line has a line break", hint: "add one site at a time")
        }
        return try await blocking { [self] in
            let found = problems(inSite: line)
            guard found.isEmpty else { throw ChallengeError(listFaulty: found) }
            guard case .site(let rule) = try SiteFiles(home: home).add(line, to: file, isSite: true) else {
                throw CountersignError(.configuration, "\(line.debugDescription) does not list a site")
            }
            return AllowedSite(rule)
        }
    }

    /// Removes a site from every file that lists it. `site` is written as ``AllowedSite/site``, or shorter. Throws
    /// `siteMissing`, and `valueFaulty` for something that cannot be a site.
    public func removeSite(_ site: String) async throws {
        try await blocking(missing: .siteMissing) { [home] in
            _ = try SiteFiles(home: home).remove(.site(SitePattern(parsing: site, publicSuffixes: .none)))
        }
    }
}

extension ChallengeError {
    /// The error of a faulty list, with the first of its problems as text.
    init(listFaulty problems: [SiteProblem]) {
        let first = problems.first
        self.init(.listFaulty, first?.message ?? "the list is faulty", hint: first?.hint)
        siteProblems = problems
    }
}
