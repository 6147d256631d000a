// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates

/// Adds and removes trust anchors in a home's `Certs/anchors`.
package struct AnchorStore: Sendable {
    /// A trust anchor and the file that contains it.
    package struct Entry: Sendable {
        package let certificate: Certificate
        /// `Certs/anchors/corp.pem`.
        package let file: String
    }

    /// A revocation list and the file that contains it.
    package struct ListEntry: Sendable {
        package let list: RevocationList
        /// `Certs/anchors/corp.pem`.
        package let file: String
    }

    private let home: Home

    package init(home: Home) {
        self.home = home
    }

    /// All anchors, in the order of files.
    package func entries() throws -> [Entry] {
        try files().flatMap { file, anchors in anchors.certificates.map { Entry(certificate: $0, file: file) } }
    }

    /// All revocation lists, in the order of files.
    package func revocationLists() throws -> [ListEntry] {
        try files().flatMap { file, anchors in anchors.revocationLists.map { ListEntry(list: $0, file: file) } }
    }

    private func files() throws -> [(name: String, contents: AnchorFiles)] {
        var files: [(name: String, contents: AnchorFiles)] = []
        for file in try home.files(in: Home.anchorsFolder, suffix: Self.suffix) {
            var anchors = AnchorFiles()
            let bytes = try file.read(upTo: Home.fileLimitBytes)
            do {
                try anchors.add(bytes, from: file.name)
            } catch {
                throw CountersignError(.configuration, "\(file.name): \(error.detail)")
            }
            files.append((file.name, anchors))
        }
        return files
    }

    /// Reads the certificates of a file in PEM, DER or PKCS#7. Errors name it as `place`.
    package static func read(_ bytes: [UInt8], from place: String) throws(CountersignError) -> [Certificate] {
        do throws(CertificateError) {
            return try IdentityFile.readCertificates(bytes)
        } catch {
            throw CountersignError(
                .configuration, "\(place): \(error.detail)",
                hint: "the file must contain certificates in PEM, DER or PKCS#7")
        }
    }

    /// Stores those of `certificates` that are not anchors yet in a new file `NAME.pem`, and returns the entry of each.
    /// Throws `nameInUse` if there is such a file, and `refused` for the root of the home's own interception CA.
    package func add(_ certificates: [Certificate], as name: String) throws -> [(entry: Entry, isNew: Bool)] {
        if let own = try InterceptionStore(home: home).root(), certificates.contains(own) {
            throw CountersignError(
                .refused, "this is the root of this home's interception CA, which no site may use",
                hint: "for your own programs to trust it, see `countersign ca install`")
        }
        return try home.withLock(on: Home.anchorsFolder) {
            // Refuses a home that others can write to, and files that are damaged.
            _ = try home.anchorFiles()
            let known = try entries()
            let file = home.file("\(Home.anchorsFolder)/\(name)\(Self.suffix)")
            let results = certificates.map { certificate in
                known.first { $0.certificate == certificate }.map { (entry: $0, isNew: false) }
                    ?? (entry: Entry(certificate: certificate, file: file.name), isNew: true)
            }
            let new = results.filter(\.isNew).map(\.entry.certificate)
            guard !new.isEmpty else { return results }
            guard try file.readIfThere(upTo: Home.fileLimitBytes) == nil else {
                throw CountersignError(
                    .nameInUse, "\(file.name) already exists", hint: "choose another name with --name")
            }
            try file.replace(with: Array(new.map(\.pem).joined().utf8))
            return results
        }
    }

    /// Removes the anchor with this SHA-256 fingerprint from every file that contains it, and returns its entries.
    /// Leaves everything else in the files unchanged; a file without another block is removed. Throws `unknownName` if
    /// there is no such anchor.
    package func remove(_ fingerprint: [UInt8]) throws -> [Entry] {
        try home.withLock(on: Home.anchorsFolder) {
            let found = try entries().filter { $0.certificate.sha256Fingerprint == fingerprint }
            for entry in found {
                let file = home.file(entry.file)
                let rest = PEMBlocks(try file.read(upTo: Home.fileLimitBytes)).without { block in
                    (try? Certificate.readPEM(block))?.first?.sha256Fingerprint == fingerprint
                }
                if let rest { try file.replace(with: rest) } else { try file.remove() }
            }
            guard !found.isEmpty else {
                throw CountersignError(
                    .unknownName, "there is no trust anchor \(CertificateFingerprint.text(fingerprint))",
                    hint: "`countersign trust anchor list` prints the fingerprints")
            }
            return found
        }
    }

    private static let suffix = ".pem"
}

/// The lines of a PEM text (RFC 7468), with its blocks.
private struct PEMBlocks {
    private let lines: [ArraySlice<UInt8>]

    init(_ text: [UInt8]) {
        lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    }

    /// The text without the blocks for which `isRemoved` returns true; nil if no block is left.
    func without(_ isRemoved: ([UInt8]) -> Bool) -> [UInt8]? {
        var kept: [ArraySlice<UInt8>] = []
        var block: [ArraySlice<UInt8>] = []
        var keptBlocks = 0
        for line in lines {
            if block.isEmpty, !line.starts(with: "-----BEGIN ".utf8) {
                kept.append(line)
                continue
            }
            block.append(line)
            guard line.starts(with: "-----END ".utf8) else { continue }
            if !isRemoved(Array(block.joined(separator: [UInt8(ascii: "\n")])) + [UInt8(ascii: "\n")]) {
                kept += block
                keptBlocks += 1
            }
            block = []
        }
        return keptBlocks == 0 ? nil : Array((kept + block).joined(separator: [UInt8(ascii: "\n")]))
    }
}
