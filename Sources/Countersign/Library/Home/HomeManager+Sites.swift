// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignHome
import CountersignSitePolicy

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
            guard case .site(let rule, _) = try SiteFiles(home: home).add(line, to: file, isSite: true) else {
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
