// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignSitePolicy

extension Home {
    /// The largest allowed-sites file, and the largest PEM file, that is read.
    package static let fileLimitBytes = 4 << 20
    /// The public-suffix list of the Debian package `publicsuffix`.
    private static let systemPublicSuffixes = "/usr/share/publicsuffix/public_suffix_list.dat"

    // MARK: Who may be answered

    /// The files of `AllowedSites`, with the names that errors call them by.
    package func siteFiles() throws(CountersignError) -> [(name: String, text: String)] {
        var texts: [(name: String, text: String)] = []
        for file in try files(in: Self.sitesFolder, suffix: ".sites") {
            let bytes = try file.read(upTo: Self.fileLimitBytes)
            // What is not UTF-8 becomes U+FFFD, for which the parser gives the line and column.
            texts.append((file.name, String(decoding: bytes, as: UTF8.self)))
        }
        return texts
    }

    /// The list in force for these files. Throws ``SiteListError`` with every fault, or ``CountersignError``.
    package func sites() throws -> SiteList {
        try SiteList(files: siteFiles(), publicSuffixes: Self.publicSuffixes)
    }

    /// The system's list where it has one, else the short list of this build.
    package static let publicSuffixes: PublicSuffixes = {
        let file = HomeFile(path: systemPublicSuffixes)
        guard let bytes = try? file.readIfThere(upTo: fileLimitBytes) else { return .builtIn }
        return PublicSuffixes(parsing: bytes)
    }()

    // MARK: Whom to trust

    /// Every certificate of `Certs/anchors`, each once.
    package func anchors() throws(CountersignError) -> [Certificate] { try anchorFiles().certificates }

    /// What `Certs/anchors` holds. Throws for the first file that cannot be read, is cut off or has nothing in it.
    package func anchorFiles() throws(CountersignError) -> AnchorFiles {
        var anchors = AnchorFiles()
        for file in try files(in: Self.anchorsFolder, suffix: ".pem") {
            let bytes = try file.read(upTo: Self.fileLimitBytes)
            do {
                try anchors.add(bytes)
            } catch {
                throw CountersignError(
                    .configuration, "\(file.name): \(error.detail)",
                    hint:
                        "the file is to hold whole certificates or revocation lists in PEM, from -----BEGIN to -----END"
                )
            }
        }
        return anchors
    }

    // MARK: What to answer with

    /// The identities that have a chain, by name.
    package func identityNames() throws(CountersignError) -> [String] {
        try files(in: Self.identitiesFolder, suffix: ".pem").map { file in
            String(file.name.dropFirst(Self.identitiesFolder.count + 1).dropLast(".pem".count))
        }
    }

    /// The identity's chain, leaf first, or nil where there is none.
    package func chain(named name: String) throws(CountersignError) -> [Certificate]? {
        try certificatesIfThere(in: identityChain(named: name))
    }

    /// The certificates of a PEM file. Throws for a file without any.
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
                hint: "the file is to hold whole certificates in PEM, from BEGIN to END CERTIFICATE")
        }
    }
}
