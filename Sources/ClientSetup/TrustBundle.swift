// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
import CountersignCryptography
package import CountersignHome
import Glibc

/// `Certs/interception/bundle.pem`, and `bundle.p12` with the same certificates for Java: the system's anchors, those
/// in `Certs/anchors`, and the interception CA's root. Needed because the CA variables of most clients replace the
/// system's anchors.
package struct TrustBundle: Sendable {
    private let home: Home
    private let systemFiles: [String]
    private let now: @Sendable () -> Int64

    /// The PEM files in which distributions store the system's anchors.
    private static let systemFiles = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    ]

    /// Uses `SSL_CERT_FILE` of `environment` as the system's file, unless it names this bundle. `now` returns seconds
    /// since 1970.
    package init(
        home: Home, environment: [String: String], now: @escaping @Sendable () -> Int64 = { Int64(time(nil)) }
    ) {
        self.home = home
        self.now = now
        let chosen = environment["SSL_CERT_FILE"].flatMap { $0.isEmpty || $0 == home.bundle.path ? nil : $0 }
        systemFiles = chosen.map { [$0] } ?? Self.systemFiles
    }

    /// Writes both files if they are not up to date. Throws if the system's anchors cannot be read.
    package func write(root: Certificate, anchors: [Certificate]) throws(CountersignError) {
        let own = anchors + [root]
        let seen = state(of: own)
        if let seen, Self.content(of: home.bundleState) == seen { return }
        try writeIfNeeded(own)
        // If a file has changed in the meantime, the recorded state would not describe the content just read.
        guard let seen, state(of: own) == seen else { return }
        try? HomeFile.makeFolder(HomeFile.folder(of: home.bundleState.path), mode: 0o700)
        try? home.bundleState.replace(with: seen)
    }

    private func writeIfNeeded(_ own: [Certificate]) throws(CountersignError) {
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
        for certificate in own { bytes += Array(certificate.pem.utf8) }
        if isUpToDate(bytes) { return }
        let certificates = try Self.certificates(in: systemBytes, system)
        try home.bundle.replace(with: bytes)
        try home.javaBundle.replace(with: JavaTrustStore.pkcs12(of: certificates + own))
    }

    /// Changes when this program generates different files from the same certificates.
    private static let format = "bundle 1\n"

    /// Identifies the inputs and both files by their metadata, without reading them. Nil if a file is missing, or was
    /// changed in the current second, because another change in the same second would go unnoticed.
    func state(of own: [Certificate]) -> [UInt8]? {
        guard let bundle = FileState(of: home.bundle.path), let java = FileState(of: home.javaBundle.path) else {
            return nil
        }
        let system = systemFiles.lazy.compactMap(FileState.init).first
        let files = [system, bundle, java].compactMap { $0 }
        let now = now()
        guard files.allSatisfy({ $0.changed < now }) else { return nil }
        let digest = Hex.encode(Digest.sha256.hash(own.flatMap(\.der)))
        return Array((Self.format + files.map { "\($0.text)\n" }.joined() + digest + "\n").utf8)
    }

    /// Whether both files are up to date. Does not decode the certificates, which would dominate the start-up time.
    private func isUpToDate(_ bytes: [UInt8]) -> Bool {
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
                hint: "repair the file, or set SSL_CERT_FILE to another")
        }
    }
}

/// A file's identity and the time of its last status change, which every modification updates.
private struct FileState {
    let text: String
    /// Seconds since 1970.
    let changed: Int64

    init?(of path: String) {
        var found = stat()
        guard stat(path, &found) == 0 else { return nil }
        changed = Int64(found.st_ctim.tv_sec)
        text = "\(path) \(found.st_dev) \(found.st_ino) \(found.st_size) \(changed).\(found.st_ctim.tv_nsec)"
    }
}

extension Home {
    /// The state that ``TrustBundle`` last found up to date.
    var bundleState: HomeFile { file("run/bundle.state") }

    /// ``bundle`` for Java.
    package var javaBundle: HomeFile { file("\(Self.interceptionFolder)/bundle.p12") }
}
