// SPDX-License-Identifier: Apache-2.0

package import CountersignSitePolicy

/// Adds and removes lines of a home's list of sites. Never writes a faulty list.
package struct SiteFiles: Sendable {
    private let home: Home

    package init(home: Home) {
        self.home = home
    }

    /// Appends `line` to `AllowedSites/FILE.sites`, and returns the parsed rule. Throws ``SiteListError`` with all
    /// faults of the resulting list.
    package func add(_ line: String, to file: String) throws -> SiteRule {
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
            guard let rule = list.rules.last(where: { $0.file == target.name }), rule.text == line else {
                throw CountersignError(
                    .configuration, "\(line.debugDescription) does not list a site",
                    hint: "begin the line with the site: https://git.corp.example answer=basic")
            }
            try target.replace(with: Array(text.utf8))
            return rule
        }
    }

    /// Removes the pattern from all files, and returns the changed ones. Throws `unknownName` if no file contains it.
    package func remove(_ pattern: SitePattern) throws -> [String] {
        try home.withLock(on: Home.sitesFolder) {
            var changed: [String] = []
            for file in try home.siteFiles() {
                guard let text = SiteListText.remove(pattern, from: file.text) else { continue }
                try home.file(file.name).replace(with: Array(text.utf8))
                changed.append(file.name)
            }
            guard !changed.isEmpty else {
                throw CountersignError(
                    .unknownName, "\"\(pattern)\" is not on the list",
                    hint: "`countersign sites list` prints the patterns as you must write them here")
            }
            return changed
        }
    }
}
