// SPDX-License-Identifier: Apache-2.0

package import CountersignSitePolicy

/// Adds and removes lines of a home's list of sites. Never writes a faulty list.
package struct SiteFiles: Sendable {
    private let home: Home

    package init(home: Home) {
        self.home = home
    }

    /// A line that was added.
    package enum Added {
        case site(SiteRule, in: SiteList)
        case credential(CredentialClients, in: SiteList)

        package var location: String {
            switch self {
            case .site(let rule, _): rule.location
            case .credential(let line, _): line.location
            }
        }
    }

    /// Appends `line` to `AllowedSites/FILE.sites`, and returns it as it was read. Throws ``SiteListError`` with all
    /// faults of the resulting list. `isSite`: a line about a credential is not added.
    package func add(_ line: String, to file: String, isSite: Bool = false) throws -> Added {
        let name = file.hasSuffix(".sites") ? String(file.dropLast(".sites".count)) : file
        guard SiteRule.isStoredName(name), !name.hasPrefix(".") else {
            throw CountersignError(
                .configuration, "\(file.debugDescription) is not a file name",
                hint: "names consist of 1 to 64 characters from A-Z a-z 0-9 . _ -")
        }
        let target = home.file("\(Home.sitesFolder)/\(name).sites")
        return try home.withLock(on: Home.sitesFolder) {
            var files = try home.siteFiles()
            let index = files.firstIndex { $0.name == target.name }
            let before = index.map { files[$0].text } ?? ""
            let text = SiteListText.add(line, to: before)
            if let index { files[index].text = text } else { files.append((target.name, text)) }
            let list: SiteList
            do {
                list = try SiteList(files: files, publicSuffixes: Home.publicSuffixes)
            } catch let error as SiteListError {
                // The new line is in no file, so its number would mislead.
                let count = SiteListText.lineCount(of: before)
                let isOld = { (problem: SiteListError.Problem) in problem.file != target.name || problem.line <= count }
                guard !error.problems.contains(where: isOld), let first = error.problems.first else { throw error }
                throw CountersignError(.configuration, first.message, hint: first.hint)
            }
            let number = SiteListText.lineCount(of: text)
            let rule = list.rules.last { $0.file == target.name && $0.line == number && $0.text == line }
            let credential = list.credentialClients.last {
                $0.file == target.name && $0.line == number && $0.text == line
            }
            guard
                let added = rule.map({ Added.site($0, in: list) })
                    ?? (isSite ? nil : credential.map { .credential($0, in: list) })
            else {
                throw CountersignError(
                    .configuration, "\(line.debugDescription) does not list a site",
                    hint: "begin the line with the site: https://git.corp.example answer=basic")
            }
            try target.replace(with: Array(text.utf8))
            return added
        }
    }

    /// Removes the lines about `subject` from all files, and returns the changed ones. Throws `unknownName` if no file
    /// has one.
    package func remove(_ subject: SiteListText.Subject) throws -> [String] {
        try home.withLock(on: Home.sitesFolder) {
            var changed: [String] = []
            for file in try home.siteFiles() {
                guard let text = SiteListText.remove(subject, from: file.text) else { continue }
                try home.file(file.name).replace(with: Array(text.utf8))
                changed.append(file.name)
            }
            guard !changed.isEmpty else {
                throw CountersignError(
                    .unknownName, "\"\(subject)\" is not on the list",
                    hint: "`countersign sites list` prints the patterns as you must write them here")
            }
            return changed
        }
    }
}
