// SPDX-License-Identifier: Apache-2.0

package import CountersignAddresses
package import CountersignCertificates
package import CountersignSitePolicy

extension Home {
    /// The largest allowed-sites or PEM file that is read, in bytes.
    package static let fileLimitBytes = 4 << 20
    /// The public-suffix list of the Debian package `publicsuffix`.
    private static let systemPublicSuffixes = "/usr/share/publicsuffix/public_suffix_list.dat"

    // MARK: Allowed sites

    /// The files of `AllowedSites`, with their names for errors.
    /// Throws if another user can write to the home.
    package func siteFiles() throws(CountersignError) -> [(name: String, text: String)] {
        try WriteProtection(home: self).check()
        var texts: [(name: String, text: String)] = []
        for file in try files(in: Self.sitesFolder, suffix: ".sites") {
            let bytes = try file.read(upTo: Self.fileLimitBytes)
            // Invalid UTF-8 becomes U+FFFD, which the parser reports with line and column.
            texts.append((file.name, String(decoding: bytes, as: UTF8.self)))
        }
        return texts
    }

    /// The list of allowed sites. Throws ``SiteListError`` with all its faults, or ``CountersignError``.
    package func sites() throws -> SiteList {
        try SiteList(files: siteFiles(), publicSuffixes: Self.publicSuffixes)
    }

    /// The system's public-suffix list if there is one, else the short built-in list.
    package static let publicSuffixes = PublicSuffixes {
        let file = HomeFile(path: systemPublicSuffixes)
        return (try? file.readIfThere(upTo: fileLimitBytes)) ?? PublicSuffixes.shortList
    }

    /// Whether anyone can register names below `name`, or it is not a name.
    package static func isPublicSuffix(_ name: String) -> Bool {
        guard let host = try? HostName(canonicalizing: name) else { return true }
        return publicSuffixes.isPublicSuffix(host)
    }

    // MARK: Trust anchors

    /// The certificates in `Certs/anchors`, without duplicates.
    package func anchors() throws(CountersignError) -> [Certificate] { try anchorFiles().certificates }

    /// The contents of `Certs/anchors`. Throws on the first file that is unreadable, truncated or empty, and if another
    /// user can write to the home.
    package func anchorFiles() throws(CountersignError) -> AnchorFiles {
        try WriteProtection(home: self).check()
        var anchors = AnchorFiles()
        for file in try files(in: Self.anchorsFolder, suffix: ".pem") {
            let bytes = try file.read(upTo: Self.fileLimitBytes)
            do {
                try anchors.add(bytes, from: file.name)
            } catch {
                throw CountersignError(
                    .configuration, "\(file.name): \(error.detail)",
                    hint: "the file must contain complete certificates or revocation lists in PEM")
            }
        }
        return anchors
    }

    // MARK: Identities

    /// The names of the identities that have a chain.
    package func identityNames() throws(CountersignError) -> [String] {
        try files(in: Self.identitiesFolder, suffix: ".pem").map { file in
            String(file.name.dropFirst(Self.identitiesFolder.count + 1).dropLast(".pem".count))
        }
    }

    /// The identity's chain, leaf first; nil without one.
    package func chain(named name: String) throws(CountersignError) -> [Certificate]? {
        try certificatesIfThere(in: identityChain(named: name))
    }

    /// The certificates of a PEM file. Throws if it contains none.
    func certificates(in file: HomeFile) throws(CountersignError) -> [Certificate] {
        try parse(file.read(upTo: Self.fileLimitBytes), of: file)
    }

    func certificatesIfThere(
        in file: HomeFile, upTo limitBytes: Int = fileLimitBytes
    ) throws(CountersignError) -> [Certificate]? {
        guard let bytes = try file.readIfThere(upTo: limitBytes) else { return nil }
        return try parse(bytes, of: file)
    }

    private func parse(_ bytes: [UInt8], of file: HomeFile) throws(CountersignError) -> [Certificate] {
        do {
            return try Certificate.readPEM(bytes)
        } catch {
            throw CountersignError(
                .configuration, "\(file.name): \(error.detail)",
                hint: "the file must contain complete certificates in PEM")
        }
    }
}
