// SPDX-License-Identifier: Apache-2.0

import Certificates

/// `Certs/interception/bundle.pem` and the same as `bundle.p12` for Java: the system's anchors, those of `Certs/anchors`, and
/// the interception CA's root, for clients whose CA variable takes the place of the system's anchors and does not add to them.
package struct TrustBundle: Sendable {
    private let home: Home
    private let systemFiles: [String]

    /// Where distributions keep their anchors in one PEM file.
    private static let systemFiles = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    ]

    /// `SSL_CERT_FILE` of `environment` is the system's file, unless it is this bundle.
    package init(home: Home, environment: [String: String]) {
        self.home = home
        let chosen = environment["SSL_CERT_FILE"].flatMap { $0.isEmpty || $0 == home.bundle.path ? nil : $0 }
        systemFiles = chosen.map { [$0] } ?? Self.systemFiles
    }

    /// Writes both files, where they are not as they should be already. Throws for anchors of the system that cannot be read.
    package func write(root: Certificate, anchors: [Certificate]) throws(CountersignError) {
        var bytes: [UInt8] = []
        var system = ""
        for path in systemFiles {
            guard let found = try HomeFile(path: path).readIfThere(upTo: Home.fileLimitBytes) else { continue }
            bytes = found
            system = path
            break
        }
        let systemBytes = bytes
        if let last = bytes.last, last != UInt8(ascii: "\n") { bytes.append(UInt8(ascii: "\n")) }
        for anchor in anchors + [root] { bytes += Array(anchor.pem.utf8) }
        if isThere(bytes) { return }
        let certificates = try Self.certificates(in: systemBytes, system)
        try home.bundle.replace(with: bytes)
        try home.javaBundle.replace(with: JavaTrustStore.pkcs12(of: certificates + anchors + [root]))
    }

    /// Whether both files are what `bytes` make. Found without decoding the certificates, which would take longer than all
    /// else that is done before the doors open.
    private func isThere(_ bytes: [UInt8]) -> Bool {
        guard let certificates = PEMText.certificates(in: bytes), Self.content(of: home.bundle) == bytes else {
            return false
        }
        return Self.content(of: home.javaBundle) == JavaTrustStore.pkcs12(ofDER: certificates)
    }

    private static func content(of file: HomeFile) -> [UInt8]? { try? file.readIfThere(upTo: 4 * Home.fileLimitBytes) }

    private static func certificates(in bytes: [UInt8], _ path: String) throws(CountersignError) -> [Certificate] {
        do {
            return try Certificate.readPEM(bytes)
        } catch  where error.code == .noCertificate {
            return []
        } catch {
            throw CountersignError(
                .environment, "the system's anchors in \(path): \(error.detail)",
                hint: "mend the file, or have SSL_CERT_FILE name another")
        }
    }
}

extension Home {
    /// ``bundle`` for Java.
    package var javaBundle: HomeFile { file("\(Self.interceptionFolder)/bundle.p12") }
}
