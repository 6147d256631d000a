// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import CountersignSitePolicy

/// The lines that sign-ins bring to the list of sites: one file for each sign-in.
struct SignInSites {
    let home: Home
    /// Of the sign-in.
    let name: String

    private static let heading = "# For the sign-in of this name. `countersign unenroll` removes these lines."

    private var file: HomeFile { home.file("\(Home.sitesFolder)/signed-in.\(name).sites") }

    /// Those of `lines` that the file does not have of the person's own. `former` are lines of the sign-ins before.
    func added(_ lines: [String], besides former: [String]) throws -> [String] {
        try home.withLock(on: Home.sitesFolder) {
            let text = try home.siteFiles().first { $0.name == file.name }?.text ?? ""
            let own = Set(text.split(whereSeparator: \.isNewline).map(String.init)).subtracting(former)
            return lines.filter { !own.contains($0) }
        }
    }

    /// Throws if the list would be faulty with `lines` in place of `former`, the lines of the sign-ins before. Writes
    /// nothing.
    func check(_ lines: [String], replacing former: [String]) throws {
        try home.withLock(on: Home.sitesFolder) { _ = try text(with: lines, replacing: former) }
    }

    /// Writes the file. `former` are the lines of the sign-ins before; lines that the person has added stay.
    func set(_ lines: [String], replacing former: [String]) throws {
        try home.withLock(on: Home.sitesFolder) {
            let text = try text(with: lines, replacing: former)
            guard !text.isEmpty else {
                _ = try file.remove()
                return
            }
            try file.replace(with: Array(text.utf8))
        }
    }

    /// Writes those of `lines` again that share a session which a line of `removed` has shared at the same site. Leaves
    /// other lines unchanged: a person may have removed them.
    func restoreSession(of lines: [String], without removed: [String]) throws {
        let gone = removed.compactMap(Self.session)
        let shared = lines.filter { line in
            guard let own = Self.session(of: line) else { return false }
            return gone.contains { $0 == own }
        }
        if !shared.isEmpty { try set(shared, replacing: shared) }
    }

    /// The site and the session that a line shares, if that is all that it does.
    private static func session(of line: String) -> (SitePattern, SharedSessionRule)? {
        guard let rule = try? SiteList(files: [("line", line)], publicSuffixes: .none).rules.first else { return nil }
        return rule.answer.isEmpty ? rule.session.map { (rule.pattern, $0) } : nil
    }

    /// The contents of the file; empty if no line is left. A line that shares a session is left out if another file
    /// shares the same one at that site: profiles of one group do.
    private func text(with new: [String], replacing former: [String]) throws -> String {
        var files = try home.siteFiles()
        let index = files.firstIndex { $0.name == file.name }
        let others = try? SiteList(
            files: files.filter { $0.name != file.name }.map { ($0.name, $0.text) }, publicSuffixes: Home.publicSuffixes
        )
        let lines = new.filter { line in
            guard let (site, session) = Self.session(of: line) else { return true }
            return others?.rules.contains { $0.pattern == site && $0.session == session } != true
        }
        let taken = Set(former + new + [Self.heading])
        let own = (index.map { files[$0].text } ?? "").split(whereSeparator: \.isNewline).map(String.init)
            .filter { !taken.contains($0) }
        let all = lines + own
        let text = all.isEmpty ? "" : ([Self.heading] + all).map { "\($0)\n" }.joined()
        if let index { files[index].text = text } else { files.append((file.name, text)) }
        do throws(SiteListError) {
            _ = try SiteList(files: files, publicSuffixes: Home.publicSuffixes)
        } catch {
            guard let problem = error.problems.first(where: { $0.file == file.name }) else { throw error }
            throw CountersignError(
                .configuration, "the profile's sites cannot be added to the list: \(problem.message)",
                hint: problem.hint)
        }
        return text
    }
}
